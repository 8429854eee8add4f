"""Work that might make room and does not: not worth it, or never settled in time (rules O5, O6, R1, R2)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from evenhand.explain.aftermath import PAST, Aftermath
from evenhand.explain.causes import Physical
from evenhand.explain.clearing import Clearing
from evenhand.explain.giving import Giving
from evenhand.explain.ground import Domain
from evenhand.explain.ranks import Ranks
from evenhand.explain.words import gpus, listed, named, number, reason
from evenhand.explain.yard import Staying, Yard
from evenhand.shapes import IntArray
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
        self._giving = Giving(aftermath, ranks, self._staying)
        self._lines = self._past_protection(np.unique(job))
        self._yards: dict[bytes, Yard] = {}
        self._clearings: dict[object, Clearing] = {}
        self._of: dict[int, tuple[Clearing, ...]] = {}
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

    def foresee(self, askers: Iterable[tuple[int, int]]) -> None:
        """Say which groups and levels of budgeted jobs will ask, in the order in which they will, by group."""
        self._giving.foresee(askers)

    def reason(self, group: int, budgeted: bool, level_rank: int, physical: Physical) -> Reason | None:
        """Say which work would have to stop or move, if that would make room."""
        clearings = self._of.get(physical.number)
        if clearings is None:
            clearings = self._of[physical.number] = self._all_clearings(physical)
        gives, asker = self._giving.to(group, budgeted, level_rank)
        for clearing in clearings:
            if found := clearing.victims(gives, asker):
                return self._say("stop", found)
        if physical.total_free < physical.ground.shape.least:
            return None
        gives = gives.wider
        for clearing in clearings:
            if found := clearing.victims(gives, asker):
                return self._say("move", found)
        return None

    def _all_clearings(self, physical: Physical) -> tuple[Clearing, ...]:
        """One for each domain in which the shape could ever stand."""
        ground, found = physical.ground, []
        regular = ground.shape.worker is not None or ground.shape.per_node is not None
        for domain in ground.domains:
            nodes = domain.nodes[ground.usable[domain.nodes]]
            if nodes.size and (regular or domain.needs):
                found.append(self._clearing(physical, domain, nodes))
        return tuple(found)

    def _clearing(self, physical: Physical, domain: Domain, nodes: IntArray) -> Clearing:
        """Clear some nodes for a gang, whatever else jobs of its shape may use."""
        ground, shape, yard = physical.ground, physical.ground.shape, nodes.tobytes()
        key = (yard, ground.unit, shape.least, shape.worker, shape.per_node, domain.needs, domain.nodes.size)
        known = self._clearings.get(key)
        if known is None:
            if yard not in self._yards:
                self._yards[yard] = Yard(self._staying, nodes, physical.free)
            known = self._clearings[key] = Clearing(self._staying, self._yards[yard], ground.unit, shape, domain)
        return known

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
