"""What if: weeks of jobs replayed against a cluster, decided by the engine itself or by a comparator.

from evenhand.replay import Scheduler, measure, replay
result = replay(trace, cluster, Policy(), Scheduler.FIRST_FIT)
print(measure(result).to_json())
"""

from evenhand.replay.envy_watch import EnvyWatch
from evenhand.replay.metrics import ReplayMetrics, measure
from evenhand.replay.result import JobTable, ReplayResult, StayTable
from evenhand.replay.rules import JobEnd, NonResumable, Scheduler, StayEnd, WorldRules
from evenhand.replay.run import Progress, replay

__all__ = [
    "EnvyWatch",
    "JobEnd",
    "JobTable",
    "NonResumable",
    "Progress",
    "ReplayMetrics",
    "ReplayResult",
    "Scheduler",
    "StayEnd",
    "StayTable",
    "WorldRules",
    "measure",
    "replay",
]
