"""The largest sum of whole gangs below a limit, exactly (rules O1, O2, T5)."""

from __future__ import annotations

import math

import numpy as np

from evenhand.shapes import IntArray

Kinds = list[tuple[int, int]]
"""Values with how often each is there, the largest value first."""

_WINDOWS = (1 << 15, 1 << 19)
"""Widths of the cheap tries, in reduced units: greedy above, exact below."""
_SMALL = 1 << 20
"""Up to so many bits the plain way is the quick one."""
_MOST_ODD_SUMS = 4096
_LEAST_DIVISOR = 64


def limit_milli(gpus: float) -> int:
    """Whole thousandths of a GPU not above `gpus` + 1e-6: the limit that rules O2 and T5 speak of."""
    return math.floor(gpus * 1000 + 1e-3)


def largest_sum_not_above(values: IntArray, limit: int) -> int:
    """Return the largest sum of a subset of `values` that is not above `limit`.

    Exact: sums are the bits of one long integer, distances from the limit rather than sums, so that a
    shift to the right drops what is out of reach and bit 0 says that the limit itself is reached. Equal
    values are bundled in powers of two, and everything is divided by the common divisor. Where many sums
    are near the limit, taking the largest first and searching only the rest proves itself by hitting the
    limit.

    Parameters
    ----------
    values : whole numbers, int [n]; those of 0 or less are left out.
    limit : whole number; 0 or less gives 0, the sum of nothing.
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
    kinds = [(v // unit, n) for v, n in zip(found[::-1].tolist(), times[::-1].tolist(), strict=True)]
    reach = limit // unit
    return (reach - _least_missing(kinds, reach)) * unit


def _least_missing(kinds: Kinds, reach: int) -> int:
    """Least distance from `reach` of a sum not above it."""
    if reach > _SMALL:
        for window in _WINDOWS:
            if _missing_after_greedy(kinds, reach, window) == 0:
                return 0
        by_parts = _missing_by_parts(kinds, reach)
        if by_parts is not None:
            return by_parts
    return _missing(_bundles(kinds), reach)


def _bundles(kinds: Kinds) -> list[int]:
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
    """Least distance from `reach` of a sum of bundles not above it."""
    distances = 1 << reach
    for bundle in bundles:
        distances |= distances >> bundle
        if distances & 1:
            return 0
    return (distances & -distances).bit_length() - 1


def _missing_after_greedy(kinds: Kinds, reach: int, window: int) -> int:
    """Distance from `reach` that is left when the largest are taken first, down to a small exact rest.

    An upper estimate of the least distance; 0 is proof of itself.
    """
    left: Kinds = []
    rest = reach
    for value, count in kinds:
        taken = max(0, min(count, (rest - window) // value)) if rest > window else 0
        rest -= taken * value
        left.append((value, count - taken))
    if rest > 2 * window:
        return rest
    return _missing(_bundles([(value, count) for value, count in left if value <= rest]), rest)


def _missing_by_parts(kinds: Kinds, reach: int) -> int | None:
    """The same where all values but a few share a divisor: every sum of the few, below each the multiples.

    None if the few have too many sums.
    """
    heavy = sorted(kinds, key=lambda kind: (-kind[0] * kind[1], -kind[0]))
    divisor, odd = heavy[0][0], []
    for value, count in heavy[1:]:
        common = math.gcd(divisor, value)
        if common < _LEAST_DIVISOR <= divisor:
            odd.append((value, count))
        else:
            divisor = common
    if divisor < _LEAST_DIVISOR:
        return None
    sums = {0}
    for bundle in _bundles(odd):
        sums |= {s + bundle for s in sums if s + bundle <= reach}
        if len(sums) > _MOST_ODD_SUMS:
            return None
    even = [(value // divisor, count) for value, count in kinds if (value, count) not in odd]
    reached, within = 1, (1 << (reach // divisor + 1)) - 1
    for bundle in _bundles(even):
        reached |= (reached << bundle) & within
    best = reach
    for s in sums:
        most = (reach - s) // divisor
        best = min(best, reach - s - divisor * ((reached & ((1 << (most + 1)) - 1)).bit_length() - 1))
    return best
