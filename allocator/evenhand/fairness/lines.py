"""Straight lines above what a leaf values another's scaled bundle at: at its slice first, then where bundles lie (T3).

Any best solution of the dual of `v_i(y)` gives a line that touches `v_i` at y and lies above it everywhere else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.fairness.best_split import split_of
from evenhand.fairness.cap_price import cap_prices
from evenhand.fairness.group_value import FloatArray, GroupValues, used_of
from evenhand.shapes import BoolArray, IntArray

_AT_ONCE = 20_000
"""Pairs that are worked out side by side: what they take in memory is bounded."""
_TOUCHES = 1e-9
"""Distance of a line from the value, as a share of the floor, that is rounding."""


@dataclass(frozen=True, eq=False)
class Lines:
    """A line for each pair, the envious first: base + slope times its scaled bundle; L leaves, T types.

    Attributes
    ----------
    base : throughput, float [L, L]; slope : throughput per GPU, float [L, L, T].
    """

    base: FloatArray
    slope: FloatArray

    def wished(self, values: GroupValues, bundles: FloatArray) -> FloatArray:
        """The lines at (e_i/e_l) x_l, float [L, L].

        Parameters
        ----------
        bundles : GPUs, float [L, T].
        """
        e = values.entitled
        return np.asarray(self.base + e[:, None] * (self.slope * (bundles / e[:, None])).sum(axis=2))


def slice_lines(values: GroupValues) -> Lines:
    """L_i for every pair."""
    count, types = values.slices.shape
    base = np.repeat(values.base[:, None], count, axis=1)
    return Lines(base, np.repeat(values.lever[:, None, :], count, axis=1).reshape(count, count, types))


def touching(values: GroupValues, bundles: FloatArray, lines: Lines, pairs: BoolArray) -> tuple[Lines, BoolArray]:
    """Lines that touch v_i at the scaled bundles, and where that changes something, bool [L, L].

    Lines that touch already are kept.

    Parameters
    ----------
    bundles : GPUs, float [L, T]; pairs : which to work out, bool [L, L]: others stay.
    """
    base, slope, fresh = lines.base.copy(), lines.slope.copy(), np.zeros(pairs.shape, dtype=bool)
    wished = lines.wished(values, bundles)
    several = values.several
    for some in (~several, several):
        envious, envied = np.nonzero(pairs & some[:, None])
        for start in range(0, len(envious), _AT_ONCE):
            i, k = envious[start : start + _AT_ONCE], envied[start : start + _AT_ONCE]
            value, height, steep = _tangents(values, bundles, i, k)
            apart = wished[i, k] - value > _TOUCHES * values.floor[i]
            i, k = i[apart], k[apart]
            base[i, k], slope[i, k], fresh[i, k] = height[apart], steep[apart], True
    return Lines(base, slope), fresh


def _tangents(
    values: GroupValues, bundles: FloatArray, envious: IntArray, envied: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """v_i of each pair's scaled bundle, float [n], and the line that touches there: float [n], float [n, T]."""
    table, e = values.table, values.entitled
    y = (e[envious] / e[envied])[:, None] * bundles[envied]
    most = int(table.count[envious].max(initial=1))
    weights = table.spread(values.weights)[envious, :most]
    cap = table.spread(values.cap.astype(np.float64))[envious, :most]
    split = used_of(weights[:, 0], cap[:, 0], y)[:, None, :] if most == 1 else split_of(weights, cap, y)
    pi = cap_prices(weights, cap, y, split)
    slope = np.maximum((weights - pi[:, :, None]).max(axis=1), 0.0)
    return (weights * split).sum(axis=(1, 2)), (pi * cap).sum(axis=1), slope
