"""Work that might make room and does not: not worth it, or never settled in time (rules O5, O6, R1, R2)."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable
from hashlib import blake2b

import numpy as np

from evenhand.explain.aftermath import Aftermath
from evenhand.explain.causes import Physical
from evenhand.explain.crowd import Crowd
from evenhand.explain.ground import Domain
from evenhand.explain.ranks import Ranks
from evenhand.explain.words import gpus, listed, named, number, reason
from evenhand.program.index import may_move
from evenhand.shapes import BoolArray, IntArray
from evenhand_models import Reason, ReasonCode

_MOST_KEPT = 1_000
"""Longer lists of rows are worked out again rather than kept."""
Judged = tuple[str, tuple[int, ...]]
"""What would be done, and to which jobs; no jobs where it would not help."""


class Effort:
    """Which running work could be stopped or moved for a waiting gang."""

    def __init__(self, aftermath: Aftermath, ranks: Ranks) -> None:
        self._a = aftermath
        self._s = aftermath.snapshot
        self._ranks = ranks
        s, h = self._s, aftermath.holdings
        moves = np.array([s.running[j] and may_move(s, int(j)) for j in range(len(s.jobs))], dtype=bool)
        self._movable: BoolArray = moves[h.job]
        self._loss: list[float] = (s.lost_s * s.held).tolist()
        self._levels: dict[int, list[int]] = defaultdict(list)
        for j in np.unique(h.job[~h.new]):
            if s.budgeted[j] and not s.pinned[j] and not s.hit[j]:
                self._levels[int(s.group[j])].append(int(s.level_rank[j]))
        for line in self._levels.values():
            line.sort()
        self._stops: dict[tuple[int, int, int], IntArray] = {}
        self._said: dict[Judged, Reason | None] = {}
        self._tried: dict[tuple[int, bytes], tuple[int, ...]] = {}

    def below(self, group: int, level_rank: int) -> int:
        """How many running jobs past protection have a lower priority in the group."""
        return bisect_left(self._levels.get(group, []), level_rank)

    def _stoppable(self, group: int, budgeted: bool, level_rank: int, crowd: Crowd) -> IntArray:
        """Holdings past protection whose jobs have no better claim than the waiting one."""
        key = (crowd.number, group if budgeted else -1, self.below(group, level_rank) if budgeted else 0)
        if key not in self._stops:
            s, rows = self._s, crowd.staying
            jobs = self._a.holdings.job[rows]
            chosen = ~s.budgeted[jobs]
            if budgeted:
                holder = s.group[jobs]
                younger = s.level_rank[jobs] < level_rank
                chosen |= np.where(holder == group, younger, ~self._ranks.view(group).first[holder])
            if not budgeted or np.count_nonzero(chosen) <= _MOST_KEPT:
                self._stops[key] = rows[chosen]
            return rows[chosen]
        return self._stops[key]

    def reason(self, group: int, budgeted: bool, level_rank: int, physical: Physical) -> Reason | None:
        """Say which work would have to stop or move, if that would make room."""
        staying = physical.crowd.staying
        if not staying.size:
            return None
        stop = self._stoppable(group, budgeted, level_rank, physical.crowd)
        found = self._victims(physical, stop)
        if found:
            return self._say("stop", found)
        if physical.total_free < physical.ground.shape.least:
            return None
        found = self._victims(physical, np.union1d(stop, staying[self._movable[staying]]))
        return self._say("move", found) if found else None

    def _victims(self, physical: Physical, rows: IntArray) -> tuple[int, ...]:
        """Few jobs among some holdings without which the gang would stand; empty if it would not."""
        if not rows.size:
            return ()
        key = (physical.number, blake2b(rows.tobytes(), digest_size=16).digest())  # lists of rows are long
        if key not in self._tried:
            stand = physical.ground.stands(self._without(physical.free, rows))
            self._tried[key] = () if stand is None else self._few(physical, rows, stand.domain)
        return self._tried[key]

    def _few(self, physical: Physical, rows: IntArray, domain: Domain) -> tuple[int, ...]:
        """Jobs on as few nodes as will do, those that lose least first."""
        h, s, free = self._a.holdings, self._s, physical.free
        after = self._without(free, rows)
        nodes = domain.nodes[after[domain.nodes] > free[domain.nodes]]
        nodes = nodes[np.lexsort((nodes, -free[nodes], after[nodes] < physical.ground.unit))]
        if physical.ground.unit == physical.ground.shape.least:
            return self._few_on(rows[h.node[rows] == nodes[0]], int(physical.ground.unit - free[nodes[0]]))
        place = np.full(len(s.nodes), len(s.nodes), dtype=np.int64)
        place[nodes] = np.arange(len(nodes))
        rank = place[h.node[rows]]
        count = _fewest(len(nodes), lambda k: self._holds(physical, domain, rows[rank < k]))
        rows = rows[rank < count]
        jobs = self._by_loss({int(j) for j in h.job[rows]})
        at = {j: i for i, j in enumerate(jobs)}
        rank = np.array([at[int(j)] for j in h.job[rows]], dtype=np.int64)
        count = _fewest(len(jobs), lambda k: self._holds(physical, domain, rows[rank < k]))
        return tuple(jobs[:count])

    def _few_on(self, rows: IntArray, missing: int) -> tuple[int, ...]:
        """Jobs on one node that together hold what is missing there."""
        h = self._a.holdings
        on: dict[int, int] = defaultdict(int)
        for j, held in zip(h.job[rows].tolist(), h.gpus[rows].tolist(), strict=True):
            on[j] += held
        found = []
        for j in self._by_loss(on):
            if missing > 0:
                found.append(j)
                missing -= on[j]
        return tuple(found)

    def _by_loss(self, jobs: Iterable[int]) -> list[int]:
        """Jobs by the work that a stop would lose, then id."""
        loss = self._loss
        return sorted(jobs, key=lambda j: (loss[j], j))

    def _without(self, free: IntArray, rows: IntArray) -> IntArray:
        h = self._a.holdings
        freed = np.bincount(h.node[rows], weights=h.gpus[rows], minlength=len(free))
        return free + freed.astype(np.int64)

    def _holds(self, physical: Physical, domain: Domain, rows: IntArray) -> bool:
        return physical.ground.size_in(domain, self._without(physical.free, rows)) is not None

    def _say(self, doing: str, jobs: tuple[int, ...]) -> Reason | None:
        key = (doing, jobs)
        if key not in self._said:
            self._said[key] = self._sentence(doing, jobs)
        return self._said[key]

    def _sentence(self, doing: str, jobs: tuple[int, ...]) -> Reason:
        s, chosen = self._s, list(jobs)
        names = [s.jobs[j].id for j in jobs]
        lost = number(float((s.lost_s[chosen] * s.held[chosen]).sum()) / 3600)
        stake = f"{gpus(int(s.held[chosen].sum()))}, {lost} GPU-hours of work at stake"
        aim = "make room for it" if doing == "stop" else "put free GPUs together for it"
        if self._a.optimal:
            does = "Stopping" if doing == "stop" else "Moving or stopping"
            message = f"{does} {named('job', names)} ({stake}) would {aim}, but costs more than its start brings."
            return reason(ReasonCode.NOT_WORTH_MOVING, message, names[:10])
        message = (
            f"The search of this round ended before it was settled whether {listed(names)} ({stake}) "
            f"should stop or move to {aim}."
        )
        return reason(ReasonCode.TIME_LIMIT, message, names[:10])


def _fewest(most: int, enough: Callable[[int], bool]) -> int:
    """Return the least k with enough(k), given that it holds at `most` and stays true from then on."""
    low, high = 0, most
    while low < high:
        middle = (low + high) // 2
        if enough(middle):
            high = middle
        else:
            low = middle + 1
    return low
