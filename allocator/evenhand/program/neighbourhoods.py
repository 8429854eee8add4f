"""Better plans around the best one: free a few groups, hold all others, let CP-SAT decide (large neighbourhood search)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evenhand.program.variables import Program
from evenhand.shapes import IntArray

FREED_AT_FIRST = 150
MOST_FREED = 2_000
LEAST_FREED = 40
GROWTH = 1.15
"""By how much more is freed after a neighbourhood that was decided to the end, and less after one that was not."""
GROUPS_AT_LEAST = 4
"""So many groups share what is freed: of larger ones only the moves that cost least against the LP."""
SPREAD = 0.25
"""Weight of a group on which plan and LP agree, against one GPU of disagreement."""


class Neighbourhoods:
    """Draws groups to free, those first on which the LP disagrees with the plan; the same seed draws the same.

    How much is freed follows what the solver can decide within its effort.
    """

    def __init__(
        self, program: Program, relaxed: npt.NDArray[np.float64], reduced_cost: npt.NDArray[np.float64], seed: int
    ) -> None:
        moves = program.columns.moves
        self._columns = np.array([m.column for m in moves], dtype=np.int64)
        groups = np.array([int(program.snapshot.group[m.unit.job]) for m in moves], dtype=np.int64)
        names, which = np.unique(groups, return_inverse=True)
        self._which = which.reshape(-1)
        self._sizes = np.bincount(self._which, minlength=len(names))
        order = np.lexsort((np.abs(reduced_cost[self._columns]), self._which))
        first = np.concatenate(([0], np.cumsum(self._sizes)[:-1]))
        self._rank = np.empty(len(order), dtype=np.int64)
        """Place of each move in its group, by reduced cost."""
        self._rank[order] = np.arange(len(order)) - first[self._which[order]]
        self._gpus = np.array([m.gpus for m in moves], dtype=np.float64)
        self._relaxed = relaxed
        self._random = np.random.Generator(np.random.PCG64(seed))
        self._freed = float(FREED_AT_FIRST)

    def draw(self, x: IntArray) -> IntArray:
        """The move columns to hold at their values in x."""
        apart = np.abs(self._relaxed[self._columns] - x[self._columns]) * self._gpus
        weight = np.bincount(self._which, weights=apart, minlength=len(self._sizes)) + SPREAD
        drawn = self._random.choice(len(weight), size=len(weight), replace=False, p=weight / weight.sum())
        most = max(1, int(self._freed / GROUPS_AT_LEAST))
        freed = np.cumsum(np.minimum(self._sizes[drawn], most))
        chosen = np.isin(self._which, drawn[: 1 + int(np.searchsorted(freed, self._freed))])
        return self._columns[~(chosen & (self._rank < most))]

    def learn(self, *, decided: bool) -> None:
        """Free more next time if this neighbourhood was decided to the end, else less."""
        self._freed *= GROWTH if decided else 1 / GROWTH
        self._freed = min(max(self._freed, LEAST_FREED), MOST_FREED)
