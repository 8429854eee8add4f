"""What a leaf's jobs could draw from its bundle (rule T5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.errors import SolverError
from evenhand.fairness.group_value import FloatArray
from evenhand.shapes import IntArray
from evenhand.solvers.lp import INFINITY, LpStatus, Rows, solve_lp

_MOST_TYPES_BY_PRICES = 5
"""Up to so many types prices are searched directly; beyond, the transport program goes to a solver."""
_DUST_GPUS = 1e-9
_NOTHING = -(1 << 60)
_DUST_MILLI = 1e-9
"""A dual value that is smaller by less than this, relative to a million, is no smaller."""


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

    The transport program's dual: the least over prices of bundle cost plus what each job gains above them.
    Best prices are whole thousandths, because speeds are, so the search over whole prices is exact.

    Parameters
    ----------
    bundles : GPUs by leaf and type, float [L, T].
    """
    bundles = np.where(bundles > _DUST_GPUS, bundles, 0.0)
    used = np.flatnonzero((bundles > 0).any(axis=0))
    speed = np.where(bundles[jobs.leaf] > 0, jobs.speed_milli, 0)[:, used]
    some = np.flatnonzero(speed.any(axis=1))
    jobs = Drawers(jobs.leaf[some], jobs.size[some], speed[some])
    found = np.zeros(len(bundles))
    if not len(some):
        return found
    if len(used) > _MOST_TYPES_BY_PRICES:
        return _by_program(jobs, bundles[:, used])
    leaves, local = np.unique(jobs.leaf, return_inverse=True)
    search = _PriceSearch(
        Drawers(local.reshape(-1).astype(np.int64), jobs.size, jobs.speed_milli), bundles[leaves][:, used]
    )
    found[leaves] = search.least() / 1000
    return found


class _PriceSearch:
    """Least dual value by steepest descent over price steps that halve.

    The dual is L-natural-convex: where no set of prices can be raised or lowered together with gain, it is
    least. Every leaf has jobs. Directions are sets of types, written as bits.
    """

    def __init__(self, jobs: Drawers, bundles: FloatArray) -> None:
        self._jobs = jobs
        self._bundles = bundles
        self._types = bundles.shape[1]
        bits = (np.arange(1 << self._types)[:, None] >> np.arange(self._types)) & 1
        self._sets = bits.astype(np.int64)
        self._set_cost = bundles @ self._sets.T.astype(np.float64)
        self._directions = np.concatenate([self._sets[1:], -self._sets[1:]])
        self._speed = np.ascontiguousarray(jobs.speed_milli.T)
        self._prices = np.zeros(bundles.shape, dtype=np.int64)

    def least(self) -> FloatArray:
        """Dual values in thousandths, float [L]."""
        step = 1 << max(0, int(self._jobs.speed_milli.max()).bit_length() - 1)
        value = np.zeros(len(self._bundles))
        while step:
            active = np.arange(len(self._bundles))
            while len(active):
                here, changes = self._changes(active, step)
                value[active] = here
                best = changes.argmin(axis=0)
                gain = -changes[best, np.arange(len(active))]
                better = gain > _DUST_MILLI * np.maximum(1.0, here * 1e-6)
                moving = active[better]
                self._prices[moving] += step * self._directions[best[better]]
                active = moving
            step //= 2
        return value

    def _changes(self, active: IntArray, step: int) -> tuple[FloatArray, FloatArray]:
        """Dual value of some leaves, float [a], and its change for each direction, float [2 (2^T - 1), a]."""
        leaf, size, speed = self._part(active)
        starts = np.flatnonzero(np.concatenate([[True], leaf[1:] != leaf[:-1]]))
        most = self._most(speed - self._prices[active].T[:, leaf])
        rest = most[::-1]  # of the types outside each set
        now = np.add.reduceat(np.maximum(most[-1], 0) * size, starts)
        gains = [
            np.add.reduceat(np.maximum(np.maximum(most[1:] + shift, rest[1:]), 0) * size, starts, axis=1) - now
            for shift in (-step, step)
        ]
        cost = step * self._set_cost[active].T[1:]
        low = (self._sets[1:, None, :] * (self._prices[active] < step)).any(axis=2)
        changes = np.concatenate([gains[0] + cost, np.where(low, np.inf, gains[1] - cost)])
        return now + (self._bundles[active] * self._prices[active]).sum(axis=1), changes

    def _part(self, active: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Jobs of some leaves: place of the leaf among them, size, and speeds, int [T, n]."""
        if len(active) == len(self._bundles):
            return self._jobs.leaf, self._jobs.size, self._speed
        place = np.full(len(self._bundles), -1, dtype=np.int64)
        place[active] = np.arange(len(active))
        at = place[self._jobs.leaf]
        keep = np.flatnonzero(at >= 0)
        return at[keep], self._jobs.size[keep], self._speed[:, keep]

    def _most(self, above: IntArray) -> IntArray:
        """Largest gain over each set of types, int [2^T, n]; far below 0 over none."""
        most = np.empty((len(self._sets), above.shape[1]), dtype=np.int64)
        most[0] = _NOTHING
        for s in range(1, len(self._sets)):
            t = s.bit_length() - 1
            np.maximum(most[s ^ (1 << t)], above[t], out=most[s])
        return most


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
    return np.bincount(jobs.leaf[job], weights=rate * found.x, minlength=leaves).astype(np.float64)
