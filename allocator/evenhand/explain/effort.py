"""Work that might make room and does not: not worth it, or never settled before the search ended (rules O5, O6, R1, R2)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evenhand.explain.aftermath import Aftermath
from evenhand.explain.causes import Physical
from evenhand.explain.ground import Domain
from evenhand.explain.ranks import Ranks
from evenhand.explain.words import gpus, listed, named, number, reason
from evenhand.program.index import may_move
from evenhand.shapes import BoolArray, IntArray
from evenhand_models import Reason, ReasonCode


class Effort:
    """Which running work could be stopped or moved for a waiting gang."""

    def __init__(self, aftermath: Aftermath, ranks: Ranks) -> None:
        self._a = aftermath
        self._s = aftermath.snapshot
        self._ranks = ranks
        s = self._s
        moves = {j for j, d in aftermath.decisions.items() if d.places and s.running[j] and may_move(s, j)}
        self._movable: BoolArray = np.array([int(j) in moves for j in aftermath.holdings.job], dtype=bool)

    def stoppable(self, group: int, budgeted: bool, level_rank: int, rows: IntArray) -> IntArray:
        """Holdings past protection whose jobs have no better claim than the waiting one."""
        s, h = self._s, self._a.holdings
        rows = rows[~h.new[rows] & ~s.hit[h.job[rows]]]
        jobs = h.job[rows]
        if not budgeted:
            return rows[~s.budgeted[jobs]]
        holder = s.group[jobs]
        own = (holder == group) & (s.level_rank[jobs] < level_rank)
        others = (holder != group) & ~self._ranks.view(group).first[holder]
        found: IntArray = rows[own | others | ~s.budgeted[jobs]]
        return found

    def reason(self, group: int, budgeted: bool, level_rank: int, physical: Physical) -> Reason | None:
        """Say which work would have to stop or move, if that would make room."""
        rows = physical.open_rows
        stop = self.stoppable(group, budgeted, level_rank, rows)
        found = self._victims(physical, stop)
        if found:
            return self._say(found, "Stopping", "make room")
        if int(physical.free.sum()) < physical.ground.shape.least:
            return None
        moved = rows[self._movable[rows] & ~self._a.holdings.new[rows]]
        found = self._victims(physical, np.union1d(stop, moved))
        return self._say(found, "Moving or stopping", "free GPUs together") if found else None

    def _victims(self, physical: Physical, rows: IntArray) -> list[int]:
        """Few jobs among some holdings without which the gang would stand; empty if it would not."""
        if not rows.size:
            return []
        ground, free = physical.ground, physical.free
        stand = ground.stands(self._without(free, rows))
        if stand is None:
            return []
        h = self._a.holdings
        rows = rows[np.isin(h.node[rows], stand.domain.nodes)]
        nodes = self._order(ground.unit, free, self._without(free, rows), stand.domain)
        count = _fewest(
            len(nodes), lambda k: self._holds(physical, stand.domain, rows[np.isin(h.node[rows], nodes[:k])])
        )
        rows = rows[np.isin(h.node[rows], nodes[:count])]
        lost = {int(j): self._lost(int(j)) for j in np.unique(h.job[rows])}
        jobs = sorted(lost, key=lambda j: (lost[j], j))
        count = _fewest(
            len(jobs), lambda k: self._holds(physical, stand.domain, rows[np.isin(h.job[rows], jobs[:k])])
        )
        return jobs[:count]

    def _without(self, free: IntArray, rows: IntArray) -> IntArray:
        h, found = self._a.holdings, free.copy()
        np.add.at(found, h.node[rows], h.gpus[rows])
        return found

    def _holds(self, physical: Physical, domain: Domain, rows: IntArray) -> bool:
        return physical.ground.size_in(domain, self._without(physical.free, rows)) is not None

    @staticmethod
    def _order(unit: int, free: IntArray, after: IntArray, domain: Domain) -> IntArray:
        """Nodes where least has to go first."""
        nodes = domain.nodes[after[domain.nodes] > free[domain.nodes]]
        return nodes[np.lexsort((nodes, -free[nodes], after[nodes] < unit))]

    def _lost(self, job: int) -> float:
        """GPU-hours of work lost if it stops."""
        return float(self._s.lost_s[job]) * int(self._s.held[job]) / 3600

    def _say(self, jobs: list[int], doing: str, aim: str) -> Reason:
        s = self._s
        names = [s.jobs[j].id for j in jobs]
        held = gpus(int(s.held[jobs].sum()))
        lost = number(sum(self._lost(j) for j in jobs))
        if self._a.optimal:
            message = (
                f"{doing} {named('job', names)} ({held}, {lost} GPU-hours of work at stake) would {aim}, "
                "but costs more than its start brings."
            )
            return reason(ReasonCode.NOT_WORTH_MOVING, message, names[:10])
        message = (
            f"The search of this round ended before it was settled whether {listed(names)} ({held}, {lost} GPU-hours "
            f"of work at stake) should stop or move to {aim}."
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
