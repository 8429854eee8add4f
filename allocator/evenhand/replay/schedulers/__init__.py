"""Who may decide in a replay, by name; each comparator is a page and says what it models."""

from __future__ import annotations

from collections.abc import Callable

from evenhand.replay.rules import Scheduler
from evenhand.replay.schedulers.arrival_order import Fifo, FirstFit
from evenhand.replay.schedulers.backfill import Backfill
from evenhand.replay.schedulers.decider import Decider, Happened
from evenhand.replay.schedulers.engine import Evenhand
from evenhand.replay.schedulers.gavel import Gavel
from evenhand.replay.schedulers.least_attained import LeastAttained
from evenhand.replay.schedulers.static_quota import StaticQuota
from evenhand.replay.schedulers.time_fair_share import TimeFairShare

REGISTRY: dict[Scheduler, Callable[[], Decider]] = {
    Scheduler.EVENHAND: Evenhand,
    Scheduler.FIFO: Fifo,
    Scheduler.FIRST_FIT: FirstFit,
    Scheduler.BACKFILL: Backfill,
    Scheduler.STATIC_QUOTA: StaticQuota,
    Scheduler.LEAST_ATTAINED: LeastAttained,
    Scheduler.GAVEL: Gavel,
    Scheduler.TIME_FAIR_SHARE: TimeFairShare,
}


def decider_of(scheduler: Scheduler) -> Decider:
    """Make a fresh one."""
    return REGISTRY[scheduler]()


__all__ = ["REGISTRY", "Decider", "Happened", "decider_of"]
