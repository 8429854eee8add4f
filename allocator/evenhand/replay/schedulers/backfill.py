"""Priority with backfill: Fair Tree order, and a reservation for the first that does not fit (EASY)."""

from __future__ import annotations

from heapq import merge
from itertools import islice

from evenhand.outcome import Places
from evenhand.replay.schedulers.decider import Happened
from evenhand.replay.schedulers.fair_order import fair_tree_order
from evenhand.replay.schedulers.in_order import start_in_order
from evenhand.replay.world import World

PERIOD_S = 300
"""Priorities are worked out anew this often (PriorityCalcPeriod)."""
CONTRACTS = 4
LEAST_LIMIT_S, MOST_LIMIT_S = 3_600, 172_800
DEPTH = 500
"""Waiting jobs looked at for backfill (bf_max_job_test)."""


class Backfill:
    """Slurm with multifactor priority: Fair Tree decides, then priority and age; EASY backfill; nobody is preempted.

    Traces hold no time limits. Every job is taken to ask for four times its contract, at least an hour and at most two
    days, and is not killed when it runs longer: kinder than users' limits are in practice.
    """

    keeps_hit = False
    minds_protection = False
    minds_checkpoints = False
    saves_at_stop = False
    minds_debug_runs = False

    def __init__(self) -> None:
        self._order: list[int] = []
        self._at_s = -PERIOD_S

    def decide(self, world: World, happened: Happened) -> None:
        """Start in order until somebody does not fit; then whoever does not delay that one."""
        if world.now_s >= self._at_s + PERIOD_S or happened.ground_changed or len(self._order) != len(world.tree.ids):
            self._order, self._at_s = fair_tree_order(world), world.now_s
        order, lines = self._order, world.lines
        head = start_in_order(world, lambda job, o: (order[o[0]], lines.rank(job)), strictly=True)
        if head is None or not any(world.ground.idle):
            return
        until_s, spared = self._reservation(world, head)
        room: dict[int, tuple[int, Places] | None] = {}  # by shape, as long as nobody starts
        for job in self._next_in_line(world)[1:]:
            shape = world.facts.shape[job]
            if shape not in room or (room[shape] is not None and world.ground.limited):
                room[shape] = world.place_best(job)
            found = room[shape]
            if found is None:
                continue
            ends = world.now_s + limit_s(world, job)
            if ends <= until_s or not any(n in spared for n, _ in found[1]):
                world.start(job, *found)
                room = {shape: None for shape, found in room.items() if found is None}

    def wakes_at(self, world: World) -> int | None:
        """Only events."""
        return None

    def _next_in_line(self, world: World) -> list[int]:
        """The first of all that wait, as many as backfill looks at and the head."""
        lines = (
            [(self._order[owner[0]], rank) for rank in line[: DEPTH + 1]]
            for owners in world.lines.by_shape.values()
            for owner, line in owners.items()
        )
        return [rank[2] for _, rank in islice(merge(*lines), DEPTH + 1)]

    def _reservation(self, world: World, head: int) -> tuple[float, set[int]]:
        """When the head of the line could start if everybody ran to his limit, and on which nodes."""
        shape = world.facts.shapes[world.facts.shape[head]]
        trial = world.ground.trial()
        ends = sorted((max(world.now_s + 1, run.start_s + limit_s(world, j)), j) for j, run in world.runs.items())
        for at, j in ends:
            trial.give_back(world.runs[j].places)
            for t in shape.types:
                places: Places | None = trial.place(shape, t, world.sites)
                if places is not None:
                    return at, {n for n, _ in places}
        return float("inf"), set()


def limit_s(world: World, job: int) -> int:
    """The time limit a job is taken to ask for."""
    return min(MOST_LIMIT_S, max(LEAST_LIMIT_S, CONTRACTS * world.facts.contract_s[job]))
