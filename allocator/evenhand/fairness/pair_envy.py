"""What each leaf would gain from each other's GPUs, exact for all pairs that a certificate can tell of (T1, A4).

A leaf with several job classes values a bundle by a transport program, too long for every pair of many leaves.
Straight lines above its value bound it from above (T3); where the bound is too large to be passed over the program
is solved, and its prices give one more line for all pairs of the leaf.
"""

from __future__ import annotations

import numpy as np

from evenhand.fairness.best_split import split_of
from evenhand.fairness.cap_price import cap_prices
from evenhand.fairness.group_value import FloatArray, GroupValues, used_of, value_of, wished_of
from evenhand.fairness.rows import largest
from evenhand.shapes import IntArray

_AT_ONCE = 3
"""Pairs of each leaf that are solved in one go."""
_NONE = 1e-8
"""Envy up to this, in throughput, is rounding."""


def pair_envy(values: GroupValues, held: FloatArray, reached: FloatArray, enough: FloatArray, told: int) -> FloatArray:
    """v_i((e_i/e_l) X_l) - throughput of i, 0 or more, over floor_i; float [L, L], the envious first.

    Exact for the largest of all, and for the `told` largest of those above `enough` of the envious; the others are
    bounded from above, by less than these.

    Parameters
    ----------
    held : X, GPUs, float [L, T]; reached : throughput, float [L]; enough : in floors, float [L].
    """
    count = len(values.leaves)
    if not count:
        return np.zeros((0, 0))
    bounds = np.minimum(wished_of(values, held), values.per_leaf(values.weights.max(axis=1) * values.cap)[:, None])
    pairs = _Pairs(values, held, reached, bounds)
    pairs.settle_single()
    while True:
        wanted = pairs.unsettled(enough, told)
        rows, columns = largest(wanted, _AT_ONCE)
        keep = wanted[rows, columns] > 0
        if not keep.any():
            return pairs.envy
        pairs.settle(rows[keep], columns[keep])


def envy_missed(values: GroupValues, bundles: FloatArray) -> float:
    """By how much leaves would gain from each other's scaled bundles: throughput, in sum over pairs (T3).

    Parameters
    ----------
    bundles : x, GPUs, float [L, T].
    """
    floor, count = np.where(values.floor > 0, values.floor, np.inf), len(values.floor)
    rounding, value = _NONE / floor, value_of(values, bundles)
    beyond = wished_of(values, bundles) - value[:, None] > _NONE
    np.fill_diagonal(beyond, False)
    if not beyond[values.floor > 0].any():
        return 0.0
    envy = pair_envy(values, bundles, value, rounding, count * count)
    return float((np.where(envy > rounding[:, None], envy, 0.0) * values.floor[:, None]).sum())


class _Pairs:
    """Bounds, and which of them are exact."""

    def __init__(self, values: GroupValues, held: FloatArray, reached: FloatArray, most: FloatArray) -> None:
        self._values, self._held, self._reached = values, held, reached
        self._table = values.table
        self._weights = self._table.spread(values.weights)
        self._cap = self._table.spread(values.cap.astype(np.float64))
        self._floor = np.where(values.floor > 0, values.floor, np.inf)
        self._exact = np.eye(len(reached), dtype=bool)
        self.envy = self._over_floor(most, np.arange(len(reached)))
        np.fill_diagonal(self.envy, 0.0)

    def _over_floor(self, value: FloatArray, rows: IntArray) -> FloatArray:
        """Values of some rows, float [n, L], as envy."""
        return np.asarray(np.maximum(value - self._reached[rows, None], 0.0) / self._floor[rows, None])

    def settle_single(self) -> None:
        """Leaves with one class: best types first."""
        values, e = self._values, self._values.entitled
        for i in np.flatnonzero(self._table.count == 1):
            k = int(np.searchsorted(values.of, i))
            scaled = (e[i] / e)[:, None] * self._held
            one = np.broadcast_to(values.weights[k], scaled.shape)
            used = used_of(one, np.full(len(e), values.cap[k]), scaled)
            self.envy[i] = self._over_floor((one * used).sum(axis=1)[None, :], np.array([i]))[0]
            self.envy[i, i] = 0.0
            self._exact[i] = True

    def unsettled(self, enough: FloatArray, told: int) -> FloatArray:
        """Bounds that are too large to be passed over, 0 elsewhere, float [L, L]."""
        open_ = np.where(self._exact, 0.0, self.envy)
        beyond = self.envy > enough[:, None]
        known = self.envy[self._exact & beyond]
        least = np.partition(known, -told)[-told] if len(known) >= told else 0.0
        most = self.envy[self._exact].max(initial=0.0)
        return np.asarray(np.where((open_ > most) | (beyond & (open_ >= least)), open_, 0.0))

    def settle(self, rows: IntArray, columns: IntArray) -> None:
        """Solve some pairs, and bound others of the same leaves by their prices."""
        e = self._values.entitled
        bundles = (e[rows] / e[columns])[:, None] * self._held[columns]
        weights, cap = self._weights[rows], self._cap[rows]
        split = split_of(weights, cap, bundles)
        pi = cap_prices(weights, cap, bundles, split)
        slope = np.maximum((weights - pi[:, :, None]).max(axis=1), 0.0)
        lines = (pi * cap).sum(axis=1)[:, None] + (slope @ (self._held / e[:, None]).T) * e[rows, None]
        lower = self._over_floor(lines, rows)
        for place, row in enumerate(rows):
            self.envy[row] = np.where(self._exact[row], self.envy[row], np.minimum(self.envy[row], lower[place]))
        value = (weights * split).sum(axis=(1, 2))
        self.envy[rows, columns] = np.maximum(value - self._reached[rows], 0.0) / self._floor[rows]
        self._exact[rows, columns] = True
