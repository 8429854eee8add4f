"""Straight lines above what a leaf values another's scaled bundle at: at its slice, or where a bundle lies (rule T3).

Any best solution of the dual of v_i(y) gives a line that touches v_i at y and lies above it everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.fairness.best_split import split_of
from evenhand.fairness.cap_price import cap_prices
from evenhand.fairness.group_value import FloatArray, GroupValues, used_of, wished_of
from evenhand.shapes import BoolArray, IntArray

_AT_ONCE = 20_000
"""Pairs that are worked out side by side: what that takes in memory is bounded."""
_SAME = 1e-9
"""Slopes, and constants as a share of the floor, that differ by less are the same."""


@dataclass(frozen=True, eq=False)
class Lines:
    """A line for each pair, the envious first, over the scaled bundle: L_i, unless it is one of the n moved ones.

    Attributes
    ----------
    values : of L leaves and T types.
    place : which of the moved ones a pair's is, -1 for L_i, int [L, L].
    base : throughput, float [n]; slope : throughput per GPU, float [n, T].
    """

    values: GroupValues
    place: IntArray
    base: FloatArray
    slope: FloatArray

    def of(self, envious: IntArray, envied: IntArray) -> tuple[FloatArray, FloatArray]:
        """Base, float [m], and slope, float [m, T], of some pairs."""
        base, slope = self.values.base[envious], self.values.lever[envious]
        place = self.place[envious, envied]
        moved = place >= 0
        base[moved], slope[moved] = self.base[place[moved]], self.slope[place[moved]]
        return base, slope

    def wished(self, bundles: FloatArray) -> FloatArray:
        """Every line at (e_i/e_l) x_l: throughput, float [L, L].

        Parameters
        ----------
        bundles : GPUs, float [L, T].
        """
        e, found = self.values.entitled, wished_of(self.values, bundles)
        i, k = np.nonzero(self.place >= 0)
        at = self.place[i, k]
        found[i, k] = self.base[at] + e[i] * (self.slope[at] * (bundles / e[:, None])[k]).sum(axis=1)
        return found

    def touching(self, bundles: FloatArray, envious: IntArray, envied: IntArray) -> tuple[Lines, BoolArray]:
        """The same with lines of some pairs that touch v_i at their scaled bundles, and which ones that changes, bool [L, L].

        Parameters
        ----------
        bundles : GPUs, float [L, T].
        """
        base, slope = self.of(envious, envied)
        height, steep = _tangents(self.values, bundles, envious, envied)
        other = np.abs(height - base) > _SAME * self.values.floor[envious]
        other |= np.abs(steep - slope).max(axis=1, initial=0.0) > _SAME
        place = self.place.copy()
        place[envious[other], envied[other]] = len(self.base) + np.arange(other.sum())
        changed = place != self.place
        moved = np.concatenate([self.base, height[other]]), np.concatenate([self.slope, steep[other]])
        return Lines(self.values, place, *moved), changed


def slice_lines(values: GroupValues) -> Lines:
    """L_i for every pair."""
    count, types = values.slices.shape
    return Lines(values, np.full((count, count), -1), np.zeros(0), np.zeros((0, types)))


def _tangents(
    values: GroupValues, bundles: FloatArray, envious: IntArray, envied: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Base, float [n], and slope, float [n, T], of the line that touches v_i at each pair's scaled bundle."""
    base, slope = np.zeros(len(envious)), np.zeros((len(envious), len(values.capacity)))
    several = values.several[envious]
    for some in (np.flatnonzero(~several), np.flatnonzero(several)):
        for part in np.split(some, np.arange(_AT_ONCE, len(some), _AT_ONCE)):
            if len(part):
                base[part], slope[part] = _touch(values, bundles, envious[part], envied[part])
    return base, slope


def _touch(
    values: GroupValues, bundles: FloatArray, envious: IntArray, envied: IntArray
) -> tuple[FloatArray, FloatArray]:
    """The same for few pairs: prices of caps and types where the bundle is split best."""
    table, e = values.table, values.entitled
    y = (e[envious] / e[envied])[:, None] * bundles[envied]
    most = int(table.count[envious].max())
    weights = table.spread(values.weights)[envious, :most]
    cap = table.spread(values.cap.astype(np.float64))[envious, :most]
    split = used_of(weights[:, 0], cap[:, 0], y)[:, None, :] if most == 1 else split_of(weights, cap, y)
    pi = cap_prices(weights, cap, y, split)
    return (pi * cap).sum(axis=1), np.maximum((weights - pi[:, :, None]).max(axis=1), 0.0)
