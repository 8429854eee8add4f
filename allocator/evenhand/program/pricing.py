"""The best plan of every block under prices: a bounded multiple-choice knapsack, solved exactly.

Value of a plan: sum of price x count over its ways, less `short_cost` for every grain that its gains fall short of `need`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.program.blocks import Blocks
from evenhand.program.climb import Steps, climb
from evenhand.shapes import IntArray

FloatArray = npt.NDArray[np.float64]
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
    base, own, steps, value = _steps_up(blocks, price, short_price)
    ups, worth = climb(steps)
    return _assembled(blocks, base, own, ups, value + worth)


def good_plans(blocks: Blocks, price: FloatArray, short_price: FloatArray) -> list[BlockPlan]:
    """A good plan of each block in a fraction of the time: of each unit the step that pays best for its grains, best ones first.

    Parameters as in `best_plans`; other plans of a block may be worth more.
    """
    base, own, steps, value = _steps_up(blocks, price, short_price)
    ups, worth = _filled(steps)
    return _assembled(blocks, base, own, ups, value + worth)


def _steps_up(
    blocks: Blocks, price: FloatArray, short_price: FloatArray
) -> tuple[IntArray, IntArray, Steps, FloatArray]:
    """What units do at least and steps up from there.

    Returns
    -------
    tuple
        The way that the jobs of each unit go at least, int [U], -1: none; the ways that are steps up, int [S]; the steps;
        what the least is worth, float [B].
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
    own = np.flatnonzero(useful)
    unit, first = np.unique(blocks.way_unit[own], return_index=True)
    least_gain = np.minimum.reduceat(up_gain[own], first) if len(own) else up_gain[own]
    steps = Steps(
        gain=np.minimum(up_gain[own], need[blocks.way_block[own]]),
        price=up_price[own],
        first=np.append(first, len(own)),
        copies=np.minimum(most[unit], -(-need[blocks.unit_block[unit]] // np.maximum(1, least_gain))),
        begin=np.searchsorted(blocks.unit_block[unit], np.arange(blocks.count + 1)),
        need=need,
        weight=short_price,
    )
    return base, own, steps, value


def _filled(steps: Steps) -> tuple[IntArray, FloatArray]:
    """How often each step is taken when those that pay best for a grain come first, int [S]; what that is worth by block."""
    ups, units = np.zeros(len(steps.gain), dtype=np.int64), len(steps.copies)
    worth = -steps.weight * steps.need
    if not units:
        return ups, worth
    pays = steps.price / steps.gain
    unit = np.repeat(np.arange(units), np.diff(steps.first))
    best = np.flatnonzero(pays == np.maximum.reduceat(pays, steps.first[:-1])[unit])
    step = best[np.append(True, unit[best][1:] != unit[best][:-1])]
    block = np.repeat(np.arange(len(steps.need)), np.diff(steps.begin))
    order = np.lexsort((step, -pays[step], block))
    step, block = step[order], block[order]
    gain, copies, price = steps.gain[step], steps.copies[order], steps.price[step]
    full = np.cumsum(gain * copies) - gain * copies
    left = np.maximum(steps.need[block] - (full - full[steps.begin[:-1].clip(max=units - 1)][block]), 0)
    whole = np.minimum(left // gain, copies)
    rest = left - whole * gain
    last = (rest > 0) & (whole < copies) & (price + steps.weight[block] * rest > _DUST)
    ups[step] = whole + last
    filled = np.bincount(block, np.minimum(ups[step] * gain, left), len(steps.need))
    return ups, worth + steps.weight * filled + np.bincount(block, ups[step] * price, len(steps.need))


class _Table:
    """Best ways by unit."""

    def __init__(self, blocks: Blocks, price: FloatArray) -> None:
        self._blocks, self._price = blocks, price
        self._starts = np.searchsorted(blocks.way_unit, np.arange(len(blocks.most)))

    def best_paid(self) -> IntArray:
        """The way with the highest price of each unit (of equals the one with most gain, then the first), int [U]."""
        unit, gain = self._blocks.way_unit, self._blocks.gain
        paid = self._price == np.maximum.reduceat(self._price, self._starts)[unit]
        best = np.flatnonzero(paid & (gain == np.maximum.reduceat(np.where(paid, gain, -1), self._starts)[unit]))
        return np.asarray(best[np.append(True, unit[best][1:] != unit[best][:-1])])

    def worth(self, way: IntArray) -> FloatArray:
        """Price of one way of each unit."""
        return np.asarray(self._price[way])


def _assembled(blocks: Blocks, base: IntArray, own: IntArray, ups: IntArray, values: FloatArray) -> list[BlockPlan]:
    """Whole plans: steps up replace what their jobs would do at least."""
    count = np.zeros(len(blocks.column), dtype=np.int64)
    stay = blocks.most.copy()
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
    ends, shorts = bounds.tolist(), short.tolist()
    for b, value in enumerate(values.tolist()):
        own = some[ends[b] : ends[b + 1]]
        found.append(BlockPlan(b, blocks.column[own], count[own], shorts[b], value))
    return found
