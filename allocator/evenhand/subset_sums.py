"""The largest sum of whole gangs below a limit, exactly (rules O1, O2, T5)."""

from __future__ import annotations

import math

import numpy as np

from evenhand.shapes import IntArray

_WINDOW_BITS = 1 << 15
"""Width of the cheap first try, in reduced units: greedy above it, exact below."""


def limit_milli(gpus: float) -> int:
    """Whole thousandths of a GPU not above `gpus` + 1e-6: the limit that rules O2 and T5 speak of."""
    return math.floor(gpus * 1000 + 1e-3)


def largest_sum_not_above(values: IntArray, limit: int) -> int:
    """Return the largest sum of a subset of `values` that is not above `limit`.

    Exact: sums are the bits of one long integer, distances from the limit rather than sums, so that a shift to the
    right drops what is out of reach and bit 0 says that the limit itself is reached. Equal values are bundled in
    powers of two, and everything is divided by the common divisor.

    Parameters
    ----------
    values : whole numbers, int [n]; those of 0 or less are left out.
    limit : whole number; below 0 gives 0, the sum of nothing.
    """
    listed = np.asarray(values, dtype=np.int64)
    listed = listed[(listed > 0) & (listed <= limit)]
    if limit <= 0 or not listed.size:
        return 0
    total = int(listed.sum())
    if total <= limit:
        return total
    found, times = np.unique(listed, return_counts=True)
    unit = int(np.gcd.reduce(found))
    kinds = [(int(v) // unit, int(n)) for v, n in zip(found[::-1], times[::-1], strict=True)]
    reach = limit // unit
    missing = _missing_after_greedy(kinds, reach)
    if missing:
        missing = _missing(_bundles(kinds), reach)
    return (reach - missing) * unit


def _bundles(kinds: list[tuple[int, int]]) -> list[int]:
    """Write n times v as v, 2v, 4v, ... and a rest: every multiple up to n v is a sum of them."""
    bundles = []
    for value, count in kinds:
        left, size = count, 1
        while left:
            size = min(size, left)
            bundles.append(value * size)
            left -= size
            size *= 2
    return bundles


def _missing(bundles: list[int], reach: int) -> int:
    """Least distance from `reach` of a sum not above it."""
    distances = 1 << reach
    for bundle in bundles:
        distances |= distances >> bundle
        if distances & 1:
            return 0
    return (distances & -distances).bit_length() - 1


def _missing_after_greedy(kinds: list[tuple[int, int]], reach: int) -> int:
    """Distance from `reach` that is left when the largest are taken first, down to a small exact rest.

    An upper estimate of the least distance; 0 is proof of itself and saves the long way.
    """
    left: list[tuple[int, int]] = []
    rest = reach
    for value, count in kinds:
        taken = max(0, min(count, (rest - _WINDOW_BITS) // value)) if rest > _WINDOW_BITS else 0
        rest -= taken * value
        left.append((value, count - taken))
    if rest > 2 * _WINDOW_BITS:
        return rest
    return _missing(_bundles([(value, count) for value, count in left if value <= rest]), rest)
