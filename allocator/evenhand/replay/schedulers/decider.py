"""What a replay asks of whoever decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from evenhand.replay.world import Run, World


@dataclass(frozen=True, slots=True)
class Happened:
    """What has changed since the last round, all at one moment.

    Attributes
    ----------
    arrived : jobs that were submitted; ended : runs that completed; unprotected : jobs whose protection has ended;
    saved : jobs outside their contract that saved their progress at this moment.
    ground_changed : nodes or groups are others than before.
    """

    arrived: tuple[int, ...] = ()
    ended: tuple[Run, ...] = ()
    unprotected: tuple[int, ...] = ()
    saved: tuple[int, ...] = ()
    ground_changed: bool = False


class Decider(Protocol):
    """Decides by acting on the world: `start`, `stop` and `move`."""

    keeps_hit: bool
    """Whether jobs that lost a node are its to decide; else they are requeued before it is asked."""
    minds_protection: bool
    """Whether it is to be asked when a protection ends."""
    minds_checkpoints: bool
    """Whether it is to be asked when a job outside its contract saves its progress."""
    saves_at_stop: bool
    """Whether resumable jobs save their progress when it stops them; else what came after the last checkpoint is lost."""
    minds_debug_runs: bool
    """Whether debug runs (rule O3) wait in lines of their own, before their elders; else nothing tells them from other jobs."""

    def decide(self, world: World, happened: Happened) -> None:
        """Do what is to be done at this moment."""

    def wakes_at(self, world: World) -> int | None:
        """When it wants to be asked though nothing happens, after `now_s`; None: never."""
