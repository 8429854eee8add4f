"""Good integer points of the program: around the LP, and between the plans of a mixture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.outcome import ARRIVALS, MOVES, Outcome
from evenhand.program.budget import Budget
from evenhand.program.decompose import Mixture, between_plans
from evenhand.program.formulate import NodeCounts
from evenhand.program.lift import lower
from evenhand.program.market import Market
from evenhand.program.prices import SCALE
from evenhand.program.rounding import fitted
from evenhand.program.trades import after_trades
from evenhand.program.variables import Program
from evenhand.shapes import IntArray
from evenhand.solvers import cp_sat
from evenhand.solvers.linear_model import FREE, Arrays
from evenhand.solvers.lp import LinearProgram, LpStatus, Rows
from evenhand.solvers.restricted import Restricted, restricted

FloatArray = npt.NDArray[np.float64]
DIVE_SHARE = 0.25
COMPLETION_SHARE = 0.05
BETWEEN_SHARE = 0.3
BETWEEN_CLOCK = 0.6
"""Share of what the clock leaves, a safeguard: trades come after."""
BETWEEN_S = 0.05
BETWEEN_COLUMN_S = 5e-4
"""Deterministic seconds at most to decide between plans: fixed part, and per column that is left to decide."""
LP_SHARE = 0.4
"""Share of the time limit that the LP relaxation may take, as an iteration's time is estimated: fixed part and per row."""
LP_ITERATION_S = 4e-5
LP_ITERATION_ROW_S = 5e-9


@dataclass(frozen=True, eq=False)
class Relaxed:
    """The LP relaxation's answer: point [c], bound with room for its tolerance, pivots."""

    x: FloatArray
    bound: float
    iterations: int


def relax(arrays: Arrays, limit_s: float, budget: Budget, least_s: float = 0.0) -> Relaxed | None:
    """Solve the LP relaxation; None if its limit came first.

    Parameters
    ----------
    limit_s : time limit of the whole round; the relaxation gets its share, counted in iterations.
    least_s : seconds that it may take whatever the budget leaves.
    """
    rows = Rows(
        arrays.starts,
        arrays.columns,
        arrays.values.astype(np.float64),
        np.where(arrays.row_lower <= -FREE, -np.inf, arrays.row_lower.astype(np.float64)),
        np.where(arrays.row_upper >= FREE, np.inf, arrays.row_upper.astype(np.float64)),
    )
    allowed = max(1_000, round(LP_SHARE * limit_s / (LP_ITERATION_S + LP_ITERATION_ROW_S * arrays.shape[0])))
    program = LinearProgram(
        arrays.cost / SCALE, rows, arrays.lower.astype(np.float64), arrays.upper.astype(np.float64), maximize=True
    )
    result = program.solve(allowed, time_limit_s=max(least_s, budget.wall_s))
    if result.status is not LpStatus.OPTIMAL:
        budget.cut_by_wall = budget.cut_by_wall or result.iterations < allowed
        return None
    value = result.objective + arrays.offset / SCALE
    return Relaxed(result.x, value + 1e-7 * (1.0 + abs(value)), result.iterations)


class Points:
    """Finds points of one program; x stands for a whole point of it, int [c]."""

    def __init__(self, program: Program, arrays: Arrays, budget: Budget) -> None:
        self._program, self._arrays, self._budget = program, arrays, budget
        self._moves = program.columns.moves.column.copy()
        reserved = np.array([c for _, _, c in program.columns.reserved], dtype=np.int64)
        self._ways = np.concatenate([self._moves, reserved])

    def _decide(self, part: Restricted, effort: cp_sat.Effort, hint: Mapping[int, int]) -> tuple[IntArray | None, bool]:
        """A point of the whole program that differs only where `part` is free (None if none was found), and if proven best."""
        found = cp_sat.solve(part.arrays, effort, hint, may_fail=True)
        self._budget.charge(found)
        return None if found.x is None else part.whole(found.x), found.optimal

    def worth(self, x: IntArray) -> float:
        """Objective of a point, throughput units."""
        return self._arrays.objective(x) / SCALE

    def dive(self, relaxed: Relaxed) -> IntArray | None:
        """Fix the moves on which the LP is of one mind, and decide the few others."""
        value = relaxed.x[self._moves]
        whole = self._moves[np.abs(value - np.round(value)) < 1e-6]
        x = np.zeros(self._arrays.shape[1], dtype=np.int64)
        x[whole] = np.round(relaxed.x[whole]).astype(np.int64)
        return self._decide(restricted(self._arrays, x, _all_but(whole, len(x))), self._budget.piece(DIVE_SHARE), {})[0]

    def completed(self, outcome: Outcome, counted: NodeCounts) -> IntArray | None:
        """An outcome as a whole point; None if the program cannot express it."""
        x = np.zeros(self._arrays.shape[1], dtype=np.int64)
        hint = lower(self._program, counted, outcome)
        x[list(hint)] = list(hint.values())
        part = restricted(self._arrays, x, _all_but(self._ways, len(x)))
        return self._decide(part, self._budget.piece(COMPLETION_SHARE), dict(enumerate(x[part.free].tolist())))[0]

    def fitted(self, mix: Mixture, x: IntArray) -> IntArray:
        """The mix made whole as far as its main plans fit together, or x if that is better."""
        moves, reserved = self._program.columns.moves, [c for _, _, c in self._program.columns.reserved]
        arrives = np.isin(moves.kind, [k for k, move in enumerate(MOVES) if move in ARRIVALS])
        may_stay = np.concatenate([moves.column[arrives], np.array(reserved, dtype=np.int64)])
        gpus = np.concatenate([moves.gpus[arrives], np.zeros(len(reserved), dtype=np.int64)])
        y = fitted(self._arrays, mix, self._ways, may_stay, gpus)
        part = restricted(self._arrays, y, _all_but(self._ways, len(y)))
        z, _ = self._decide(part, self._budget.piece(COMPLETION_SHARE), {})
        return self._better(z, x)

    def between(self, mix: Mixture, x: IntArray) -> IntArray:
        """The best point between the plans of the mix, or x."""
        part = between_plans(self._program, self._arrays, mix)
        inside = (x[part.free] >= part.arrays.lower).all() and (x[part.free] <= part.arrays.upper).all()
        guess = x if inside else mix.main
        hint = {k: int(guess[c]) for k, c in enumerate(part.free.tolist()) if mix.upper[c]}
        effort = self._budget.piece(BETWEEN_SHARE, BETWEEN_S + BETWEEN_COLUMN_S * len(part.free), BETWEEN_CLOCK)
        return self._better(self._decide(part, effort, hint)[0], x)

    def traded(self, market: Market, x: IntArray) -> IntArray:
        """A point after trades of room between groups, or x if that is better."""
        y = after_trades(market, x, lambda: self._budget.leaves(0.0))
        if np.array_equal(x, y):
            return x
        part = restricted(self._arrays, y, _all_but(self._ways, len(y)))
        z, _ = self._decide(part, self._budget.piece(COMPLETION_SHARE), {})
        return self._better(z, x)

    def _better(self, y: IntArray | None, x: IntArray) -> IntArray:
        return y if y is not None and self._arrays.objective(y) > self._arrays.objective(x) else x


def _all_but(held: IntArray, count: int) -> npt.NDArray[np.bool_]:
    free = np.ones(count, dtype=bool)
    free[held] = False
    return free
