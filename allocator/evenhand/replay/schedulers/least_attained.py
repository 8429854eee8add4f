"""Least attained service: whoever has had the fewest GPU-hours goes first, and others make way (Tiresias)."""

from __future__ import annotations

from evenhand.replay.schedulers.decider import Happened
from evenhand.replay.schedulers.in_order import make_way, start_in_order
from evenhand.replay.world import World

QUEUES_GPU_S = (3_600, 36_000)
"""Attained service at which a job falls to the next queue, GPU-seconds."""


class LeastAttained:
    """Two-dimensional LAS as in Tiresias (NSDI'19): three queues by GPU-seconds a job has had, first come in each.

    Blind to groups. Once a round a waiting job may stop resumable ones of lower queues, the youngest first; jobs that
    cannot resume run on once they run, which is how it is used in practice. Free GPUs are given out at once.
    """

    keeps_hit = False
    minds_protection = False
    minds_checkpoints = False
    saves_at_stop = True
    minds_debug_runs = False

    def __init__(self) -> None:
        self._had: dict[int, int] = {}
        self._since: dict[int, int] = {}
        self._next_s = 0

    def decide(self, world: World, happened: Happened) -> None:
        """Give free GPUs out; once a round make way for those of higher queues."""
        self._account(world)
        facts = world.facts
        start_in_order(world, lambda job, _: (self._queue(job), facts.submit_s[job], job))
        if world.now_s >= self._next_s:
            self._next_s = world.now_s + world.rules.round_s
            self._reorder(world)
            start_in_order(world, lambda job, _: (self._queue(job), facts.submit_s[job], job))
        self._since = dict.fromkeys(world.runs, world.now_s)

    def wakes_at(self, world: World) -> int | None:
        """The next round, as long as anybody waits."""
        return max(world.now_s + 1, self._next_s) if world.lines.count else None

    def _account(self, world: World) -> None:
        """Add what running jobs have had since the last time."""
        for j, since in self._since.items():
            run = world.runs.get(j)
            if run is not None:
                self._had[j] = self._had.get(j, 0) + run.gpus * (world.now_s - since)

    def _queue(self, job: int) -> int:
        had = self._had.get(job, 0)
        return sum(had >= most for most in QUEUES_GPU_S)

    def _reorder(self, world: World) -> None:
        facts = world.facts
        waiting = sorted(world.lines.waiting, key=lambda j: (self._queue(j), facts.submit_s[j], j))
        hopeless: set[tuple[int, int]] = set()
        for job in waiting:
            queue, shape = self._queue(job), facts.shape[job]
            if queue == len(QUEUES_GPU_S):
                return
            if (queue, shape) in hopeless:
                continue
            lower = [v for v in world.runs if facts.resumable[v] and self._queue(v) > queue]
            lower.sort(key=lambda v: (-self._queue(v), -facts.submit_s[v], -v))
            if world.place_best(job) is not None or not make_way(world, job, lower):
                hopeless.add((queue, shape))
