"""Better plans around the best one: free a few groups, hold all others, let CP-SAT decide (large neighbourhood search)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from evenhand.program.variables import Program
from evenhand.shapes import IntArray

FREED = 1_000
"""Moves freed at a time, a group's all together."""
SPREAD = 0.25
"""Weight of a group on which plan and LP agree, against one GPU of disagreement."""


class Neighbourhoods:
    """Draws groups to free, those first on which the LP disagrees with the plan; the same seed draws the same."""

    def __init__(self, program: Program, relaxed: npt.NDArray[np.float64], seed: int) -> None:
        moves = program.columns.moves
        self._columns = np.array([m.column for m in moves], dtype=np.int64)
        self._groups = np.array([int(program.snapshot.group[m.unit.job]) for m in moves], dtype=np.int64)
        self._gpus = np.array([m.gpus for m in moves], dtype=np.float64)
        self._relaxed = relaxed
        self._random = np.random.Generator(np.random.PCG64(seed))
        self.size = len(moves)
        self.count = len(np.unique(self._groups))

    def around(self, x: IntArray) -> Iterator[IntArray]:
        """Endlessly: the move columns to hold at their values in x."""
        apart = np.abs(self._relaxed[self._columns] - x[self._columns]) * self._gpus
        names, which = np.unique(self._groups, return_inverse=True)
        weight = np.bincount(which, weights=apart, minlength=len(names)) + SPREAD
        sizes = np.bincount(which, minlength=len(names))
        while True:
            drawn = self._random.choice(len(names), size=len(names), replace=False, p=weight / weight.sum())
            freed = np.cumsum(sizes[drawn])
            yield self._columns[~np.isin(which, drawn[: 1 + int(np.searchsorted(freed, FREED))])]
