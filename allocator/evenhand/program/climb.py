"""The steps up that cover a block's need best: a bounded multiple-choice knapsack, exact, over the units that are in doubt.

A price for a grain (of the Lagrangian of the need) bounds every choice. What loses more than the gap between that bound and
a choice known is in no best choice: such units are settled, and only the others are searched, in one order with them, so
that sums and ties are those of a search over all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.shapes import BoolArray, IntArray

FloatArray = npt.NDArray[np.float64]
BISECTIONS = 14
SURE = 1e-7
"""Losses are compared with this much room for rounding, as a share of the figures."""
_NEXT = -1
OPEN, OUT = -2, -1
"""A unit in doubt; one that takes no step. Settled ones are the place of their step."""


@dataclass(frozen=True, eq=False)
class Steps:
    """Steps up, ordered by block, then unit.

    Attributes
    ----------
    gain, price : grains and worth of each, the former at most the block's need, int and float [S].
    first : where the steps of each unit begin, int [V + 1]; copies : jobs of each that may take one, int [V].
    begin : where the units of each block begin, int [B + 1]; need : int [B]; weight : cost of a grain short, float [B].
    """

    gain: IntArray
    price: FloatArray
    first: IntArray
    copies: IntArray
    begin: IntArray
    need: IntArray
    weight: FloatArray

    def settled(self) -> tuple[IntArray, BoolArray]:
        """What is in the best choices: the step of all jobs of a unit, `OUT`, or `OPEN`, int [V]; steps that may be, bool [S]."""
        if not len(self.copies):
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool)
        low, high = np.zeros(len(self.need)), self.weight.copy()
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            enough = self._reached(self._best(middle)[1]) >= self.need
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        known = np.maximum(self._beside(self._best(low)[1]), self._beside(self._best(high)[1]))
        worth, step, second = self._best(high)
        bound = self._sums(self.copies * np.maximum(worth, 0.0)) - high * self.need
        gap = bound - known + SURE * (1.0 + np.abs(bound) + high * self.need)
        takes = step >= 0
        loses = np.where(takes, worth - np.maximum(second, 0.0), -worth)
        gap = gap[self._block]
        unit = self._unit
        worth_of = self.price + high[self._block[unit]] * self.gain
        return np.where(loses > gap, step, OPEN), worth_of >= (np.maximum(worth, 0.0) - gap)[unit]

    @property
    def _block(self) -> IntArray:
        return np.repeat(np.arange(len(self.need)), np.diff(self.begin))

    @property
    def _unit(self) -> IntArray:
        return np.repeat(np.arange(len(self.copies)), np.diff(self.first))

    def _best(self, grain: FloatArray) -> tuple[FloatArray, IntArray, FloatArray]:
        """At a price for a grain, by unit: the most a step is worth, which (`OUT`: none is worth anything), the second most."""
        unit = self._unit
        worth = self.price + grain[self._block[unit]] * self.gain
        starts = self.first[:-1]
        most = np.maximum.reduceat(worth, starts)
        at = np.flatnonzero(worth == most[unit])
        at = at[np.append(True, unit[at][1:] != unit[at][:-1])]
        others = worth.copy()
        others[at] = -np.inf
        return most, np.where(most > 0, at, OUT), np.maximum.reduceat(others, starts)

    def _sums(self, values: FloatArray | IntArray) -> FloatArray:
        """Sums by block."""
        return np.asarray(np.bincount(self._block, values, len(self.need)), dtype=np.float64)

    def _reached(self, step: IntArray) -> FloatArray:
        """Grains by block if all take these steps."""
        return self._sums(np.where(step >= 0, self.copies * self.gain[step], 0))

    def _beside(self, step: IntArray) -> FloatArray:
        """What a choice is worth by block, or the best of those that differ for one job."""
        takes, block = step >= 0, self._block
        unit = self._unit
        price, gain = np.where(takes, self.price[step], 0.0), np.where(takes, self.gain[step], 0)
        missing = self.need - self._reached(step)
        value = self._sums(self.copies * price)
        best = value - self.weight * np.maximum(missing, 0)
        for other_price, other_gain, of in ((self.price, self.gain, unit), (0.0, 0, np.arange(len(self.copies)))):
            left = np.maximum(missing[block[of]] - (other_gain - gain[of]), 0)
            change = other_price - price[of] - self.weight[block[of]] * left
            np.maximum.at(best, block[of], value[block[of]] + change)
        return best


def climb(steps: Steps) -> tuple[IntArray, FloatArray]:
    """How often to take each step, int [S], and what that is worth by block, shortfall included, float [B]."""
    counts = np.zeros(len(steps.gain), dtype=np.int64)
    worth = -steps.weight * steps.need
    settled, doubtful = (a.tolist() for a in steps.settled())
    gains, prices, first, copies = (a.tolist() for a in (steps.gain, steps.price, steps.first, steps.copies))
    begin, needs, weights = steps.begin.tolist(), steps.need.tolist(), steps.weight.tolist()
    for b, need in enumerate(needs):
        if begin[b] == begin[b + 1]:
            continue
        units = range(begin[b], begin[b + 1])
        search = _Search(need, gains, prices, max(gains[first[units[0]] : first[units[-1] + 1]]))
        for unit in units:
            if settled[unit] == OPEN:
                search.choose([k for k in range(first[unit], first[unit + 1]) if doubtful[k]], copies[unit])
            elif settled[unit] != OUT:
                search.take(settled[unit], copies[unit])
                counts[settled[unit]] = copies[unit]
        worth[b] = search.count(weights[b], counts)
    return counts, worth


class _Search:
    """best[r] = most worth with at most r grains missing; a step of gain a: best'[r] = best[min(r + a, need)] + price.

    `_best` holds it for r from -`_off`: what settled units gain shifts the offset alone. Below `_low` nothing is reached yet,
    from `need` on all is the same; so many places follow as a step may gain.
    """

    def __init__(self, need: int, gains: list[int], prices: list[float], most: int) -> None:
        self._need, self._gains, self._prices = need, gains, prices
        self._best: FloatArray = np.full(need + 1 + most, -np.inf)
        self._best[need:] = 0.0
        self._low, self._off = need, 0
        self._trail: list[tuple[int, int, BoolArray]] = []
        """Steps in the order tried: step, place, and where from there it is the best so far of its job."""

    def take(self, step: int, copies: int) -> None:
        """Everybody of a unit takes a step."""
        self._off = min(self._off + copies * self._gains[step], self._need)
        self._low = max(self._low, self._off)
        for _ in range(copies):
            self._best[self._low :] += self._prices[step]

    def choose(self, steps: list[int], copies: int) -> None:
        """One job after the other takes the step that is best, or none."""
        best, stop = self._best, self._need + 1
        for copy in range(copies):
            tried = []
            for k in steps:
                gain = self._gains[k]
                low = max(self._off, self._low - gain)
                tried.append((k, low, best[low + gain : stop + gain] + self._prices[k]))
            more = False
            for k, low, better in tried:
                here = best[low:stop]
                wins = better > here
                np.maximum(here, better, out=here)
                self._trail.append((k, low, wins))
                self._low = min(self._low, low)
                more = more or (copy + 1 < copies and bool(wins.any()))
            best[stop:] = best[self._need]
            self._trail.append((_NEXT, 0, wins))
            if not more:
                break

    def count(self, weight: float, counts: IntArray) -> float:
        """Count the steps of the best choice; returns what it is worth."""
        total = self._best[self._low : self._need + 1] - weight * np.arange(
            self._low - self._off, self._need + 1 - self._off
        )
        at = int(np.argmax(total))
        place, chosen = self._low + at, False
        for step, low, wins in reversed(self._trail):
            if step == _NEXT:
                chosen = False
            elif not chosen and place >= low and wins[place - low]:
                counts[step] += 1
                place, chosen = min(place + self._gains[step], self._need), True
        return float(total[at])
