"""The same round once more, written down another way and solved by another solver: job by node, PuLP and CBC.

It shares no code with the way plans are made; states are read by `evenhand.audit`. Both sides are held to the
fair target of the plan. PuLP is imported when something is solved or written, never by importing this package.
"""

from evenhand.crosscheck.export import UnknownFormat, export_program
from evenhand.crosscheck.verdict import CrossCheck, Proof, cross_check

__all__ = ["CrossCheck", "Proof", "UnknownFormat", "cross_check", "export_program"]
