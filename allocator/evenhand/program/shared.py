"""What blocks share: rows and columns of the program that stand in no block alone, and what plans take of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from evenhand.program.blocks import Blocks
from evenhand.program.prices import SCALE
from evenhand.program.pricing import BlockPlan
from evenhand.shapes import IntArray
from evenhand.solvers.linear_model import FREE, Arrays

FloatArray = npt.NDArray[np.float64]
WIDE = 1e6
"""A column that can be larger than this must not be paid for by rounding."""


class Shared:
    """The rows and columns that blocks share, and what plans take from them."""

    def __init__(self, blocks: Blocks, arrays: Arrays, base: IntArray) -> None:
        self.blocks, self.arrays = blocks, arrays
        self._priced: tuple[FloatArray, FloatArray] | None = None
        """The duals last asked for, unless they were changed since, and reduced costs under them."""
        self.base = base
        """A point; plans count by what they change of it, so that rows see only blocks that may differ."""
        self.rows = np.flatnonzero(blocks.shared_row)
        self.columns = np.flatnonzero(blocks.shared_column)
        entry_row = np.repeat(np.arange(arrays.shape[0]), np.diff(arrays.starts))
        keep = blocks.shared_row[entry_row]
        self._row, self._column = entry_row[keep], arrays.columns[keep]
        self._value = arrays.values[keep]
        by_column = np.argsort(self._column, kind="stable")
        self._csc_row, self._csc_value = self._row[by_column], self._value[by_column]
        self._csc_start = np.searchsorted(self._column[by_column], np.arange(arrays.shape[1] + 1))
        start = np.searchsorted(self._row, np.arange(arrays.shape[0]))
        self.row_unit = _power(_largest(np.abs(self._value), start))
        """What the linear program divides each row by, so that a tolerance means the same in all, float [r]."""
        own = blocks.shared_column[self._column[by_column]]
        share = np.where(own, np.abs(self._csc_value) / self.row_unit[self._csc_row], 0.0)
        self.column_unit = 1.0 / _power(_largest(share, self._csc_start[:-1]))
        """What it counts shared columns in, float [c]."""
        self.row_place = np.full(arrays.shape[0], -1, dtype=np.int64)
        self.row_place[self.rows] = np.arange(len(self.rows))
        self.column_place = np.full(arrays.shape[1], -1, dtype=np.int64)
        self.column_place[self.columns] = np.arange(len(self.columns))
        held = ~blocks.shared_column[self._column]
        taken = np.bincount(
            self._row[held], weights=self._value[held] * base[self._column[held]], minlength=arrays.shape[0]
        )
        self.taken = np.rint(taken).astype(np.int64)
        """What the base plans take of each row, int [r]."""
        some = np.flatnonzero(base[blocks.column])
        ends = np.searchsorted(blocks.way_block[some], np.arange(blocks.count + 1))
        self._base_ways = [blocks.column[some[ends[b] : ends[b + 1]]] for b in range(blocks.count)]

    def row_bounds(self) -> tuple[FloatArray, FloatArray]:
        """Bounds of the shared rows once the base plans are taken, in units of the rows; infinite where they do not bind."""
        a, taken, unit = self.arrays, self.taken[self.rows], self.row_unit[self.rows]
        low, high = a.row_lower[self.rows], a.row_upper[self.rows]
        return np.where(low <= -FREE, -np.inf, (low - taken) / unit), np.where(
            high >= FREE, np.inf, (high - taken) / unit
        )

    def own_entries(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Shared columns in shared rows, by row: places of row and column, and values in units of the rows."""
        keep = self.blocks.shared_column[self._column]
        row, column = self._row[keep], self._column[keep]
        return self.row_place[row], self.column_place[column], self._value[keep] / self.row_unit[row]

    def own_columns(self, unit: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Cost and bounds of the last shared columns, unscaled, in these units."""
        a, own = self.arrays, self.columns[len(self.columns) - len(unit) :]
        return a.cost[own] / SCALE * unit, a.lower[own] / unit, a.upper[own] / unit

    def reduced(self, dual: FloatArray) -> FloatArray:
        """Cost less what shared rows charge, unscaled, float [c]; dual: float [r]."""
        if self._priced is None or self._priced[0] is not dual:
            charged = np.bincount(self._column, weights=self._value * dual[self._row], minlength=self.arrays.shape[1])
            self._priced = (dual, np.asarray(self.arrays.cost / SCALE - charged))
        return self._priced[1]

    def costs(self, plans: Sequence[BlockPlan]) -> IntArray:
        """Scaled cost of plans, what they are short of included, int [p]."""
        at = np.repeat(np.arange(len(plans)), [len(p.columns) for p in plans])
        ways = np.concatenate([p.columns for p in plans])
        cost = np.zeros(len(plans), dtype=np.int64)
        np.add.at(cost, at, self.arrays.cost[ways] * np.concatenate([p.counts for p in plans]))
        short = np.array([p.short for p in plans], dtype=np.int64)
        return np.asarray(cost - short * self.blocks.short_cost[[p.block for p in plans]])

    def entries_of(self, plans: Sequence[BlockPlan], begin: int = 0) -> tuple[IntArray, IntArray, FloatArray]:
        """What plans take of shared rows more than their blocks' base plans, by plan, then row.

        Parameters
        ----------
        begin : rows before it are left out.

        Returns
        -------
        tuple
            Place of the plan, row, and amount in units of the row, int, int and float [z].
        """
        before = [self._base_ways[p.block] for p in plans]
        at = np.repeat(np.arange(len(plans)), [len(p.columns) for p in plans])
        ways = np.concatenate([*(p.columns for p in plans), *before])
        counts = np.concatenate([*(p.counts for p in plans), *(-self.base[w] for w in before)])
        at = np.concatenate([at, np.repeat(np.arange(len(plans)), [len(w) for w in before])])
        width = self.arrays.shape[1]  # most of a plan is as in its base plan: only what differs is looked up
        key, counts = _summed(at * width + ways, counts)
        at, ways = np.divmod(key, width)
        rows, amounts, start = self._by_column(begin)
        spans = start[ways + 1] - start[ways]
        first = np.repeat(start[ways] - np.concatenate(([0], np.cumsum(spans)[:-1])), spans)
        entry = first + np.arange(int(spans.sum()))
        height = self.arrays.shape[0]
        key = np.repeat(at, spans) * height + rows[entry]
        key, sums = _summed(key, amounts[entry] * np.repeat(counts, spans))
        owner, row = np.divmod(key, height)
        return owner, row, sums / self.row_unit[row]

    def _by_column(self, begin: int) -> tuple[IntArray, IntArray, IntArray]:
        """Entries of rows from one on, by column: rows, values, and where each column starts, int [c + 1]."""
        if not begin:
            return self._csc_row, self._csc_value, self._csc_start
        later = self._csc_row >= begin
        return self._csc_row[later], self._csc_value[later], np.append(0, np.cumsum(later))[self._csc_start]

    def cleaned(self, dual: FloatArray) -> FloatArray:
        """Duals with signs that bounds allow, and no wide column paid for by rounding; float [r]."""
        a = self.arrays
        y = np.where((a.row_upper >= FREE) & (dual > 0), 0.0, dual)
        y = np.where((a.row_lower <= -FREE) & (y < 0), 0.0, y)
        y = np.where(self.blocks.shared_row, y, 0.0)
        reduced = self.reduced(y)
        for c in self.columns[(a.upper[self.columns] > WIDE) & (reduced[self.columns] > 0)]:
            cost = a.cost[c] / SCALE
            rows = self._csc_row[self._csc_start[c] : self._csc_start[c + 1]]
            y[rows] *= min(1.0, cost / (cost - float(reduced[c])) * (1 - 1e-12)) if cost < 0 else 0.0
            self._priced = None
        return y

    def bound(self, dual: FloatArray, reduced: FloatArray, plans: Sequence[BlockPlan]) -> float:
        """No outcome is worth more: the Lagrangian of the shared rows at these (cleaned) duals."""
        a, y = self.arrays, dual[self.rows]
        limits = np.where(y > 0, a.row_upper[self.rows], np.where(y < 0, a.row_lower[self.rows], 0)).astype(np.float64)
        cost = reduced[self.columns]
        best = np.maximum(cost * a.lower[self.columns], cost * a.upper[self.columns])
        value = float(y @ limits) + float(best.sum()) + sum(p.value for p in plans) + a.offset / SCALE
        return value + 1e-7 * (1.0 + abs(value))


def _largest(values: FloatArray | IntArray, starts: IntArray) -> FloatArray:
    """The largest of each run of values, 0 of an empty one; `starts`: where runs start, ascending."""
    found, full = np.zeros(len(starts)), np.diff(np.append(starts, len(values))) > 0
    if full.any():
        found[full] = np.maximum.reduceat(values, starts[full])
    return found


def _power(most: FloatArray) -> FloatArray:
    """The power of two at or below each figure: to divide by it costs no digit; 1 for nothing."""
    return np.exp2(np.floor(np.log2(np.where(most > 0, most, 1.0))))


def _summed(key: IntArray, value: IntArray) -> tuple[IntArray, IntArray]:
    """Keys ascending, each once, with the sum of its values; those that sum to nothing are left out."""
    if not len(key):
        return key, value
    order = np.argsort(key, kind="stable")
    key = key[order]
    fresh = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
    sums = np.add.reduceat(value[order], fresh)
    return key[fresh[sums != 0]], sums[sums != 0]
