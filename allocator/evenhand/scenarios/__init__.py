"""Scenarios laid over a replay: other hardware, another tree, another policy, other jobs.

case = laid_over(ReplayCase(trace, cluster, policy, rules), scenario, seed=0)
"""

from evenhand.scenarios.case import ReplayCase, laid_over

__all__ = ["ReplayCase", "laid_over"]
