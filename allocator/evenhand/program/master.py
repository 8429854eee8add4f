"""What blocks share, as a linear program over whole plans: every block takes one, in parts if need be."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenhand.program.prices import SCALE
from evenhand.program.pricing import BlockPlan
from evenhand.program.shared import FloatArray, Shared
from evenhand.solvers.lp import LinearProgram, LpResult, LpStatus, Rows

MOST_ITERATIONS = 50_000


class Master:
    """The linear program over plans; it grows by plans, and by what blocks share."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self.plans: list[BlockPlan] = []
        self._known: set[tuple[int, bytes, bytes]] = set()
        blocks = shared.blocks
        self._row_at = np.arange(len(shared.rows))
        self._block_at = len(shared.rows) + np.arange(blocks.count)
        self._own_at = np.arange(len(shared.columns))
        self._unit = shared.column_unit[shared.columns]
        self._plan_at = np.zeros(0, dtype=np.int64)
        """Where shared rows, blocks' rows, shared columns and plans stand in the program."""
        self._width, self._height = len(shared.columns), len(shared.rows) + blocks.count
        row, own, value = shared.own_entries()
        low, high = (np.append(bound, np.ones(blocks.count)) for bound in shared.row_bounds())
        rows = Rows(np.searchsorted(row, np.arange(len(low) + 1)), own, value * self._unit[own], low, high)
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
        if fresh:
            owner, row, value = self._shared.entries_of(fresh)
            ends = np.cumsum(np.bincount(owner, minlength=len(fresh)))
            rows = np.insert(self._row_at[self._shared.row_place[row]], ends, self._block_at[[p.block for p in fresh]])
            start = np.append(0, ends + np.arange(1, len(fresh) + 1))
            cost = self._shared.costs(fresh) / SCALE
            self._program.add_columns(
                cost, np.zeros(len(fresh)), np.full(len(fresh), np.inf), (start, rows, np.insert(value, ends, 1.0))
            )
            self._plan_at = np.append(self._plan_at, self._width + np.arange(len(fresh)))
            self._width += len(fresh)
            self.plans.extend(fresh)
        return len(fresh)

    def widen(self, shared: Shared) -> None:
        """Go on with more shared columns and rows, the last ones of `shared`; all plans stay, and so does the basis."""
        begin, known = self._shared.arrays.shape[0], len(self._shared.rows)
        fresh = shared.column_unit[shared.columns[len(self._unit) :]]
        self._program.add_columns(*shared.own_columns(fresh))
        self._unit = np.append(self._unit, fresh)
        self._own_at = np.append(self._own_at, self._width + np.arange(len(fresh)))
        self._width += len(fresh)
        self._shared = shared
        row, own, value = shared.own_entries()
        new = row >= known
        owner, more, taken = shared.entries_of(self.plans, begin)
        row = np.concatenate([row[new], shared.row_place[more]]) - known
        column = np.concatenate([self._own_at[own[new]], self._plan_at[owner]])
        value = np.concatenate([value[new] * self._unit[own[new]], taken])
        order = np.argsort(row, kind="stable")
        low, high = (bound[known:] for bound in shared.row_bounds())
        start = np.searchsorted(row[order], np.arange(len(low) + 1))
        self._program.add_rows(Rows(start, column[order], value[order], low, high))
        self._row_at = np.append(self._row_at, self._height + np.arange(len(low)))
        self._height += len(low)

    def of_plans(self, values: FloatArray) -> FloatArray:
        """The entries of the plans that the last solve knew."""
        return values[self._plan_at[self._plan_at < len(values)]]

    def solve(self) -> tuple[FloatArray, LpResult] | None:
        """Duals of all rows (0 for those of blocks), float [r], and the whole answer; None if a limit came first."""
        result = self._program.solve(MOST_ITERATIONS)
        if result.status is not LpStatus.OPTIMAL:
            return None
        dual = np.zeros(self._shared.arrays.shape[0])
        dual[self._shared.rows] = result.row_dual[self._row_at] / self._shared.row_unit[self._shared.rows]
        return dual, result
