"""In order of arrival: strictly (FIFO), or whoever fits (first fit). Nobody is ever preempted."""

from __future__ import annotations

from evenhand.replay.schedulers.decider import Happened
from evenhand.replay.schedulers.in_order import start_in_order
from evenhand.replay.world import World


class Fifo:
    """First come first served over the whole cluster, blind to groups: the first that does not fit blocks all behind it.

    Models a single queue without backfill; priorities inside a group are kept.
    """

    keeps_hit = False
    minds_protection = False
    minds_checkpoints = False
    saves_at_stop = False
    minds_debug_runs = False

    def decide(self, world: World, happened: Happened) -> None:
        """Start from the head of the line until somebody does not fit."""
        facts = world.facts
        start_in_order(world, lambda job, _: (facts.submit_s[job], job), strictly=True)

    def wakes_at(self, world: World) -> int | None:
        """Only events."""
        return None


class FirstFit:
    """In order of arrival, whoever fits starts at once, on its best type with room.

    Models Kubernetes' default scheduler with gangs: greedy, blind to groups; large gangs wait for a lucky hole.
    """

    keeps_hit = False
    minds_protection = False
    minds_checkpoints = False
    saves_at_stop = False
    minds_debug_runs = False

    def decide(self, world: World, happened: Happened) -> None:
        """Start the eldest of those that fit until nobody does."""
        facts = world.facts
        start_in_order(world, lambda job, _: (facts.submit_s[job], job))

    def wakes_at(self, world: World) -> int | None:
        """Only events."""
        return None
