"""Where a point loses what it is worth less than the bound: in its blocks' plans, and in what blocks share.

At the duals of a bound the Lagrangian is a sum: of each block's best plan, of each shared column at its better bound, of each
shared row at the side that its dual pulls to. A point falls short of the bound by what it falls short of in each of these.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evenhand.program.prices import SCALE
from evenhand.program.shared import Shared
from evenhand.shapes import IntArray

FloatArray = npt.NDArray[np.float64]


class Regrets:
    """What points lose at the duals of a bound (throughput units).

    Parameters
    ----------
    dual : the duals, float [r]; best : value of each block's best plan under them, float [B].

    Attributes
    ----------
    pair_row, pair_block : which blocks stand in which shared rows, int [pairs] each, by row.
    """

    def __init__(self, shared: Shared, dual: FloatArray, best: FloatArray) -> None:
        self._shared, self._dual, self._best = shared, dual, best
        a, blocks = shared.arrays, shared.blocks
        self._reduced = shared.reduced(dual)
        self._entry_row = np.repeat(np.arange(a.shape[0]), np.diff(a.starts))
        self._limit = np.where(dual > 0, a.row_upper, np.where(dual < 0, a.row_lower, 0)).astype(np.float64)
        own = blocks.shared_column[a.columns] & blocks.shared_row[self._entry_row]
        self._own_row, self._own_column = self._entry_row[own], a.columns[own]
        self._own_part = 1.0 / np.bincount(self._own_column, minlength=a.shape[1])[self._own_column]
        block = np.full(a.shape[1], -1, dtype=np.int64)
        block[blocks.column] = blocks.way_block
        ways = ~blocks.shared_column[a.columns] & blocks.shared_row[self._entry_row]
        pair = np.unique(self._entry_row[ways] * blocks.count + block[a.columns[ways]])
        self.pair_row, self.pair_block = np.divmod(pair[pair >= 0], blocks.count)

    def of(self, x: IntArray) -> tuple[FloatArray, FloatArray]:
        """By block, float [B], and by shared row, float [r]; what a shared column loses is divided among its rows."""
        a, blocks, dual = self._shared.arrays, self._shared.blocks, self._dual
        taken = x[blocks.column]
        worth = np.bincount(blocks.way_block, self._reduced[blocks.column] * taken, blocks.count)
        gain = np.bincount(blocks.way_block, blocks.gain * taken, blocks.count)
        short = np.maximum(blocks.need - gain, 0) * (blocks.short_cost / SCALE)
        row = np.where(dual != 0, dual * (self._limit - a.activity(x)), 0.0)
        reduced = np.where(self._shared.blocks.shared_column, self._reduced, 0.0)
        column = np.where(reduced > 0, reduced * (a.upper - x), reduced * (a.lower - x))
        row += np.bincount(self._own_row, column[self._own_column] * self._own_part, a.shape[0])
        return np.maximum(self._best - (worth - short), 0.0), np.maximum(row, 0.0)
