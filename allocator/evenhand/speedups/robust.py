"""Robust locations and spreads of small samples, and Student's t, without a statistics package."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

HUBER = 1.345
"""Residuals beyond so many standard deviations count as if they were there: 95 % efficient on normal noise."""
HUBER_COST = 1.0 / 0.95
"""Variance of the Huber location over that of the mean, on normal noise."""
_WINSORISED = 0.7102
"""Mean of min(z, HUBER) squared for standard normal z."""
_ROUNDS = 60


def medians(values: FloatArray, owner: IntArray, count: int) -> FloatArray:
    """Median of the values of each owner, float [count]; every owner has at least one.

    Parameters
    ----------
    values : float [n]; owner : 0 to count - 1, int [n].
    """
    order = np.lexsort((values, owner))
    sizes = np.bincount(owner, minlength=count)
    first = np.cumsum(sizes) - sizes
    ordered = values[order]
    return np.asarray((ordered[first + (sizes - 1) // 2] + ordered[first + sizes // 2]) / 2)


def locations(values: FloatArray, owner: IntArray, count: int, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Huber's location of the values of each owner, and the weight it rests on.

    Parameters
    ----------
    values : float [n]; owner : 0 to count - 1, int [n]; variance : known variance of each value, float [n].

    Returns
    -------
    Locations, float [count], and sums of weights (1 over variance, less for outliers), float [count].
    """
    deviation = np.sqrt(variance)
    centre = medians(values, owner, count)
    total = np.ones(count)
    for _ in range(_ROUNDS):
        off = np.abs(values - centre[owner]) / deviation
        weight = np.minimum(1.0, HUBER / np.maximum(off, HUBER)) / variance
        total = np.bincount(owner, weights=weight, minlength=count).astype(np.float64)
        moved = np.bincount(owner, weights=weight * values, minlength=count) / total
        still = bool(np.abs(moved - centre).max(initial=0.0) < 1e-12)
        centre = moved
        if still:
            break
    return centre, total


def spread(residuals: FloatArray, freedom: int) -> float:
    """Standard deviation from residuals about fitted centres, outliers cut off (Huber's proposal 2).

    Parameters
    ----------
    residuals : float [n]; freedom : n less the number of fitted centres, at least 1.
    """
    off = np.abs(residuals)
    start = 1.4826 * float(np.median(off)) * math.sqrt(len(off) / freedom)
    found = start if start > 0 else math.sqrt(float((off**2).sum()) / freedom)
    for _ in range(_ROUNDS):
        if found == 0.0:
            break
        cut = np.minimum(off, HUBER * found)
        moved = math.sqrt(float((cut**2).sum()) / (freedom * _WINSORISED))
        if abs(moved - found) < 1e-12:
            break
        found = moved
    return found


def student(confidence: float, freedom: float) -> float:
    """Half width of a two-sided interval in standard errors: the quantile of Student's t (Hill 1970).

    Parameters
    ----------
    confidence : 0 to 1, exclusive; freedom : degrees of freedom, 2 or more, any real number.
    """
    outside = 1.0 - confidence
    if freedom > 1e6:
        return NormalDist().inv_cdf(1.0 - outside / 2)
    a = 1.0 / (freedom - 0.5)
    b = 48.0 / (a * a)
    c = ((20700.0 * a / b - 98.0) * a - 16.0) * a + 96.36
    d = ((94.5 / (b + c) - 3.0) / b + 1.0) * math.sqrt(a * math.pi / 2.0) * freedom
    y = (d * outside) ** (2.0 / freedom)
    if y > 0.05 + a:
        x = NormalDist().inv_cdf(outside / 2)
        y = x * x
        if freedom < 5:
            c += 0.3 * (freedom - 4.5) * (x + 0.6)
        c += (((0.05 * d * x - 5.0) * x - 7.0) * x - 2.0) * x + b
        y = (((((0.4 * y + 6.3) * y + 36.0) * y + 94.5) / c - y - 3.0) / b + 1.0) * x
        y = math.expm1(a * y * y)
    else:
        y = (
            (
                1.0 / (((freedom + 6.0) / (freedom * y) - 0.089 * d - 0.822) * (freedom + 2.0) * 3.0)
                + 0.5 / (freedom + 4.0)
            )
            * y
            - 1.0
        ) * (freedom + 1.0) / (freedom + 2.0) + 1.0 / y
    return math.sqrt(freedom * y)
