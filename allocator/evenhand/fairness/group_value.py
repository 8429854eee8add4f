"""What a bundle of GPUs is worth to a leaf, its slice and its floor (rules T1 to T3)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from evenhand.entitlement import Entitlement
from evenhand.fairness.best_split import split_of
from evenhand.fairness.cap_price import cap_prices
from evenhand.fairness.job_classes import job_classes
from evenhand.shapes import BoolArray, IntArray
from evenhand.snapshot import Snapshot

FloatArray = npt.NDArray[np.float64]

LEAST_PART = 1e-12
"""Who is owed less than this part of all is given its slice and left out of programs."""
NO_ENTITLEMENT = 1e-9
"""Charged GPUs that are as good as none: such leaves take no part in T."""


@dataclass(frozen=True, eq=False)
class GroupValues:
    """The leaves that are owed something, and what GPUs of each type are worth to them.

    L leaves, T types, K job classes, ordered by leaf; with one class a leaf K is L and all is by leaf.

    Attributes
    ----------
    leaves : group indices, ascending, int [L].
    entitled : e_i in charged GPUs, above 0, float [L].
    of : position of each class's leaf, ascending, int [K].
    weights : W_ikt, throughput per GPU, float [K, T].
    cap : most GPUs the jobs of a class can hold, int [K].
    capacity : m_t, GPUs by type, int [T].
    slices : s_i, GPUs, float [L, T]; floor : v_i(s_i), throughput, float [L] (T2).
    pi : price of the cap at the slice, throughput per GPU, float [K] (T3).
    """

    leaves: IntArray
    entitled: FloatArray
    of: IntArray
    weights: FloatArray
    cap: IntArray
    capacity: IntArray
    slices: FloatArray
    floor: FloatArray
    pi: FloatArray

    @cached_property
    def lever(self) -> FloatArray:
        """q, the slopes of L_i: most that a GPU is worth above the price of a cap, float [L, T]."""
        found = np.zeros(self.slices.shape)
        np.maximum.at(found, self.of, self.weights - self.pi[:, None])
        return found

    @cached_property
    def base(self) -> FloatArray:
        """The constant of L_i: what all caps cost, float [L]."""
        return self.per_leaf(self.pi * self.cap)

    @property
    def table(self) -> ClassTable:
        """Classes by leaf and place."""
        return ClassTable(len(self.leaves), self.of)

    @property
    def leaf_cap(self) -> FloatArray:
        """cap_i: most GPUs the jobs of a leaf can hold, float [L]."""
        return self.per_leaf(self.cap)

    @property
    def several(self) -> BoolArray:
        """Leaves with more than one class, bool [L]."""
        return np.asarray(np.bincount(self.of, minlength=len(self.leaves)) > 1)

    @property
    def usable(self) -> BoolArray:
        """Types of which there are some and that some class can use, bool [L, T]."""
        found = np.zeros(self.slices.shape, dtype=bool)
        np.logical_or.at(found, self.of, (self.weights > 0) & (self.capacity > 0))
        return found

    @property
    def weighty(self) -> BoolArray:
        """Leaves that are owed a part of all that can be told from rounding, bool [L]."""
        return np.asarray(self.entitled > LEAST_PART * self.entitled.sum())

    def per_leaf(self, amounts: FloatArray | IntArray) -> FloatArray:
        """Sums over each leaf's classes: [K] as [L], [K, T] as [L, T]."""
        found = np.zeros((len(self.leaves), *amounts.shape[1:]))
        np.add.at(found, self.of, amounts)
        return found

    def brought(self, split: FloatArray) -> FloatArray:
        """Throughput of GPUs split among classes, float [K, T] as [L]."""
        return self.per_leaf((self.weights * split).sum(axis=1))

    @cached_property
    def known_splits(self) -> dict[bytes, FloatArray]:
        """Best splits of bundles that were asked for, by the bytes of the bundles; not to be written to."""
        return {}

    def only(self, keep: BoolArray) -> GroupValues:
        """Some of the leaves, with the slices they have."""
        classes = keep[self.of]
        return GroupValues(
            leaves=self.leaves[keep],
            entitled=self.entitled[keep],
            of=(np.cumsum(keep) - 1)[self.of[classes]],
            weights=self.weights[classes],
            cap=self.cap[classes],
            capacity=self.capacity,
            slices=self.slices[keep],
            floor=self.floor[keep],
            pi=self.pi[classes],
        )


def group_values(snapshot: Snapshot, entitlement: Entitlement) -> tuple[GroupValues, IntArray]:
    """Read a round's leaves and value their slices; and the class of each job, -1 for those of no leaf, int [J]."""
    leaves = np.flatnonzero(entitlement.leaf_entitled > NO_ENTITLEMENT)
    place = np.full(len(snapshot.tree.ids), -1, dtype=np.int64)
    place[leaves] = np.arange(len(leaves))
    jobs = np.flatnonzero(snapshot.budgeted)
    jobs = jobs[place[snapshot.group[jobs]] >= 0]
    classes = job_classes(place[snapshot.group[jobs]], snapshot.size[jobs], snapshot.speed_milli[jobs])
    weights = classes.speed_sum / (1000.0 * np.maximum(classes.size, 1)[:, None])
    entitled = entitlement.leaf_entitled[leaves]
    of = np.full(len(snapshot.jobs), -1, dtype=np.int64)
    of[jobs] = classes.of
    return values_of(leaves, entitled, weights, classes.size, snapshot.capacity, classes.leaf), of


def values_of(
    leaves: IntArray,
    entitled: FloatArray,
    weights: FloatArray,
    cap: IntArray,
    capacity: IntArray,
    of: IntArray | None = None,
) -> GroupValues:
    """Slice, floor and cap prices from what leaves are owed and what they value.

    Parameters
    ----------
    weights : float [K, T]; cap : int [K].
    of : position of each class's leaf, ascending, int [K]; left out: one class a leaf.
    """
    of = np.arange(len(leaves)) if of is None else of
    share = entitled / entitled.sum() if len(entitled) else entitled
    slices = share[:, None] * capacity[None, :]
    table = ClassTable(len(leaves), of)
    wide, caps = table.spread(weights), table.spread(cap.astype(np.float64))
    best = _split(table, weights, cap, slices)
    split = table.spread(best)
    pi = table.gather(cap_prices(wide, caps, slices, split))
    floor = (wide * split).sum(axis=(1, 2))
    found = GroupValues(leaves, entitled, of, weights, cap, capacity, slices, floor, pi)
    found.known_splits[slices.tobytes()] = best
    return found


class ClassTable:
    """Classes by leaf and place within it, so that leaves can be worked on side by side."""

    def __init__(self, leaves: int, of: IntArray) -> None:
        self.leaves, self.of = leaves, of
        self.count = np.bincount(of, minlength=leaves)
        self.place = np.arange(len(of)) - (np.cumsum(self.count) - self.count)[of]
        self.most = int(self.count.max(initial=1))

    def spread(self, amounts: FloatArray) -> FloatArray:
        """[K, ...] as [L, most classes, ...], 0 where there is no class."""
        found = np.zeros((self.leaves, self.most, *amounts.shape[1:]))
        found[self.of, self.place] = amounts
        return found

    def gather(self, table: FloatArray) -> FloatArray:
        """The way back."""
        return np.asarray(table[self.of, self.place])


def best_split(values: GroupValues, bundles: FloatArray) -> FloatArray:
    """What each class would use of its leaf's bundle where that brings most, GPUs, float [K, T] (T1); not to be written to.

    Parameters
    ----------
    bundles : GPUs, float [L, T].
    """
    key = bundles.tobytes()
    found = values.known_splits.get(key)
    if found is None:
        found = values.known_splits[key] = _split(values.table, values.weights, values.cap, bundles)
    return found


def _split(table: ClassTable, weights: FloatArray, cap: IntArray, bundles: FloatArray) -> FloatArray:
    """A leaf with one class takes its best types first; others solve a transport program."""
    found = np.zeros(weights.shape)
    one = (table.count == 1)[table.of]
    found[one] = used_of(weights[one], cap[one], bundles[table.of[one]])
    if not one.all():
        some = np.flatnonzero(table.count > 1)
        wide, caps = table.spread(weights)[some], table.spread(cap.astype(np.float64))[some]
        split = np.zeros((table.leaves, *wide.shape[1:]))
        split[some] = split_of(wide, caps, bundles[some])
        found[~one] = table.gather(split)[~one]
    return found


def used_of(weights: FloatArray, cap: IntArray | FloatArray, bundles: FloatArray) -> FloatArray:
    """The part of each bundle that a class would use: best types first, up to its cap, none of W = 0 (T1).

    Parameters
    ----------
    weights, bundles : float [n, T]; cap : GPUs, [n].
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
    return values.brought(best_split(values, bundles))


def wished_of(values: GroupValues, bundles: FloatArray) -> FloatArray:
    """L_i((e_i/e_l) x_l): throughput, float [L, L], who wishes first (T3).

    Parameters
    ----------
    bundles : GPUs, float [L, T].
    """
    e = values.entitled
    return np.asarray(values.base[:, None] + e[:, None] * (values.lever @ (bundles / e[:, None]).T))
