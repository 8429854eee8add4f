"""Who may decide in a replay, by name; each comparator is a page and says what it models."""

from __future__ import annotations

from collections.abc import Callable

from evenhand.replay.rules import Scheduler
from evenhand.replay.schedulers.arrival_order import Fifo, FirstFit
from evenhand.replay.schedulers.decider import Decider, Happened
from evenhand.replay.schedulers.engine import Evenhand

REGISTRY: dict[Scheduler, Callable[[], Decider]] = {
    Scheduler.EVENHAND: Evenhand,
    Scheduler.FIFO: Fifo,
    Scheduler.FIRST_FIT: FirstFit,
}


def decider_of(scheduler: Scheduler) -> Decider:
    """Make a fresh one."""
    return REGISTRY[scheduler]()


__all__ = ["REGISTRY", "Decider", "Happened", "decider_of"]
