"""The best plan of every block under prices: a bounded multiple-choice knapsack, solved exactly.

Value of a plan: sum of price x count over its ways, less `short_cost` for every grain that its gains fall short of `need`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from evenhand.program.blocks import Blocks
from evenhand.shapes import IntArray

FloatArray = npt.NDArray[np.float64]
_NEVER = -np.inf
_DUST = 1e-9


@dataclass(frozen=True, eq=False)
class BlockPlan:
    """How many jobs of a block go which way, and what that is worth under the prices asked."""

    block: int
    columns: IntArray
    counts: IntArray
    short: int
    """Grains short."""
    value: float


def best_plans(blocks: Blocks, price: FloatArray, short_price: FloatArray) -> list[BlockPlan]:
    """The best plan of each block; no plan of the block is worth more.

    Parameters
    ----------
    price : worth of one job going each way, float [W]; short_price : cost of a grain short, float [B].
    """
    gain, most = blocks.gain, blocks.most
    table = _Table(blocks, price)
    weight = short_price[blocks.unit_block]
    # What every job of a unit does at least: the best-paid way, if it pays. Other ways are then judged against it.
    base = table.best_paid()
    must = blocks.least > 0
    base = np.where((table.worth(base) > 0) | must, base, -1)
    taken = base >= 0
    base_price = np.where(taken, price[np.maximum(base, 0)], 0.0)
    base_gain = np.where(taken, gain[np.maximum(base, 0)], 0)
    need = np.zeros(blocks.count, dtype=np.int64)
    np.subtract.at(need, blocks.unit_block, base_gain * most)
    need = np.maximum(blocks.need + need, 0)
    value = np.zeros(blocks.count)
    np.add.at(value, blocks.unit_block, base_price * most)
    # A step up from there is worth a look if it can pay for itself in grains.
    up_price = price - base_price[blocks.way_unit]
    up_gain = gain - base_gain[blocks.way_unit]
    useful = (up_gain > 0) & (up_price + weight[blocks.way_unit] * up_gain > _DUST) & (need[blocks.way_block] > 0)
    steps = np.flatnonzero(useful)
    bounds = np.searchsorted(blocks.way_block[steps], np.arange(blocks.count + 1))
    plans = []
    for b in range(blocks.count):
        own = steps[bounds[b] : bounds[b + 1]]
        ups, worth, missing = _climb(
            blocks.way_unit[own], up_gain[own], up_price[own], most, int(need[b]), float(short_price[b])
        )
        plans.append((own, ups, float(value[b]) + worth, missing))
    return _assembled(blocks, base, plans)


class _Table:
    """Best ways by unit."""

    def __init__(self, blocks: Blocks, price: FloatArray) -> None:
        self._blocks, self._price = blocks, price
        self._starts = np.searchsorted(blocks.way_unit, np.arange(len(blocks.most)))

    def best_paid(self) -> IntArray:
        """The way with the highest price of each unit (of equals the one with most gain, then the first), int [U]."""
        b = self._blocks
        order = np.lexsort((np.arange(len(b.column)), -b.gain, -self._price, b.way_unit))
        return np.asarray(order[self._starts], dtype=np.int64)

    def worth(self, way: IntArray) -> FloatArray:
        """Price of one way of each unit."""
        return np.asarray(self._price[way])


def _climb(
    unit: IntArray, gain: IntArray, price: FloatArray, most: IntArray, need: int, weight: float
) -> tuple[IntArray, float, int]:
    """How often to take each step, what that is worth (shortfall included), and the grains missing.

    best[r] = most worth with at most r grains missing; a step of gain a: best'[r] = best[min(r + a, need)] + price.
    """
    counts = np.zeros(len(unit), dtype=np.int64)
    if not len(unit):
        return counts, -weight * need, need
    best = np.full(need + 1, _NEVER)
    best[need] = 0.0
    gain = np.minimum(gain, need)
    starts = np.flatnonzero(np.concatenate(([True], unit[1:] != unit[:-1]))).tolist()
    starts.append(len(unit))
    gains, prices = gain.tolist(), price.tolist()
    trail: list[tuple[int, npt.NDArray[np.int16]]] = []
    for first, end in pairwise(starts):
        copies = min(int(most[unit[first]]), -(-need // min(gains[first:end])))
        for _ in range(copies):
            choice = np.zeros(need + 1, dtype=np.int16)
            fresh = best.copy()
            for k in range(first, end):
                a, worth = gains[k], prices[k]
                better = np.empty(need + 1)
                better[: need + 1 - a] = best[a:]
                better[need + 1 - a :] = best[need]
                better += worth
                wins = better > fresh
                fresh[wins] = better[wins]
                choice[wins] = k - first + 1
            if not choice.any():
                break
            best = fresh
            trail.append((first, choice))
    total = best - weight * np.arange(need + 1)
    r = missing = int(np.argmax(total))
    worth = float(total[r])
    for first, choice in reversed(trail):
        if choice[r]:
            k = first + int(choice[r]) - 1
            counts[k] += 1
            r = min(r + gains[k], need)
    return counts, worth, missing


def _assembled(blocks: Blocks, base: IntArray, plans: list[tuple[IntArray, IntArray, float, int]]) -> list[BlockPlan]:
    """Whole plans: steps up replace what their jobs would do at least."""
    count = np.zeros(len(blocks.column), dtype=np.int64)
    stay = blocks.most.copy()
    for own, ups, _, _ in plans:
        count[own] += ups
        np.subtract.at(stay, blocks.way_unit[own], ups)
    taken = np.flatnonzero(base >= 0)
    count[base[taken]] += stay[taken]
    reached = np.zeros(blocks.count, dtype=np.int64)
    np.add.at(reached, blocks.way_block, count * blocks.gain)
    short = np.maximum(blocks.need - reached, 0)
    some = np.flatnonzero(count)
    bounds = np.searchsorted(blocks.way_block[some], np.arange(blocks.count + 1))
    found = []
    for b, (_, _, value, _) in enumerate(plans):
        own = some[bounds[b] : bounds[b + 1]]
        found.append(BlockPlan(b, blocks.column[own], count[own], int(short[b]), value))
    return found
