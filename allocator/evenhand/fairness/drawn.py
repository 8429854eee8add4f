"""What a leaf's jobs could draw from its bundle, and the whole gangs to aim at (rule T5)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from evenhand.fairness.group_value import FloatArray
from evenhand.shapes import IntArray
from evenhand.solvers.lp import INFINITY, LpStatus, Rows, SolverError, solve_lp

_MOST_TYPES_BY_PRICES = 5
"""Up to so many types prices are searched directly; beyond, the transport program goes to a solver."""


@dataclass(frozen=True, eq=False)
class Drawers:
    """Jobs of the same leaf and speeds as one; n of them, ordered by leaf.

    Attributes
    ----------
    leaf : position of the leaf, ascending, int [n]; size : GPUs, int [n]; speed_milli : int [n, T].
    """

    leaf: IntArray
    size: IntArray
    speed_milli: IntArray


def drawers_of(leaf: IntArray, size: IntArray, speed_milli: IntArray) -> Drawers:
    """Bundle jobs that are alike: inputs int [J], int [J], int [J, T]."""
    order = np.lexsort((*speed_milli.T, leaf))
    leaf, size, speed_milli = leaf[order], size[order], speed_milli[order]
    fresh = np.ones(len(leaf), dtype=bool)
    fresh[1:] = (leaf[1:] != leaf[:-1]) | (speed_milli[1:] != speed_milli[:-1]).any(axis=1)
    starts = np.flatnonzero(fresh)
    total = np.add.reduceat(size, starts) if len(starts) else size
    return Drawers(leaf[starts], total, speed_milli[starts])


def drawn_throughput(jobs: Drawers, bundles: FloatArray) -> FloatArray:
    """V_i: most throughput of split jobs in GPUs, float [L] (T5).

    The transport program's dual: the least over prices of bundle cost plus what each job gains above them. Best
    prices are whole thousandths, because speeds are, so the search over whole prices is exact.

    Parameters
    ----------
    bundles : GPUs by leaf and type, float [L, T].
    """
    bundles = np.maximum(bundles, 0.0)
    used = np.flatnonzero((bundles > 0).any(axis=0))
    speed = np.where(bundles[jobs.leaf] > 0, jobs.speed_milli, 0)[:, used]
    some = speed.any(axis=1)
    jobs = Drawers(jobs.leaf[some], jobs.size[some], speed[some])
    if not len(jobs.leaf):
        return np.zeros(len(bundles))
    if len(used) > _MOST_TYPES_BY_PRICES:
        return _by_program(jobs, bundles[:, used])
    return _by_prices(jobs, bundles[:, used]) / 1000


def _by_prices(jobs: Drawers, bundles: FloatArray) -> FloatArray:
    """Least dual value by steepest descent over price steps that halve: exact, the dual is L-natural-convex."""
    leaves, types = bundles.shape
    directions = np.array([d for d in product((0, 1), repeat=types) if any(d)], dtype=np.int64)
    directions = np.concatenate([directions, -directions])
    prices = np.zeros((leaves, types), dtype=np.int64)
    value = _dual(jobs, bundles, prices)
    step = 1 << max(0, int(jobs.speed_milli.max()).bit_length() - 1)
    while step:
        active = np.arange(leaves)
        while len(active):
            part, local = _of_leaves(jobs, active, leaves)
            tried = np.array([_dual(part, bundles[active], prices[active] + step * d) for d in directions])
            best = tried.argmin(axis=0)
            least = tried[best, np.arange(len(active))]
            better = least < value[active] - 1e-9 * np.maximum(1.0, value[active] * 1e-5)
            prices[active[better]] += step * directions[best[better]]
            value[active[better]] = least[better]
            active = active[better]
        step //= 2
    return value


def _of_leaves(jobs: Drawers, active: IntArray, leaves: int) -> tuple[Drawers, IntArray]:
    """Jobs of some leaves, the leaves renumbered."""
    if len(active) == leaves:
        return jobs, active
    place = np.full(leaves, -1, dtype=np.int64)
    place[active] = np.arange(len(active))
    at = place[jobs.leaf]
    keep = at >= 0
    return Drawers(at[keep], jobs.size[keep], jobs.speed_milli[keep]), active


def _dual(jobs: Drawers, bundles: FloatArray, prices: IntArray) -> FloatArray:
    """Bundle cost plus gains at these prices, thousandths, float [L]; infinite where a price is below 0."""
    gain = np.maximum((jobs.speed_milli - prices[jobs.leaf]).max(axis=1), 0) * jobs.size
    total = np.bincount(jobs.leaf, weights=gain, minlength=len(bundles)) + (bundles * prices).sum(axis=1)
    return np.where((prices < 0).any(axis=1), np.inf, total)


def _by_program(jobs: Drawers, bundles: FloatArray) -> FloatArray:
    """Solve the same as one linear program over all leaves."""
    leaves, types = bundles.shape
    job, kind = np.nonzero(jobs.speed_milli)
    count = len(jobs.leaf)
    keys = np.concatenate([job, count + jobs.leaf[job] * types + kind])
    columns = np.tile(np.arange(len(job)), 2)
    order = np.lexsort((columns, keys))
    height = count + leaves * types
    indptr = np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=height))]).astype(np.int64)
    upper = np.concatenate([jobs.size.astype(np.float64), bundles.reshape(-1)])
    rows = Rows(indptr, columns[order], np.ones(len(keys)), np.full(height, -INFINITY), upper)
    rate = jobs.speed_milli[job, kind] / 1000
    found = solve_lp(rate, rows, np.zeros(len(job)), np.full(len(job), INFINITY), maximize=True)
    if found.status is not LpStatus.OPTIMAL:
        raise SolverError(f"the transport program of rule T5 ended as {found.status}, but it has an optimum.")
    return np.bincount(jobs.leaf[job], weights=rate * found.x, minlength=leaves)
