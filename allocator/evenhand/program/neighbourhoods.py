"""Better points around the best one: free a few groups, hold all others, let CP-SAT decide (large neighbourhood search).

Which groups: those whose plans lose most against the bound, alone or in a row that they share (`regret`). Of their ways only
those on which good plans differ, until that brings nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.program.decompose import Generation
from evenhand.shapes import BoolArray, IntArray

FREED_AT_FIRST = 60
MOST_FREED = 2_000
LEAST_FREED = 40
GROWTH = 1.15
"""By how much more ways are freed after a neighbourhood that was decided to the end, and less after one that was not."""
TOGETHER = 0.7
"""How often one shared row says which groups come first."""
EVERYWHERE = 0.5
"""Rows in which more than this part of all groups stand say nothing about which."""
SPREAD = 0.2
"""Part of all regret that every group shares equally."""
STALE, STALE_SPREAD = 6, 2.0
"""After so many neighbourhoods in a row that bring nothing all ways of the groups are freed, and every group shares that much."""


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """What may change: whose plans, bool [B]; bounds of all columns, int [c] each, and which are free, bool [c]."""

    blocks: BoolArray
    lower: IntArray
    upper: IntArray
    free: BoolArray


class Neighbourhoods:
    """Draws groups to free; the same seed draws the same. How much is freed follows what the solver can decide."""

    def __init__(self, generation: Generation, seed: int) -> None:
        blocks, arrays = generation.shared.blocks, generation.shared.arrays
        self._blocks, self._arrays = blocks, arrays
        self._regrets, self._near = generation.regrets(), generation.near()
        self._random = np.random.Generator(np.random.PCG64(seed))
        self._freed = float(FREED_AT_FIRST)
        self._idle = 0
        rows = arrays.shape[0]
        regrets = self._regrets
        self._in_row = np.bincount(regrets.pair_row, minlength=rows)
        self._some = (self._in_row > 0) & (self._in_row <= max(1.0, EVERYWHERE * blocks.count))
        self._first = np.searchsorted(regrets.pair_row, np.arange(rows + 1))

    def draw(self, x: IntArray, busy: Sequence[BoolArray] = ()) -> Neighbourhood | None:
        """What to free around x.

        Parameters
        ----------
        busy : groups to leave alone, bool [B] each; None is returned where nothing is left to free.
        """
        b, a = self._blocks, self._arrays
        low, high = a.lower.copy(), a.upper.copy()
        if self._idle < STALE:
            low[b.column] = np.maximum(low, np.minimum(self._near[0], x))[b.column]
            high[b.column] = np.minimum(high, np.maximum(self._near[1], x))[b.column]
        differ = (high > low)[b.column]
        order = self._order(x)
        for others in busy:
            order = order[~others[order]]
        freed = np.cumsum(np.bincount(b.way_block[differ], minlength=b.count)[order])
        chosen = np.zeros(b.count, dtype=bool)
        chosen[order[: 1 + int(np.searchsorted(freed, self._freed))]] = True
        free = np.ones(len(x), dtype=bool)
        free[b.column] = chosen[b.way_block] & differ
        if busy and not free[b.column].any():
            return None
        return Neighbourhood(chosen, low, high, free)

    def between(self, x: IntArray, z: IntArray) -> tuple[IntArray, IntArray, BoolArray]:
        """What is free between two points, each way as often as one of them says or between; all that is no way is free too.

        Returns
        -------
        Bounds of all columns, int [c] each, and which are free, bool [c].
        """
        b, a = self._blocks, self._arrays
        low, high = a.lower.copy(), a.upper.copy()
        low[b.column], high[b.column] = np.minimum(x, z)[b.column], np.maximum(x, z)[b.column]
        free = np.ones(len(x), dtype=bool)
        free[b.column] = (high > low)[b.column]
        return low, high, free

    def _order(self, x: IntArray) -> IntArray:
        """All blocks, those to free first."""
        count = self._blocks.count
        block, row = self._regrets.of(x)
        row = np.where(self._some, row, 0.0)
        share = row / np.maximum(self._in_row, 1)
        weight = block + np.bincount(self._regrets.pair_block, share[self._regrets.pair_row], count)
        weight += ((SPREAD if self._idle < STALE else STALE_SPREAD) * weight.sum() + 1e-6) / count
        order = self._random.choice(count, size=count, replace=False, p=weight / weight.sum())
        if row.sum() > 0 and self._random.random() < TOGETHER:
            drawn = int(self._random.choice(len(row), p=row / row.sum()))
            together = self._regrets.pair_block[self._first[drawn] : self._first[drawn + 1]]
            ahead = np.isin(order, together)
            order = np.concatenate([order[ahead], order[~ahead]])
        return np.asarray(order, dtype=np.int64)

    def learn(self, *, decided: bool, better: bool) -> None:
        """Free more next time if this neighbourhood was decided to the end, else less."""
        self._freed *= GROWTH if decided else 1 / GROWTH
        self._freed = min(max(self._freed, LEAST_FREED), MOST_FREED)
        self._idle = 0 if better else self._idle + 1
