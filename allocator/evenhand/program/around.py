"""Better points around the best one, a few groups at a time: neighbourhoods, beside one another where there are threads.

Those under way at once free none of one another's groups. What one has found is moved onto the best point there is by
then: all of it where every row holds, else the best of what lies between. Where work is counted there are always as many
under way and they end in the order of their start, so that threads change no point; else the first to end comes first.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial

from evenhand.beside import Beside, first_done
from evenhand.program.budget import Budget
from evenhand.program.neighbourhoods import Neighbourhood, Neighbourhoods
from evenhand.program.prices import SCALE
from evenhand.shapes import IntArray
from evenhand.solvers import cp_sat
from evenhand.solvers.linear_model import Arrays
from evenhand.solvers.restricted import Restricted, restricted

NEIGHBOURHOOD_S = 0.04
NEIGHBOURHOOD_COLUMN_S = 5e-6
"""Deterministic seconds that a neighbourhood may take: fixed part, and per column of what is left of the program."""
MERGE_S = 0.02
"""Deterministic seconds to move onto a point what does not fit there as it is."""
CLOSE = 1e-5
"""A point this near its bound (throughput units) is as good as proven."""


@dataclass(frozen=True, eq=False)
class _Trial:
    """A neighbourhood under way: around which point, what it may change and take, and its answer to come."""

    base: IntArray
    freed: Neighbourhood
    effort: cp_sat.Effort
    answer: Future[_Found]


@dataclass(frozen=True, eq=False)
class _Found:
    """The best point found in a neighbourhood (None: none), and what the solver said."""

    x: IntArray | None
    solution: cp_sat.Solution


class Around:
    """Searches one program; x stands for a whole point of it, int [c]."""

    def __init__(self, arrays: Arrays, near: Neighbourhoods, budget: Budget) -> None:
        self._arrays, self._near, self._budget = arrays, near, budget

    def improve(self, x: IntArray, bound: float, leave: float, most: int) -> IntArray:
        """The best point found around one; x itself if there is none.

        Parameters
        ----------
        bound : no point is worth more (throughput units); leave : share of the work to leave over.
        most : neighbourhoods to look at.
        """
        trials: list[_Trial] = []
        begun = 0
        with Beside(self._budget.threads) as beside:
            while True:
                if self._arrays.objective(x) / SCALE < bound - CLOSE:
                    begun += self._add_trials(trials, x, leave, beside, most - begun)
                if not trials:
                    return x
                trial = self._next(trials)
                trials.remove(trial)
                found = trial.answer.result()
                self._budget.settle(trial.effort, found.solution)
                y = self.moved(x, trial.base, found.x)
                self._near.learn(decided=found.solution.optimal, better=y is not x)
                x = y

    def _add_trials(self, trials: list[_Trial], x: IntArray, leave: float, beside: Beside, most: int) -> int:
        """Start neighbourhoods of x until as many are under way as may be, at most so many; returns how many."""
        before = len(trials)
        while len(trials) < min(self._budget.at_once, before + most) and self._budget.has_more_than(leave):
            freed = self._near.draw(x, [trial.freed.blocks for trial in trials])
            if freed is None:
                break
            effort = self._budget.lend(_work(int(freed.free.sum())))
            trials.append(_Trial(x, freed, effort, beside.start(partial(self._decide, x, freed, effort))))
        return len(trials) - before

    def _decide(self, x: IntArray, freed: Neighbourhood, effort: cp_sat.Effort) -> _Found:
        """The best point of a neighbourhood; runs beside others."""
        part = restricted(self._arrays, x, freed.free, (freed.lower, freed.upper))
        return self._solved(part, x, effort.at_most(_work(part.arrays.shape[1])))

    def _solved(self, part: Restricted, x: IntArray, effort: cp_sat.Effort) -> _Found:
        found = cp_sat.solve(part.arrays, effort, dict(enumerate(x[part.free].tolist())), may_fail=True)
        return _Found(None if found.x is None else part.whole(found.x), found)

    def _next(self, trials: list[_Trial]) -> _Trial:
        """The neighbourhood whose end comes next."""
        if self._budget.in_order:
            return trials[0]
        first = first_done(trial.answer for trial in trials)
        return next(trial for trial in trials if trial.answer is first)

    def moved(self, x: IntArray, base: IntArray, y: IntArray | None) -> IntArray:
        """What y changes of its base, on x as far as it goes; x itself where that brings nothing.

        Parameters
        ----------
        base, x, y : feasible points, int [c]; x and y each differ from base in the ways of other groups (y: None, nothing found).
        """
        a = self._arrays
        if y is None or a.objective(y) <= a.objective(base):
            return x
        z = x + (y - base)
        if fits(a, z):
            return z
        low, high, free = self._near.between(x, z)
        effort = self._budget.lend(MERGE_S)
        found = self._solved(restricted(a, x, free, (low, high)), x, effort)
        self._budget.settle(effort, found.solution)
        return x if found.x is None or a.objective(found.x) <= a.objective(x) else found.x


def _work(columns: int) -> float:
    """Deterministic seconds for a neighbourhood with so many columns left to decide."""
    return NEIGHBOURHOOD_S + NEIGHBOURHOOD_COLUMN_S * columns


def fits(arrays: Arrays, x: IntArray) -> bool:
    """Whether a point is within all bounds and rows."""
    if (x < arrays.lower).any() or (x > arrays.upper).any():
        return False
    activity = arrays.activity(x)
    return bool((activity >= arrays.row_lower).all() and (activity <= arrays.row_upper).all())
