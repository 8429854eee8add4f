"""What a bundle of GPUs is worth to a leaf, its slice and its floor (rules T1 to T3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.entitlement import Entitlement
from evenhand.shapes import BoolArray, IntArray
from evenhand.snapshot import Snapshot

FloatArray = npt.NDArray[np.float64]

LEAST_PART = 1e-12
"""Who is owed less than this part of all is given its slice and left out of programs."""
NO_ENTITLEMENT = 1e-9
"""Charged GPUs that are as good as none: such leaves take no part in T."""
SLACK_GPUS = 1e-9
"""Two amounts of GPUs that differ by less are equal (relative to the larger, at least one GPU)."""


@dataclass(frozen=True, eq=False)
class GroupValues:
    """The leaves that are owed something, and what GPUs of each type are worth to them; L leaves, T types.

    Attributes
    ----------
    leaves : group indices, ascending, int [L].
    entitled : e_i in charged GPUs, above 0, float [L].
    weights : W_it, throughput per GPU, float [L, T].
    cap : most GPUs its jobs can hold, int [L].
    capacity : m_t, GPUs by type, int [T].
    slices : s_i, GPUs, float [L, T]; floor : v_i(s_i), throughput, float [L] (T2).
    pi : price of the cap at the slice, throughput per GPU, float [L] (T3).
    """

    leaves: IntArray
    entitled: FloatArray
    weights: FloatArray
    cap: IntArray
    capacity: IntArray
    slices: FloatArray
    floor: FloatArray
    pi: FloatArray

    @property
    def lever(self) -> FloatArray:
        """Slopes of L_i: what a GPU is worth above the price of the cap, float [L, T]."""
        return np.maximum(self.weights - self.pi[:, None], 0.0)

    @property
    def weighty(self) -> BoolArray:
        """Leaves that are owed a part of all that can be told from rounding, bool [L]."""
        return np.asarray(self.entitled > LEAST_PART * self.entitled.sum())

    def only(self, keep: BoolArray) -> GroupValues:
        """Some of the leaves, with the slices they have."""
        return GroupValues(
            leaves=self.leaves[keep],
            entitled=self.entitled[keep],
            weights=self.weights[keep],
            cap=self.cap[keep],
            capacity=self.capacity,
            slices=self.slices[keep],
            floor=self.floor[keep],
            pi=self.pi[keep],
        )


def group_values(snapshot: Snapshot, entitlement: Entitlement) -> GroupValues:
    """Read a round's leaves and value their slices."""
    leaves = np.flatnonzero(entitlement.leaf_entitled > NO_ENTITLEMENT)
    place = np.full(len(snapshot.tree.ids), -1, dtype=np.int64)
    place[leaves] = np.arange(len(leaves))
    jobs = np.flatnonzero(snapshot.budgeted)
    at = place[snapshot.group[jobs]]
    jobs, at = jobs[at >= 0], at[at >= 0]
    cap = np.zeros(len(leaves), dtype=np.int64)
    np.add.at(cap, at, snapshot.size[jobs])
    speed = np.zeros((len(leaves), len(snapshot.types)), dtype=np.int64)
    np.add.at(speed, at, snapshot.size[jobs, None] * snapshot.speed_milli[jobs])
    weights = speed / (1000.0 * np.maximum(cap, 1)[:, None])
    return values_of(leaves, entitlement.leaf_entitled[leaves], weights, cap, snapshot.capacity)


def values_of(
    leaves: IntArray, entitled: FloatArray, weights: FloatArray, cap: IntArray, capacity: IntArray
) -> GroupValues:
    """Slice, floor and cap price from what leaves are owed and what they value."""
    share = entitled / entitled.sum() if len(entitled) else entitled
    slices = share[:, None] * capacity[None, :]
    taken = used_of(weights, cap, slices)
    useful = np.where(weights > 0, slices, 0.0).sum(axis=1)
    full = useful > cap + SLACK_GPUS * np.maximum(cap, 1)
    counted = taken > SLACK_GPUS * np.maximum(cap, 1)[:, None]
    last = np.where(counted, weights, np.inf).min(axis=1, initial=np.inf)
    pi = np.where(full & np.isfinite(last), last, 0.0)
    return GroupValues(
        leaves=leaves,
        entitled=entitled,
        weights=weights,
        cap=cap,
        capacity=capacity,
        slices=slices,
        floor=(weights * taken).sum(axis=1),
        pi=pi,
    )


def used_of(weights: FloatArray, cap: IntArray, bundles: FloatArray) -> FloatArray:
    """The part of each bundle that its leaf would use: best types first, up to its cap, none of W = 0 (T1).

    Parameters
    ----------
    weights, bundles : float [L, T]; cap : int [L].
    """
    order = np.argsort(-weights, axis=1, kind="stable")
    offered = np.take_along_axis(np.where(weights > 0, bundles, 0.0), order, axis=1)
    before = np.cumsum(offered, axis=1) - offered
    taken = np.clip(cap[:, None] - before, 0.0, offered)
    used = np.zeros_like(taken)
    np.put_along_axis(used, order, taken, axis=1)
    return np.asarray(used)


def value_of(values: GroupValues, bundles: FloatArray) -> FloatArray:
    """v_i of one bundle for each leaf, float [L] (T1)."""
    return np.asarray((values.weights * used_of(values.weights, values.cap, bundles)).sum(axis=1))


def envy_of(values: GroupValues, bundles: FloatArray) -> FloatArray:
    """By how much L_i of the others' scaled bundles exceeds v_i of the own, at least 0 (T3).

    Parameters
    ----------
    bundles : GPUs, float [L, T].

    Returns
    -------
    Throughput, the envious first, float [L, L].
    """
    e = values.entitled
    wished = (values.pi * values.cap)[:, None] + e[:, None] * (values.lever @ (bundles / e[:, None]).T)
    envy = np.maximum(wished - value_of(values, bundles)[:, None], 0.0)
    np.fill_diagonal(envy, 0.0)
    return envy
