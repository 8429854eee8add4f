"""How much more throughput a division leaves on the table with nobody worse off (rule T6).

What is stated is a bound with a witness: prices of GPUs by type. For any prices p, 0 or more, no division
within capacity in which every leaf keeps its value brings more than

    sum p m + sum_i min over s >= 1 of [sum_k c_ik max(0, max_t (s W_ikt - p_t)) - (s - 1) v_i],

k over the leaf's job classes, c_ik the lesser of cap_ik and all GPUs there are, t over types of which there are
some: the dual of "most throughput with nobody worse off", s - 1 being the price of leaf i's value. Whoever has
the prices checks the bound by plain arithmetic; the prices found here are best ones, so that the bound is tight.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.errors import SolverError
from evenhand.fairness.group_value import FloatArray, GroupValues, value_of
from evenhand.fairness.rows import capacity_rows, floor_rows, grid_of
from evenhand.solvers.lp import INFINITY, LpStatus, Rows, solve_lp, stack

_KEPT = 1e-9
"""By how much less than what it has a leaf may end with in the program: rounding must not make it impossible."""


@dataclass(frozen=True, eq=False)
class Pareto:
    """What could be gained with nobody worse off, and the prices that prove that it is no more.

    Attributes
    ----------
    gap : throughput gained as a share of what there is, 0 or more; 0 where there is none.
    prices : throughput per GPU by type, float [T].
    """

    gap: float
    prices: FloatArray


def pareto_gap(values: GroupValues, bundles: FloatArray, iterations: int = 100_000) -> Pareto | None:
    """Find best prices and what they prove; None where the iterations do not do.

    Parameters
    ----------
    bundles : GPUs within capacity and caps, float [L, T].
    """
    value = value_of(values, bundles)
    total, grid = float(value.sum()), grid_of(values)
    if total <= 0.0 or not grid.count:
        return Pareto(0.0, np.zeros(len(values.capacity)))
    if iterations < int((value > 0).sum()):  # from nothing, every leaf's value takes one
        return None
    kept = floor_rows(grid)
    rows = stack(
        capacity_rows(grid), Rows(kept.indptr, kept.indices, kept.data, value / grid.unit * (1 - _KEPT), kept.upper)
    )
    n = grid.count
    try:
        found = solve_lp(grid.worth, rows, np.zeros(n), np.full(n, INFINITY), maximize=True, iteration_limit=iterations)
    except SolverError:
        return None
    if found.status is not LpStatus.OPTIMAL:
        return None
    prices = np.maximum(found.row_dual[: len(values.capacity)], 0.0)
    return Pareto(gap_proven_by(values, value, prices), prices)


def gap_proven_by(values: GroupValues, value: FloatArray, prices: FloatArray) -> float:
    """What prices prove: no division with nobody worse off brings more than this above `value`, as a share.

    Parameters
    ----------
    value : what leaves have, float [L], some of it above 0; prices : 0 or more, throughput per GPU, float [T].
    """
    most = float(prices @ values.capacity) + float(_least_dual(values, value, prices).sum())
    return max(0.0, most / float(value.sum()) - 1.0)


def _least_dual(values: GroupValues, value: FloatArray, prices: FloatArray) -> FloatArray:
    """The least over s >= 1 of each leaf's part of the dual, float [L]: convex in s, so at 1 or where lines meet."""
    there = values.capacity > 0
    lines = np.concatenate([values.weights[:, there], np.zeros((len(values.of), 1))], axis=1)
    height = np.append(prices[there], 0.0)
    most = np.minimum(values.cap, values.capacity.sum()).astype(np.float64)
    places = _places(values, lines, height)
    above = np.zeros((len(values.of), places.shape[1]))
    for line, price in zip(lines.T, height, strict=True):
        np.maximum(above, places[values.of] * line[:, None] - price, out=above)
    found = values.per_leaf(most[:, None] * above) - (places - 1.0) * value[:, None]
    return np.asarray(found.min(axis=1))


def _places(values: GroupValues, lines: FloatArray, height: FloatArray) -> FloatArray:
    """1, and for each leaf where lines of one of its classes meet, 1 if they meet below, float [L, n].

    Parameters
    ----------
    lines : slopes, float [K, m]; height : what is taken off each, float [m].
    """
    one, other = np.triu_indices(len(height), 1)
    steep = lines[:, one] - lines[:, other]
    meets = np.divide(height[one] - height[other], steep, out=np.ones_like(steep), where=steep != 0)
    by_class = values.table.spread(np.maximum(meets, 1.0)).reshape(len(values.leaves), -1)
    return np.concatenate([np.ones((len(values.leaves), 1)), np.maximum(by_class, 1.0)], axis=1)
