"""A linear program over bundles that meets new constraints as it goes, and breaks ties by nearness.

Solved as its dual: one row for each amount, one column for each constraint. A constraint found late is a
new column, so the primal simplex method goes on from where it stands, and the basis is as small as the
number of amounts whatever the number of constraints: several times faster than adding rows, measured at
135 leaves.
"""

from __future__ import annotations

import numpy as np

from evenhand.errors import SolverError
from evenhand.fairness.group_value import FloatArray
from evenhand.shapes import BoolArray, IntArray
from evenhand.solvers.lp import INFINITY, LinearProgram, LpResult, LpStatus, Rows

_BINDING = 1e-9
"""A price above this makes its constraint an equation of all optima."""
_GOLDEN = 0.6180339887498949


class LimitHit(Exception):
    """More simplex iterations than allowed."""


class BundleProgram:
    """Most `worth x` over x >= 0 and the constraints met so far.

    Parameters
    ----------
    worth : float [n].
    iterations : simplex iterations allowed in all: work is bounded without a clock.
    """

    def __init__(self, worth: FloatArray, iterations: int) -> None:
        self._count = len(worth)
        self._worth = worth
        self._left = iterations
        self._near = False
        self._program = LinearProgram(
            np.zeros(0),
            Rows(
                np.zeros(self._count + 1, dtype=np.int64),
                np.zeros(0, dtype=np.int64),
                np.zeros(0),
                worth,
                np.full(self._count, INFINITY),
            ),
            np.zeros(0),
            np.zeros(0),
            maximize=False,
            primal=True,
        )
        self._prices = np.zeros(0)
        self._gaps = np.zeros(self._count)

    def at_most(self, rows: Rows) -> None:
        """Meet constraints a x <= upper."""
        self._meet(rows, rows.upper)

    def at_least(self, rows: Rows) -> None:
        """Meet constraints a x >= lower."""
        self._meet(Rows(rows.indptr, rows.indices, -rows.data, rows.lower, rows.upper), -rows.lower)

    def _meet(self, rows: Rows, bound: FloatArray) -> None:
        entries = (rows.indptr, rows.indices, rows.data)
        self._program.add_columns(bound, np.zeros(rows.count), np.full(rows.count, INFINITY), entries)

    def best(self) -> FloatArray:
        """The optimum over the constraints met so far, float [n].

        Raises
        ------
        LimitHit
            If the iterations are used up.
        """
        found = self._solve()
        if not self._near:
            self._prices, self._gaps = found.x, found.row - self._worth
        return found.row_dual

    def _solve(self) -> LpResult:
        """Solve from where it stands; once more from nothing if the solver breaks down or calls it unbounded.

        It has an optimum: whoever asks has one division at hand that meets all constraints.
        """
        for last in (False, True):
            if self._left <= 0:
                break
            try:
                found = self._program.solve(self._left)
            except SolverError:
                if last:
                    raise
                self._program.forget()
                continue
            self._left -= found.iterations
            if found.status is LpStatus.OPTIMAL:
                return found
            if found.status is LpStatus.LIMIT:
                break
            self._program.forget()
        raise LimitHit("the iterations allowed do not do")

    @property
    def left(self) -> int:
        """Iterations that are not used up."""
        return self._left

    @property
    def prices(self) -> FloatArray:
        """Prices of the constraints met when the optimum was last found, in the order they were met; 0 or more."""
        return self._prices

    @property
    def unique(self) -> bool:
        """Whether no other optimum can exist: all basic prices and gaps are above 0."""
        return int((self._prices > _BINDING).sum() + (self._gaps > _BINDING).sum()) == self._count

    def nearest_to(self, near: FloatArray, unit: FloatArray, pile: IntArray) -> None:
        """From now on answer with the optimum nearest to `near`: least sum of weighted distances, pile by pile.

        Parameters
        ----------
        near : float [p]; unit : what a distance of 1 counts, float [p].
        pile : the pile that each of the first amounts belongs to, int [m]; those behind them are near to nothing.

        Weights grow from 1 by less than 1/64 in a fixed irregular order, so that one optimum is nearest.
        On all optima every constraint with a price is an equation and every amount with a gap is 0. The
        least distance among them has the dual: least b y + near z with A'y + z >= 0 and z within the weights,
        where y is free for equations, and rows of amounts that are 0 do not matter.
        """
        piles = len(near)
        weights = unit * (1 + np.modf(np.arange(1, piles + 1) * _GOLDEN)[0] / 64)
        binding: BoolArray = self._prices > _BINDING
        columns = np.flatnonzero(binding)
        self._program.set_columns(columns, np.full(len(columns), -INFINITY), np.full(len(columns), INFINITY))
        every = np.arange(self._count, dtype=np.int64)
        lower = np.where(self._gaps > _BINDING, -INFINITY, 0.0)
        self._program.set_rows(every, lower, np.full(self._count, INFINITY))
        order = np.argsort(pile, kind="stable")
        indptr = np.concatenate([[0], np.cumsum(np.bincount(pile, minlength=piles))]).astype(np.int64)
        self._program.add_columns(near, -weights, weights, (indptr, order, np.ones(len(pile))))
        self._near = True
