"""In order of arrival: strictly (FIFO), or whoever fits (first fit). Nobody is ever preempted."""

from __future__ import annotations

from evenhand.replay.lines import Rank
from evenhand.replay.schedulers.decider import Happened
from evenhand.replay.world import World


class Fifo:
    """First come first served over the whole cluster, blind to groups: the first that does not fit blocks all behind it.

    Models a single queue without backfill, and what many ticket systems do by hand.
    """

    keeps_hit = False
    minds_protection = False

    def decide(self, world: World, happened: Happened) -> None:
        """Start from the head of the line until somebody does not fit."""
        while (job := _eldest(world)) is not None and (found := world.place_best(job)) is not None:
            world.start(job, *found)

    def wakes_at(self, world: World) -> int | None:
        """Only events."""
        return None


class FirstFit:
    """In order of arrival, whoever fits starts at once, on its best type with room.

    Models Kubernetes' default scheduler with gangs: greedy, blind to groups, large gangs wait for a lucky hole.
    """

    keeps_hit = False
    minds_protection = False

    def decide(self, world: World, happened: Happened) -> None:
        """Start the eldest of those that fit until nobody does."""
        start_all(world, list(world.lines.by_shape))

    def wakes_at(self, world: World) -> int | None:
        """Only events."""
        return None


def start_all(world: World, shapes: list[int]) -> None:
    """Start the eldest job of these shapes that fits, again and again; a shape that does not fit is dropped."""
    lines = world.lines.by_shape
    heads = {s: _head(lines[s].values()) for s in shapes if s in lines}
    while heads:
        shape = min(heads, key=lambda s: heads[s])
        job = heads[shape][1]
        found = world.place_best(job)
        if found is None:
            del heads[shape]
            continue
        world.start(job, *found)
        if shape in lines:
            heads[shape] = _head(lines[shape].values())
        else:
            del heads[shape]


def _head(lines: object) -> tuple[int, int]:
    """Submission and job of the eldest in lines of one shape, priorities aside."""
    return min((rank[1], rank[2]) for line in lines for rank in line[:1])  # type: ignore[attr-defined]


def _eldest(world: World) -> int | None:
    """The job that waits the longest."""
    heads: list[Rank] = [line[0] for lines in world.lines.by_shape.values() for line in lines.values()]
    return min(((r[1], r[2]) for r in heads), default=(0, None))[1]
