"""What blocks share, as a linear program over whole plans: every block takes one, in parts if need be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.program.blocks import Blocks
from evenhand.program.prices import SCALE
from evenhand.program.pricing import BlockPlan
from evenhand.shapes import IntArray
from evenhand.solvers.linear_model import FREE, Arrays
from evenhand.solvers.lp import LinearProgram, LpResult, LpStatus, Rows

FloatArray = npt.NDArray[np.float64]
MOST_ITERATIONS = 50_000
WIDE = 1e6
"""A column that can be larger than this must not be paid for by rounding."""


@dataclass(frozen=True, eq=False)
class PlanColumn:
    """One block's plan as a column, beside its block's base plan: what it takes more in shared rows, scaled cost."""

    plan: BlockPlan
    rows: IntArray
    values: IntArray
    cost: int


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
        most = np.zeros(arrays.shape[0])
        np.maximum.at(most, self._row, np.abs(self._value))
        self.row_unit = _power(most)
        """What the linear program divides each row by, so that a tolerance means the same in all, float [r]."""
        unit = np.zeros(arrays.shape[1])
        np.maximum.at(unit, self._column, np.abs(self._value) / self.row_unit[self._row])
        self.column_unit = 1.0 / _power(unit)
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

    def own_rows(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Shared columns in shared rows: (indptr over shared rows, shared column places, values in units of the rows)."""
        keep = self.blocks.shared_column[self._column]
        row, column = self._row[keep], self._column[keep]
        indptr = np.searchsorted(self.row_place[row], np.arange(len(self.rows) + 1))
        return indptr, self.column_place[column], self._value[keep] / self.row_unit[row]

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

    def columns_of(self, plans: Sequence[BlockPlan]) -> list[PlanColumn]:
        """Plans as columns."""
        if not plans:
            return []
        before = [self._base_ways[p.block] for p in plans]
        at = np.repeat(np.arange(len(plans)), [len(p.columns) for p in plans])
        cost = np.zeros(len(plans), dtype=np.int64)
        ways = np.concatenate([p.columns for p in plans])
        counts = np.concatenate([p.counts for p in plans])
        np.add.at(cost, at, self.arrays.cost[ways] * counts)
        ways = np.concatenate([ways, *before])
        counts = np.concatenate([counts, *(-self.base[w] for w in before)])
        at = np.concatenate([at, np.repeat(np.arange(len(plans)), [len(w) for w in before])])
        width = self.arrays.shape[1]  # most of a plan is as in its base plan: only what differs is looked up
        key, counts = _summed(at * width + ways, counts)
        at, ways = np.divmod(key, width)
        spans = self._csc_start[ways + 1] - self._csc_start[ways]
        first = np.repeat(self._csc_start[ways] - np.concatenate(([0], np.cumsum(spans)[:-1])), spans)
        entry = first + np.arange(int(spans.sum()))
        height = self.arrays.shape[0]
        key = np.repeat(at, spans) * height + self._csc_row[entry]
        key, sums = _summed(key, self._csc_value[entry] * np.repeat(counts, spans))
        owner, row = np.divmod(key, height)
        bounds = np.searchsorted(owner, np.arange(len(plans) + 1))
        short = np.array([p.short for p in plans], dtype=np.int64)
        cost -= short * self.blocks.short_cost[[p.block for p in plans]]
        return [
            PlanColumn(p, row[bounds[k] : bounds[k + 1]], sums[bounds[k] : bounds[k + 1]], int(cost[k]))
            for k, p in enumerate(plans)
        ]

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


class Master:
    """The linear program over plans; it grows by columns."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self.columns: list[PlanColumn] = []
        self._known: set[tuple[int, bytes, bytes]] = set()
        blocks = shared.blocks
        self._row_at = np.arange(len(shared.rows))
        self._block_at = len(shared.rows) + np.arange(blocks.count)
        self._own_at = np.arange(len(shared.columns))
        self._unit = shared.column_unit[shared.columns]
        self._plan_at: list[IntArray] = []
        """Where shared rows, blocks' rows and plans stand in the program."""
        self._width, self._height = len(shared.columns), len(shared.rows) + blocks.count
        indptr, indices, values = shared.own_rows()
        low, high = shared.row_bounds()
        rows = Rows(
            np.concatenate([indptr, np.full(blocks.count, indptr[-1])]),
            indices,
            values * self._unit[indices],
            np.concatenate([low, np.ones(blocks.count)]),
            np.concatenate([high, np.ones(blocks.count)]),
        )
        cost, least, most = shared.own_columns(self._unit)
        self._program = LinearProgram(cost, rows, least, most, maximize=True, primal=True)

    def add(self, plans: Sequence[BlockPlan]) -> int:
        """Add the plans that are not there yet, return how many."""
        fresh = []
        for plan in plans:
            key = (plan.block, plan.columns.tobytes(), plan.counts.tobytes())
            if key not in self._known:
                self._known.add(key)
                fresh.append(plan)
        columns = self._shared.columns_of(fresh)
        self.columns.extend(columns)
        if columns:
            sizes = np.array([len(c.rows) + 1 for c in columns])
            ends = np.cumsum(sizes - 1)
            blocks = self._block_at[[c.plan.block for c in columns]]
            rows = np.concatenate([c.rows for c in columns])
            indices = np.insert(self._row_at[self._shared.row_place[rows]], ends, blocks)
            values = np.concatenate([c.values for c in columns]) / self._shared.row_unit[rows]
            values = np.insert(values, ends, 1.0)
            cost = np.array([c.cost for c in columns]) / SCALE
            self._program.add_columns(
                cost, np.zeros(len(columns)), np.full(len(columns), np.inf),
                (np.concatenate(([0], np.cumsum(sizes))), indices, values),
            )  # fmt: skip
            self._plan_at.append(self._width + np.arange(len(columns)))
            self._width += len(columns)
        return len(columns)

    def widen(self, shared: Shared) -> None:
        """Go on with more shared columns and rows, the last ones of `shared`; all plans stay, and so does the basis."""
        old = self._shared
        fresh = shared.column_unit[shared.columns[len(old.columns) :]]
        self._program.add_columns(*shared.own_columns(fresh))
        self._unit = np.append(self._unit, fresh)
        self._own_at = np.append(self._own_at, self._width + np.arange(len(fresh)))
        self._width += len(fresh)
        self._shared = shared
        known = len(old.rows)
        self.columns = shared.columns_of([c.plan for c in self.columns])
        # Entries of the new rows: of shared columns, then of plans.
        indptr, own, values = shared.own_rows()
        start = int(indptr[known])
        row = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))[start:] - known
        plan = np.repeat(np.concatenate(self._plan_at), [len(c.rows) for c in self.columns])
        rows = np.concatenate([c.rows for c in self.columns])
        of_plan = shared.row_place[rows] - known
        some = of_plan >= 0
        row = np.concatenate([row, of_plan[some]])
        own = own[start:]
        column = np.concatenate([self._own_at[own], plan[some]])
        of_plans = np.concatenate([c.values for c in self.columns]) / shared.row_unit[rows]
        values = np.concatenate([values[start:] * self._unit[own], of_plans[some]])
        order = np.argsort(row, kind="stable")
        low, high = (bound[known:] for bound in shared.row_bounds())
        self._program.add_rows(
            Rows(np.searchsorted(row[order], np.arange(len(low) + 1)), column[order], values[order], low, high)
        )
        self._row_at = np.append(self._row_at, self._height + np.arange(len(low)))
        self._height += len(low)

    def of_plans(self, values: FloatArray) -> FloatArray:
        """The entries of the plans that the last solve knew."""
        at = np.concatenate(self._plan_at)
        return values[at[at < len(values)]]

    def solve(self) -> tuple[FloatArray, LpResult] | None:
        """Duals of all rows (0 for those of blocks), float [r], and the whole answer; None if a limit came first."""
        result = self._program.solve(MOST_ITERATIONS)
        if result.status is not LpStatus.OPTIMAL:
            return None
        dual = np.zeros(self._shared.arrays.shape[0])
        dual[self._shared.rows] = result.row_dual[self._row_at] / self._shared.row_unit[self._shared.rows]
        return dual, result
