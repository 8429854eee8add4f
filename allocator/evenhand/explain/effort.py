"""Work that might make room and does not: not worth it, or never settled in time (rules O5, O6, R1, R2)."""

from __future__ import annotations

import numpy as np

from evenhand.explain.aftermath import PAST, Aftermath
from evenhand.explain.causes import Physical
from evenhand.explain.clearing import Clearing, Staying, Yard
from evenhand.explain.ranks import Ranks
from evenhand.explain.words import gpus, listed, named, number, reason
from evenhand.program.index import may_move
from evenhand.shapes import BoolArray, IntArray
from evenhand_models import Reason, ReasonCode

Judged = tuple[str, tuple[int, ...]]
"""What would be done, and to which jobs."""


class Effort:
    """Which running work could be stopped or moved for a waiting gang."""

    def __init__(self, aftermath: Aftermath, ranks: Ranks) -> None:
        self._a = aftermath
        self._s = s = aftermath.snapshot
        self._ranks = ranks
        h = aftermath.holdings
        rows = np.flatnonzero((h.until_s <= PAST) & ~h.new & ~s.hit[h.job])
        job = h.job[rows]
        self._staying = Staying(job, h.node[rows], h.gpus[rows], (s.lost_s * s.held).tolist())
        jobs, which = np.unique(job, return_inverse=True)
        moves = np.array([s.running[j] and may_move(s, j) for j in jobs.tolist()], dtype=bool)
        self._movable: BoolArray = moves.reshape(len(jobs))[which.reshape(-1)]
        self._loose: BoolArray = ~s.budgeted[job]
        self._holder: IntArray = s.group[job]
        self._level: IntArray = s.level_rank[job]
        self._owned: IntArray = np.argsort(self._holder, kind="stable")
        self._first: IntArray = np.searchsorted(self._holder[self._owned], np.arange(len(s.tree.ids) + 1))
        self._lines = self._past_protection(jobs)
        self._gives: tuple[tuple[int, int], BoolArray] | None = None
        self._wider: tuple[BoolArray, BoolArray] | None = None
        self._yards: dict[bytes, Yard] = {}
        self._clearings: dict[int, tuple[Clearing, ...]] = {}
        self._said: dict[Judged, Reason | None] = {}

    def _past_protection(self, jobs: IntArray) -> IntArray:
        """Group and level of the budgeted jobs past protection as one number each, ascending, int."""
        s = self._s
        jobs = jobs[s.budgeted[jobs] & ~s.pinned[jobs]]
        self._levels = int(s.level_rank.max(initial=0)) + 1
        return np.sort(s.group[jobs] * self._levels + s.level_rank[jobs])

    def below(self, group: IntArray, level_rank: IntArray) -> IntArray:
        """How many running jobs past protection have a lower priority in the group; arrays of one shape."""
        start = np.searchsorted(self._lines, group * self._levels)
        return np.searchsorted(self._lines, group * self._levels + level_rank) - start

    def _giving(self, group: int, budgeted: bool, level_rank: int) -> BoolArray:
        """Rows past protection whose jobs have no better claim than the waiting one, bool [S]."""
        if not budgeted:
            return self._loose
        if self._gives is None or self._gives[0] != (group, level_rank):  # asked for group by group
            found = self._loose | ~self._ranks.view(group).first[self._holder]
            own = self._owned[self._first[group] : self._first[group + 1]]
            found[own] = self._loose[own] | (self._level[own] < level_rank)
            self._gives = (group, level_rank), found
        return self._gives[1]

    def reason(self, group: int, budgeted: bool, level_rank: int, physical: Physical) -> Reason | None:
        """Say which work would have to stop or move, if that would make room."""
        clearings = self._clearings.get(physical.number)
        if clearings is None:
            clearings = self._clearings[physical.number] = self._all_clearings(physical)
        gives = self._giving(group, budgeted, level_rank)
        found = _first_found(clearings, gives)
        if found:
            return self._say("stop", found)
        if physical.total_free < physical.ground.shape.least:
            return None
        if self._wider is None or self._wider[0] is not gives:
            self._wider = gives, gives | self._movable
        found = _first_found(clearings, self._wider[1])
        return self._say("move", found) if found else None

    def _all_clearings(self, physical: Physical) -> tuple[Clearing, ...]:
        """One for each domain in which the shape could ever stand."""
        ground, found = physical.ground, []
        regular = ground.shape.worker is not None or ground.shape.per_node is not None
        for domain in ground.domains:
            nodes = domain.nodes[ground.usable[domain.nodes]]
            if nodes.size and (regular or domain.needs):
                key = nodes.tobytes()
                yard = self._yards.get(key)
                if yard is None:
                    yard = self._yards[key] = Yard(self._staying, nodes, physical.free)
                found.append(Clearing(self._staying, yard, ground, domain))
        return tuple(found)

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


def _first_found(clearings: tuple[Clearing, ...], gives: BoolArray) -> tuple[int, ...]:
    """Jobs to clear from the first domain that can be cleared."""
    for clearing in clearings:
        found = clearing.victims(gives)
        if found:
            return found
    return ()
