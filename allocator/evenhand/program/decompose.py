"""Column generation over groups (Dantzig-Wolfe): a far tighter bound than the LP, and the plans an optimum is made of.

Each block is priced exactly by itself (`pricing`), the master LP mixes whole plans, its duals price the next plans. The
Lagrangian value at any duals bounds the program; duals are drawn towards those of the best bound so far, else they swing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from evenhand.outcome import ARRIVALS
from evenhand.program.blocks import Blocks, blocks_of
from evenhand.program.master import Master, Shared
from evenhand.program.prices import SCALE
from evenhand.program.pricing import BlockPlan, best_plans
from evenhand.program.variables import Program
from evenhand.shapes import IntArray
from evenhand.solvers.linear_model import Arrays
from evenhand.solvers.restricted import Restricted, restricted

FloatArray = npt.NDArray[np.float64]
SMOOTHING = 0.5
"""How far duals are drawn towards the best ones."""
MOST_PASSES = 16
CLOSE = 1e-4
"""Bound and master this near each other, as a share of target throughput: mixing more plans brings nothing."""
IN_USE = 1e-6


@dataclass(frozen=True, eq=False)
class Mixture:
    """The master's answer.

    Attributes
    ----------
    bound : no outcome of the program is worth more.
    x : ways as the mix takes them, float [c]; lower, upper : least and most that a plan in the mix takes, int [c].
    main : what the plan with the largest part takes, int [c].
    """

    bound: float
    x: FloatArray
    lower: IntArray
    upper: IntArray
    main: IntArray


def decompose(
    program: Program, arrays: Arrays, point: IntArray, dual: FloatArray, may_go_on: Callable[[], bool]
) -> Mixture | None:
    """Mix plans until bound and mix meet, passes run out, or `may_go_on` says no; None where no mix was found.

    Parameters
    ----------
    point : a feasible point, the first plan of every block; dual : of the LP relaxation, float [r].
    """
    blocks = blocks_of(program, arrays)
    if not blocks.count:
        return None
    search = _Generation(Shared(blocks, arrays, point), dual)
    search.start(point)
    close = CLOSE * (1.0 + program.target.throughput)
    for _ in range(MOST_PASSES):
        if not may_go_on() or not search.step(close):
            break
    return search.mixture()


class _Generation:
    """Bound, duals and plans so far."""

    def __init__(self, shared: Shared, dual: FloatArray) -> None:
        self._shared = shared
        self._master = Master(shared)
        self._short_price = shared.blocks.short_cost / SCALE
        self._center = shared.cleaned(dual)
        self._bound = np.inf
        self._parts: FloatArray | None = None

    def start(self, point: IntArray) -> None:
        """The given plans, and the best ones at the LP's duals."""
        self._master.add(_plans_of(self._shared.blocks, point))
        self._price(self._center)

    def _price(self, dual: FloatArray) -> int:
        """Price all blocks; returns how many plans are new."""
        reduced = self._shared.reduced(dual)
        plans = best_plans(self._shared.blocks, reduced[self._shared.blocks.column], self._short_price)
        bound = self._shared.bound(dual, reduced, plans)
        if bound < self._bound:
            self._bound, self._center = bound, dual
        return self._master.add(plans)

    def step(self, close: float) -> bool:
        """Solve the master and price at its duals; False when there is no more to gain."""
        solved = self._master.solve()
        if solved is None:
            return False
        dual, result = solved
        self._parts = result.x[len(self._shared.columns) :]
        value = result.objective + self._shared.arrays.offset / SCALE
        if self._bound - value < close:
            return False
        mixed = SMOOTHING * self._center + (1.0 - SMOOTHING) * dual
        return bool(self._price(self._shared.cleaned(mixed)) or self._price(self._shared.cleaned(dual)))

    def mixture(self) -> Mixture | None:
        """What the last master mixes."""
        if self._parts is None:
            return None
        count = self._shared.arrays.shape[1]
        x, main = np.zeros(count), np.zeros(count, dtype=np.int64)
        upper = np.zeros(count, dtype=np.int64)
        used = np.flatnonzero(self._parts > IN_USE)
        appears = np.zeros(count, dtype=np.int64)
        least = np.full(count, np.iinfo(np.int64).max)
        plans = np.zeros(self._shared.blocks.count, dtype=np.int64)
        for k in used[np.argsort(self._parts[used], kind="stable")].tolist():
            plan = self._master.columns[k].plan
            own = self._shared.blocks.ways_of(plan.block)
            main[own] = 0
            main[plan.columns] = plan.counts
            x[plan.columns] += self._parts[k] * plan.counts
            upper[plan.columns] = np.maximum(upper[plan.columns], plan.counts)
            least[plan.columns] = np.minimum(least[plan.columns], plan.counts)
            appears[plan.columns] += 1
            plans[plan.block] += 1
        column, block = self._shared.blocks.column, self._shared.blocks.way_block
        lower = np.zeros(count, dtype=np.int64)
        everywhere = column[appears[column] == plans[block]]
        lower[everywhere] = np.where(appears[everywhere] > 0, least[everywhere], 0)
        return Mixture(float(self._bound), x, lower, upper, main)


def _plans_of(blocks: Blocks, point: IntArray) -> list[BlockPlan]:
    """A point as one plan for every block (their value under no prices in particular)."""
    plans = []
    for b in range(blocks.count):
        own = slice(*blocks.span(b))
        counts, gain = point[blocks.column[own]], blocks.gain[own]
        some = counts > 0
        short = max(0, int(blocks.need[b]) - int((counts * gain).sum()))
        plans.append(BlockPlan(b, blocks.column[own][some], counts[some], short, 0.0))
    return plans


def between_plans(program: Program, arrays: Arrays, mix: Mixture) -> Restricted:
    """What is left to decide when every way goes as often as mixed plans say; arrivals may also stay away."""
    low, high = arrays.lower.copy(), arrays.upper.copy()
    ways = np.array(
        [m.column for m in program.columns.moves] + [c for _, _, c in program.columns.reserved], dtype=np.int64
    )
    high[ways] = np.minimum(high[ways], mix.upper[ways])
    low[ways] = np.minimum(np.maximum(low[ways], mix.lower[ways]), high[ways])
    arrives = [m.column for m in program.columns.moves if m.move in ARRIVALS] + [
        c for _, _, c in program.columns.reserved
    ]
    away = np.array(arrives, dtype=np.int64)
    low[away] = np.where(mix.lower[away] < mix.upper[away], 0, low[away])
    bounded = replace(arrays, lower=low, upper=high)
    return restricted(bounded, low, low < high)
