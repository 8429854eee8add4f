"""O4's handover: a higher priority may take over from a lower one of its own group.

For each cut between adjacent priorities of a leaf: h <= GPUs started above, h <= GPUs preempted below; h is rewarded.
"""

from __future__ import annotations

import numpy as np

from evenhand.outcome import ARRIVALS
from evenhand.program.prices import SCALE
from evenhand.program.variables import CODE, Program, spans
from evenhand.shapes import IntArray
from evenhand.snapshot import Snapshot
from evenhand.solvers.linear_model import FREE


def applies(program: Program) -> bool:
    """Whether some group has jobs of several priorities."""
    s = program.snapshot
    return bool((s.level_count[s.budgeted] > 1).any())


def add_rows(program: Program) -> None:
    """Two rows per leaf and cut that has starters above and stoppable jobs below."""
    s, model, moves = program.snapshot, program.model, program.columns.moves
    several = s.budgeted & (s.level_count > 1)
    stoppable = several & s.running & ~s.pinned & ~s.hit
    arrives = np.isin(moves.kind, [CODE[move] for move in ARRIVALS])
    start = np.flatnonzero((several & (s.pending | s.hit))[moves.job] & arrives)
    stay, runs = np.flatnonzero(stoppable[moves.job]), np.flatnonzero(stoppable)
    cuts = _Cuts(s, runs, moves.job[start])
    above, above_cut = cuts.below(moves.job[start], start)
    below, below_cut = cuts.above(moves.job[stay], stay)
    stops, stops_cut = cuts.above(runs, runs)
    count = len(cuts.group)
    most = np.bincount(stops_cut, s.held[stops], count).astype(np.int64)
    levels = np.zeros(count, dtype=np.int64)
    levels[stops_cut] = s.level_count[stops]
    price = [round(program.prices.handover(n) * SCALE) for n in levels.tolist()]

    def name(cut: int) -> str:
        return f"O4[{s.tree.ids[int(cuts.group[cut])]} cut {cuts.rank[cut]}]"

    taken = model.columns(count, 0, most, price, name) + np.arange(count)
    row = np.concatenate([np.arange(2 * count), 2 * above_cut, 2 * below_cut + 1])
    columns = np.concatenate([np.repeat(taken, 2), moves.column[above], moves.column[below]])
    held = s.held[moves.job[below]]
    values = np.concatenate([np.ones(2 * count, dtype=np.int64), -moves.gpus[above], held])
    order = np.argsort(row, kind="stable")
    upper = np.zeros(2 * count, dtype=np.int64)
    upper[1::2] = most
    model.rows(np.bincount(row), columns[order], values[order], -FREE, upper, lambda k: name(k // 2))


class _Cuts:
    """Cuts between the lowest rank that may stop and the highest that may start, group by group.

    Attributes
    ----------
    group, rank : of each cut, the lowest rank above it, int [C].
    """

    def __init__(self, snapshot: Snapshot, stops: IntArray, starts: IntArray) -> None:
        self._s = s = snapshot
        groups = len(s.tree.ids)
        self._lowest: IntArray = np.full(groups, np.iinfo(np.int64).max)
        np.minimum.at(self._lowest, s.group[stops], s.level_rank[stops])
        highest = np.zeros(groups, dtype=np.int64)
        np.maximum.at(highest, s.group[starts], s.level_rank[starts])
        self._count = np.where(self._lowest < highest, highest - self._lowest, 0)
        self._first = np.cumsum(self._count) - self._count
        self.group = np.repeat(np.arange(groups), self._count)
        self.rank = 1 + self._lowest[self.group] + spans(np.zeros(groups, dtype=np.int64), self._count)

    def below(self, jobs: IntArray, what: IntArray) -> tuple[IntArray, IntArray]:
        """For all cuts below each job: what it brings, and the cut."""
        g = self._s.group[jobs]
        many = np.clip(self._s.level_rank[jobs] - self._lowest[g], 0, self._count[g])
        return np.repeat(what, many), spans(self._first[g], many)

    def above(self, jobs: IntArray, what: IntArray) -> tuple[IntArray, IntArray]:
        """For all cuts above each job: what it brings, and the cut."""
        g = self._s.group[jobs]
        passed = np.minimum(self._s.level_rank[jobs] - self._lowest[g], self._count[g])
        many = self._count[g] - passed
        return np.repeat(what, many), spans(self._first[g] + passed, many)
