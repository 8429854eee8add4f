"""Why a pending job waits: all binding causes, worked out once for each kind of job."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import repeat
from typing import NamedTuple

import numpy as np

from evenhand.entitlement import distinct_rows
from evenhand.explain.aftermath import Aftermath
from evenhand.explain.answer import Explanation
from evenhand.explain.causes import Physical
from evenhand.explain.change import Changes
from evenhand.explain.claims import Claims
from evenhand.explain.crowd import Crowd
from evenhand.explain.effort import Effort
from evenhand.explain.ending import Ending
from evenhand.explain.ground import Ground, Shape
from evenhand.explain.lines import Lines
from evenhand.explain.obstacles import Nodes, Obstacles
from evenhand.explain.ranks import Ranks
from evenhand.explain.timeline import LimitTimes, Timeline
from evenhand.explain.words import instant, stamp_s
from evenhand.program.index import Index, number_rows, sizes_of
from evenhand.program.pools import Ask
from evenhand.shapes import IntArray
from evenhand_models import Reason


class Kind(NamedTuple):
    """All that decides why a job waits but its place in its group's line."""

    shape: int
    group: int
    budgeted: bool
    level_rank: int
    reserved_type: int


class Verdict(NamedTuple):
    """Causes of one kind: those before and after the place in line; earliest start and cheapest change.

    `stuck`: whether others would have to stop or move for it, of whom the causes do not speak yet.
    """

    before: tuple[Reason, ...]
    line: bool
    stuck: bool
    beside: tuple[Reason, ...]
    earliest_start_at: datetime | None
    cheapest_change: str | None


class Waiting:
    """Explains waits; everything is worked out once per kind."""

    def __init__(self, aftermath: Aftermath, index: Index, ranks: Ranks) -> None:
        self._a = aftermath
        s = self._s = aftermath.snapshot
        self._index = index
        self._nodes = Nodes(aftermath)
        self._timelines = {kind: Timeline(aftermath, budgeted=kind) for kind in (True, False)}
        self._limit_times = LimitTimes(aftermath)
        self._claims = Claims(aftermath, ranks)
        self._lines = Lines(aftermath)
        self._ending = Ending(aftermath)
        self._effort = Effort(aftermath, ranks)
        self._shapes: list[Shape] = []
        self._grounds: dict[int, Ground] = {}
        self._physical: dict[tuple[int, bool], Physical] = {}
        self._obstacles: dict[int, Obstacles] = {}
        self._changes: dict[int, Changes] = {}
        self._crowds: dict[bytes, Crowd] = {}
        self._groups: dict[int, IntArray] = {}
        self._ways: dict[tuple[int, bool], tuple[datetime | None, str | None]] = {}
        self._verdicts: dict[tuple[int, int, bool, int], Verdict] = {}
        table = aftermath.table
        waits = s.pending[table.job] & (table.gpus == 0)
        self._jobs: IntArray = table.job[waits]
        self._reserved: IntArray = table.reserved_type[waits]
        self._wanting = s.fits[self._jobs].sum(axis=0)

    def explain(self) -> Iterator[tuple[int, Explanation]]:
        """Reasons, earliest start and cheapest change of every waiting job; by group, then kind, then job."""
        order, starts, kinds = self._kinds()
        bounds = [*starts, len(order)]
        types = [self._shapes[kind.shape].types for kind in kinds]
        runs, waits = self._lines.ahead(self._jobs[order], types, np.diff(bounds))
        jobs = self._jobs[order].tolist()
        self._effort.foresee((kind.group, kind.level_rank) for kind in kinds if kind.budgeted)
        for kind, of, start, end in zip(kinds, types, bounds, bounds[1:], strict=False):
            verdict = self._judge(kind)
            before, beside = verdict.before, self._beside(kind, verdict)
            at, change = verdict.earliest_start_at, verdict.cheapest_change
            first = Explanation((*before, *beside), at, change)
            if not verdict.line:
                yield from zip(jobs[start:end], repeat(first))
                continue
            comes = self._lines.seen(kind.group, kind.budgeted, of).reason
            for job, running, waiting in zip(jobs[start:end], runs[start:end], waits[start:end], strict=True):
                if running or waiting:
                    yield job, Explanation((*before, comes(running, waiting), *beside), at, change)
                else:
                    yield job, first

    def _kinds(self) -> tuple[IntArray, list[int], list[Kind]]:
        """Waiting jobs in the order of their kinds, where each kind starts in it, and the kinds, by group."""
        s, jobs = self._s, self._jobs
        group, budgeted, level = s.group[jobs], s.budgeted[jobs], s.level_rank[jobs]
        shape = self._number_shapes()[jobs]
        below = np.where(budgeted, self._effort.below(group, level), 0)
        columns = np.stack((group, below, budgeted, shape, self._reserved))
        order = np.lexsort(columns[::-1])
        columns = columns[:, order]
        changes = (columns[:, 1:] != columns[:, :-1]).any(axis=0)
        starts = np.concatenate(([0], np.flatnonzero(changes) + 1))[: len(jobs)]
        eldest = order[starts]
        parts = (shape[eldest], group[eldest], budgeted[eldest], level[eldest], self._reserved[eldest])
        self._groups = self._by_crowd(shape[eldest], group[eldest])
        return order, starts.tolist(), list(map(Kind, *(p.tolist() for p in parts)))

    def _number_shapes(self) -> IntArray:
        """Number of the shape of each job that may wait, else -1, int [J]."""
        s, index = self._s, self._index
        units = len(index.pending)
        eldest, count = index.eldest[:units], index.count[:units]
        masks = distinct_rows(s.fits)[1] if len(s.jobs) else np.zeros(0, dtype=np.int64)
        alike = number_rows(np.vstack([index.ask[eldest], s.shape[eldest], masks[eldest]]))
        numbers: dict[Shape, int] = {}
        found = [numbers.setdefault(self._shape_of(j), len(numbers)) for j in _firsts(alike, eldest)]
        self._shapes = list(numbers)
        shape_of = np.full(len(s.jobs), -1, dtype=np.int64)
        shape_of[index.jobs[: int(index.first[units])]] = np.repeat(np.array(found, dtype=np.int64)[alike], count)
        return shape_of

    def _shape_of(self, job: int) -> Shape:
        s, asked = self._s, self._s.jobs[job]
        ask = self._index.asks[self._index.ask[job]]
        types = tuple(np.flatnonzero(s.fits[job]).tolist())
        lasting = Ask(ask.where, ask.stay_s if self._nodes.any_closing else 0)
        return Shape(lasting, types, tuple(sizes_of(s, job)), asked.worker_gpus, asked.gpus_per_node)

    def _physics(self, shape: int, budgeted: bool) -> Physical:
        key = (shape, budgeted)
        found = self._physical.get(key)
        if found is None:
            obstacles = self._obstacles.get(shape)
            if obstacles is None:
                obstacles = self._obstacles[shape] = Obstacles(self._a, self._nodes, self._ground(shape))
            crowd, number = self._crowd(obstacles.ground), len(self._physical)
            found = self._physical[key] = Physical(self._a, self._timelines[budgeted], obstacles, crowd, number)
            if shape not in self._changes:
                contested = bool((self._wanting[list(self._shapes[shape].types)] > 1).any())
                self._changes[shape] = Changes(self._s, found, self._a.free, contested)
        return found

    def _ground(self, shape: int) -> Ground:
        found = self._grounds.get(shape)
        if found is None:
            found = self._grounds[shape] = Ground(self._s, self._index, self._shapes[shape])
        return found

    def _crowd(self, ground: Ground) -> Crowd:
        key = ground.usable.tobytes()
        if key not in self._crowds:
            self._crowds[key] = Crowd(self._a, ground.usable, len(self._crowds))
        return self._crowds[key]

    def _by_crowd(self, shape: IntArray, group: IntArray) -> dict[int, IntArray]:
        """Groups with jobs that could use the nodes of each crowd, ascending."""
        crowds = np.array([self._crowd(self._ground(k)).number for k in range(len(self._shapes))], dtype=np.int64)
        pairs = np.unique(np.stack((crowds[shape], group)), axis=1)
        numbers, first = np.unique(pairs[0], return_index=True)
        parts = np.split(pairs[1], first[1:]) if numbers.size else []
        return dict(zip(numbers.tolist(), parts, strict=True))

    def _judge(self, kind: Kind) -> Verdict:
        """What kinds that differ in their level alone have in common."""
        key = (kind.shape, kind.group, kind.budgeted, kind.reserved_type)
        found = self._verdicts.get(key)
        if found is None:
            found = self._verdicts[key] = self._verdict(kind)
        return found

    def _verdict(self, kind: Kind) -> Verdict:
        physical = self._physics(kind.shape, kind.budgeted)
        stand = physical.stand
        size = stand.size if stand is not None else physical.ground.shape.least
        blocked = self._claims.limits(kind.group, size)
        reserved, first, over = kind.reserved_type >= 0, None, None
        before = self._claims.limit_reasons(blocked, size) if blocked else []
        if reserved:
            before.append(self._ending.reason(kind.reserved_type))
        before += physical.before
        if stand is None:
            first = self._claims.rivals(kind.group, kind.budgeted, physical.crowd, self._groups[physical.crowd.number])
            over = self._claims.over(kind.group, physical.least_charged) if kind.budgeted else None
            before += [r for r in (first, over) if r is not None]
        elif not blocked:
            before.append(physical.idle)
        due = first is None and over is None
        if blocked or reserved:
            way = self._way(kind, physical, blocked, due, size)
        else:  # the same for all groups
            key = (physical.number, due)
            known = self._ways.get(key)
            way = self._ways[key] = self._way(kind, physical, blocked, due, size) if known is None else known
        stuck = stand is None and not blocked and not reserved
        return Verdict(tuple(before), stand is None or bool(blocked), stuck, physical.beside, *way)

    def _way(
        self, kind: Kind, physical: Physical, blocked: list[tuple[int, int]], due: bool, size: int
    ) -> tuple[datetime | None, str | None]:
        """Earliest start and cheapest change; `due`: whether neither rank nor entitlement puts others before it."""
        earliest = self._earliest(kind, physical, blocked, size)
        change = self._change(kind, physical, blocked, due, earliest)
        return None if earliest is None else instant(earliest), change

    def _beside(self, kind: Kind, verdict: Verdict) -> tuple[Reason, ...]:
        """Causes after the place in line: work that might make room, and nodes."""
        effort = None
        if verdict.stuck:
            physical = self._physical[kind.shape, kind.budgeted]
            effort = self._effort.reason(kind.group, kind.budgeted, kind.level_rank, physical)
        return verdict.beside if effort is None else (effort, *verdict.beside)

    def _earliest(self, kind: Kind, physical: Physical, blocked: list[tuple[int, int]], size: int) -> float | None:
        """The later of: enough GPUs are free of protection, and limits leave room; seconds since 1970."""
        found = physical.earliest_s
        if kind.reserved_type >= 0:
            found = self._ending.enough_s(physical, kind.reserved_type)
        for c, _ in blocked:
            at = self._limit_times.earliest(c, size)
            found = None if at is None or found is None else max(found, at)
        return found

    def _change(
        self,
        kind: Kind,
        physical: Physical,
        blocked: list[tuple[int, int]],
        due: bool,
        earliest: float | None,
    ) -> str | None:
        """What would start it: limits raised, and room made."""
        s = self._s
        raised = [f"max_gpus of {s.tree.ids[c]} from {s.tree.groups[c].max_gpus} to {n}" for c, n in blocked]
        limits = f"raise {' and '.join(raised)}" if raised else None
        if physical.stand is not None:
            if limits is None and not self._a.optimal:
                return f"a time_limit_s above {s.policy.time_limit_s:g}"
            return limits
        room = self._room(kind, physical, due and not blocked, earliest)
        if limits is None or room is None:
            return None if limits is not None else room
        return f"{limits}, and {room}"

    def _room(self, kind: Kind, physical: Physical, due: bool, earliest: float | None) -> str | None:
        s, changes = self._s, self._changes[kind.shape]
        waits = earliest is not None and earliest > s.now_s
        if kind.reserved_type >= 0 and waits and earliest is not None:
            return f"wait until {stamp_s(earliest)}, when {self._ending.named(kind.reserved_type)}"
        if due and kind.budgeted and waits and earliest is not None:
            opened = changes.opened
            ending = physical.crowd.ending(earliest)
            if opened is None and ending:
                return changes.wait(ending, earliest)
        return changes.room


def _firsts(numbers: IntArray, jobs: IntArray) -> list[int]:
    """The first of the jobs with each number; numbers rise from 0 in the order in which they first appear."""
    _, places = np.unique(numbers, return_index=True)
    found: list[int] = jobs[places].tolist()
    return found
