"""What if a job came now: would it run, when, and who would go. Nothing is reserved, nothing changes.

answer = what_if_start(state, [job], policy)
"""

from evenhand.whatif.start import what_if_start

__all__ = ["what_if_start"]
