"""Leaves that are treated as one: twins always, near relatives where there are too many leaves.

Kin get the same bundle for what they are owed, so they never envy each other. For twins (equal values, equal caps for
what they are owed) nothing is lost by it: the mean of their bundles is as good and as fair. For mere relatives the
answer stays exactly envy-free, above every floor and within capacity; only some throughput may be lost. Leaves are
kin only if their slices are used alike, so that the slices themselves are always possible.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from evenhand.fairness.group_value import FloatArray, GroupValues, used_of
from evenhand.shapes import IntArray

_DIGITS = 10
"""Ratios that agree in so many decimal places are equal."""


@dataclass(frozen=True, eq=False)
class Kinship:
    """Kins of leaves; K kins, L leaves.

    Attributes
    ----------
    of : kin of each leaf, int [L]; share : part of its kin's bundle that a leaf gets, float [L].
    entitled : of each kin in sum, float [K]; speaker : the leaf of each kin that is owed most, int [K].
    exact : whether all kins are twins.
    """

    of: IntArray
    share: FloatArray
    entitled: FloatArray
    speaker: IntArray
    exact: bool

    @property
    def count(self) -> int:
        """Number of kins."""
        return len(self.entitled)


def kinship_of(values: GroupValues, most: int) -> Kinship:
    """Twins as kin; where that leaves more than `most` kins, relatives too."""
    tightness = values.cap / values.entitled
    twins = _numbered(np.column_stack([values.weights, values.pi, tightness]))
    if int(twins.max(initial=-1)) < most:
        return _kinship(values, twins, exact=True)
    used = used_of(values.weights, values.cap, values.slices) / values.entitled[:, None]
    full = values.pi > 0
    order = np.argsort(-values.weights, axis=1, kind="stable")
    alike = [values.weights > 0, used, np.where(full[:, None], order, -1), np.where(full, tightness, 0.0)[:, None]]
    return _kinship(values, _divided(values, _numbered(np.column_stack(alike)), most), exact=False)


def each_alone(values: GroupValues) -> Kinship:
    """Every leaf its own kin."""
    return _kinship(values, np.arange(len(values.cap)), exact=True)


def _numbered(rows: FloatArray) -> IntArray:
    """Number rows by equality up to rounding, in order of first appearance: int [L]."""
    scale = np.maximum(np.abs(rows).max(axis=0, initial=0.0), 1e-300)
    rounded = np.round(rows / scale, _DIGITS) + 0.0
    _, first, which = np.unique(rounded, axis=0, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[which.reshape(-1)]


def _divided(values: GroupValues, kinds: IntArray, most: int) -> IntArray:
    """Divide kinds of leaves until there are `most` kins: always the widest, where it is widest, in the middle."""
    with np.errstate(divide="ignore"):
        logs = np.log(np.where(values.weights > 0, values.weights, 1.0))
    tightness = np.log(np.minimum(values.cap / values.entitled / _all_there_is(values), 8.0))
    place = np.column_stack([logs - logs.mean(axis=1, keepdims=True), np.where(values.pi > 0, 0.0, tightness)])
    members = [np.flatnonzero(kinds == k) for k in range(int(kinds.max()) + 1)]
    queue = [(-_width(values, place, m), k) for k, m in enumerate(members)]
    heapq.heapify(queue)
    while len(members) < most and queue:
        width, k = heapq.heappop(queue)
        if width >= 0:
            break
        here = members[k]
        axis = int(np.ptp(place[here], axis=0).argmax())
        middle = (place[here, axis].max() + place[here, axis].min()) / 2
        left = place[here, axis] <= middle
        members[k] = here[left]
        members.append(here[~left])
        for part in (k, len(members) - 1):
            heapq.heappush(queue, (-_width(values, place, members[part]), part))
    of = np.zeros(len(kinds), dtype=np.int64)
    for k, here in enumerate(members):
        of[here] = k
    return of


def _all_there_is(values: GroupValues) -> float:
    """GPUs for each charged GPU that is owed."""
    return float(max(1, values.capacity.sum()) / values.entitled.sum())


def _width(values: GroupValues, place: FloatArray, members: IntArray) -> float:
    """How much is at stake in treating these leaves alike."""
    return float(np.ptp(place[members], axis=0).max() * values.entitled[members].sum()) if len(members) > 1 else 0.0


def _kinship(values: GroupValues, of: IntArray, *, exact: bool) -> Kinship:
    entitled = np.bincount(of, weights=values.entitled)
    order = np.lexsort((-values.entitled, of))
    speaker = order[np.searchsorted(of[order], np.arange(len(entitled)))]
    return Kinship(of, values.entitled / entitled[of], entitled, speaker, exact)
