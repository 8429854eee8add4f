"""Column generation over groups (Dantzig-Wolfe): a far tighter bound than the LP, and the plans an optimum is made of.

Each block is priced exactly by itself (`pricing`), the master LP mixes whole plans, its duals price the next plans. The
Lagrangian value at any duals bounds the program; duals are drawn towards those of the best bound so far, else they swing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from evenhand.outcome import ARRIVALS
from evenhand.program.blocks import Blocks
from evenhand.program.master import Master
from evenhand.program.prices import SCALE
from evenhand.program.pricing import BlockPlan, best_plans, good_plans
from evenhand.program.regret import Regrets
from evenhand.program.shared import Shared
from evenhand.program.variables import CODE, Program
from evenhand.shapes import IntArray
from evenhand.solvers.linear_model import Arrays
from evenhand.solvers.lp import LpResult
from evenhand.solvers.restricted import Restricted, restricted

FloatArray = npt.NDArray[np.float64]
SMOOTHING = 0.5
"""How far duals are drawn towards the best ones."""
MOST_PASSES = 24
CLOSE = 3e-4
"""Bound and master this near each other, as a share of target throughput: mixing more plans brings nothing."""
LEAP = 0.005
"""A rise of the mix from pass to pass, as a share of target throughput."""
IN_USE = 1e-6
NEAR = 2.0
"""Plans that lose at most this much (throughput units) to the mix are good."""
BESIDE = (0.9, 1.1)
"""So are those that are good at duals this much lower and higher."""


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


class Generation:
    """Mixes plans until bound and mix meet: bound, duals and plans so far.

    Parameters
    ----------
    blocks : of the program whose arrays these are; at least one.
    point : a feasible point, int [c]: the first plan of every block, and the one that others are held against.
    dual : where pricing begins, float [r]: prices that are likely, or zeros where nothing is known.
    scale : target throughput, or about that.
    """

    def __init__(self, blocks: Blocks, arrays: Arrays, point: IntArray, dual: FloatArray, scale: float) -> None:
        self._shared = Shared(blocks, arrays, point)
        self._master = Master(self._shared)
        self._center = self._shared.cleaned(dual)
        self._scale = scale
        self._lost = not self._center.any()
        """Whether prices are not known even about."""
        self._best: list[BlockPlan] = []
        """The best plans at the duals of the best bound."""
        self._bound = self._center_bound = np.inf
        """The best bound, and that at the center, which may be worse where rows came since."""
        self._answer: LpResult | None = None
        self.pricings = 0
        """How often all blocks have been priced."""
        self._master.add(_plans_of(blocks, point))

    @property
    def shared(self) -> Shared:
        """What the blocks share."""
        return self._shared

    @property
    def center(self) -> FloatArray:
        """Duals of the best bound of the program as it is, float [r]."""
        return self._center

    @property
    def bound(self) -> float:
        """No outcome of the program is worth more."""
        return float(self._bound)

    def widen(self, arrays: Arrays) -> None:
        """Go on with a program that has got more shared rows and columns since; all plans and the bound stay."""
        rows, columns = arrays.shape
        shared = self._shared
        more_rows, more_columns = rows - len(shared.blocks.shared_row), columns - len(shared.blocks.shared_column)
        blocks = replace(
            shared.blocks,
            shared_row=np.concatenate([shared.blocks.shared_row, np.ones(more_rows, dtype=bool)]),
            shared_column=np.concatenate([shared.blocks.shared_column, np.ones(more_columns, dtype=bool)]),
        )
        self._shared = Shared(blocks, arrays, np.concatenate([shared.base, np.zeros(more_columns, dtype=np.int64)]))
        self._master.widen(self._shared)
        self._center = np.concatenate([self._center, np.zeros(more_rows)])
        self._answer, self._lost = None, bool(more_rows)

    def run(self, close: float, may_go_on: Callable[[], bool]) -> None:
        """Price and mix until bound and mix are `close` (as a share of the scale), passes run out, or `may_go_on` says no."""
        if self._lost:
            self.approach(may_go_on)
        if not self._best:
            self._price(self._center)
        for _ in range(MOST_PASSES):
            if not may_go_on() or not self._step(close * self._scale):
                break

    def approach(self, may_go_on: Callable[[], bool]) -> None:
        """From no prices to likely ones: plans that are only good do while the mix changes by leaps. There is no bound yet."""
        value = np.inf
        self._best, self._lost = [], False
        for _ in range(MOST_PASSES):
            if not may_go_on():
                break
            self._master.add(self._good(self._center))
            solved = self._master.solve()
            if solved is None:
                break
            self._center, self._answer = self._shared.cleaned(solved[0]), solved[1]
            if abs(self._answer.objective - value) < LEAP * self._scale:
                break
            value = self._answer.objective

    def _good(self, dual: FloatArray) -> list[BlockPlan]:
        """Good plans under some duals."""
        self.pricings += 1
        blocks, reduced = self._shared.blocks, self._shared.reduced(dual)
        return good_plans(blocks, reduced[blocks.column], blocks.short_cost / SCALE)

    def _priced(self, dual: FloatArray) -> tuple[FloatArray, list[BlockPlan]]:
        """Reduced costs of all columns, float [c], and the best plans under them."""
        self.pricings += 1
        blocks, reduced = self._shared.blocks, self._shared.reduced(dual)
        return reduced, best_plans(blocks, reduced[blocks.column], blocks.short_cost / SCALE)

    def _price(self, dual: FloatArray) -> int:
        """Price all blocks; returns how many plans are new."""
        reduced, plans = self._priced(dual)
        bound = self._shared.bound(dual, reduced, plans)
        if bound < self._center_bound or not self._best:
            self._center_bound, self._center, self._best = bound, dual, plans
        self._bound = min(bound, self._bound)
        return self._master.add(plans)

    def _step(self, close: float) -> bool:
        """Solve the master and price at its duals; False when there is no more to gain."""
        solved = self._master.solve()
        if solved is None:
            return False
        dual, self._answer = solved
        value = self._answer.objective + self._shared.arrays.offset / SCALE
        if self._bound - value < close:
            return False
        mixed = SMOOTHING * self._center + (1.0 - SMOOTHING) * dual
        return bool(self._price(self._shared.cleaned(mixed)) or self._price(self._shared.cleaned(dual)))

    def mixture(self) -> Mixture | None:
        """What the last master mixes; where there was no time for one the best plans at the center, None without any."""
        if self._answer is not None:
            parts = self._master.of_plans(self._answer.x)
            used = np.flatnonzero(parts > IN_USE)
            used = used[np.argsort(parts[used], kind="stable")]
            plans = [self._master.plans[k] for k in used.tolist()]
            parts = parts[used]
        elif self._best:
            plans, parts = self._best, np.ones(len(self._best))
        else:
            return None
        count = self._shared.arrays.shape[1]
        x, main = np.zeros(count), np.zeros(count, dtype=np.int64)
        for part, plan in zip(parts.tolist(), plans, strict=True):
            main[self._shared.blocks.ways_of(plan.block)] = 0
            main[plan.columns] = plan.counts
            x[plan.columns] += part * plan.counts
        return Mixture(self.bound, x, *spread_of(self._shared.blocks, plans, count), main)

    def near(self) -> tuple[IntArray, IntArray]:
        """Least and most that good plans take of each way, int [c] each: plans that lose little to the mix, and some beside."""
        found: list[BlockPlan] = [*self._best]
        if self._answer is not None:
            parts, loses = self._master.of_plans(self._answer.x), self._master.of_plans(self._answer.reduced_cost)
            near = np.flatnonzero((parts > IN_USE) | (np.abs(loses) < NEAR))
            found.extend(self._master.plans[k] for k in near.tolist())
        for factor in BESIDE:
            found.extend(self._good(self._shared.cleaned(self._center * factor)))
        return spread_of(self._shared.blocks, found, self._shared.arrays.shape[1])

    def regrets(self) -> Regrets:
        """What points lose against the bound."""
        values = np.array([plan.value for plan in self._best])
        return Regrets(self._shared, self._center, values)


def spread_of(blocks: Blocks, plans: Sequence[BlockPlan], count: int) -> tuple[IntArray, IntArray]:
    """Least and most that plans of a block take of each of its ways, int [count] each."""
    upper, appears = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    least = np.full(count, np.iinfo(np.int64).max)
    columns = np.concatenate([p.columns for p in plans])
    counts = np.concatenate([p.counts for p in plans])
    np.maximum.at(upper, columns, counts)
    np.minimum.at(least, columns, counts)
    np.add.at(appears, columns, 1)
    of_block = np.bincount([p.block for p in plans], minlength=blocks.count)
    lower = np.zeros(count, dtype=np.int64)
    everywhere = blocks.column[(appears[blocks.column] == of_block[blocks.way_block]) & (appears[blocks.column] > 0)]
    lower[everywhere] = least[everywhere]
    return lower, upper


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
    moves = program.columns.moves
    reserved = np.array([c for _, _, c in program.columns.reserved], dtype=np.int64)
    ways = np.concatenate([moves.column, reserved])
    high[ways] = np.minimum(high[ways], mix.upper[ways])
    low[ways] = np.minimum(np.maximum(low[ways], mix.lower[ways]), high[ways])
    away = np.concatenate([moves.column[np.isin(moves.kind, [CODE[move] for move in ARRIVALS])], reserved])
    low[away] = np.where(mix.lower[away] < mix.upper[away], 0, low[away])
    return restricted(arrays, low, low < high, (low, high))
