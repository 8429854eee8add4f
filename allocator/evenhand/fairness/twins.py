"""Leaves that are alike in all but size, as one.

Twins value GPUs alike and have equal caps for what they are owed. Nothing is lost by giving them the same
bundle for what they are owed: the mean of their bundles is as good, as fair, and within capacity and
caps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.fairness.group_value import FloatArray, GroupValues
from evenhand.shapes import BoolArray, IntArray

_DIGITS = 11
"""Ratios that agree in so many decimal places of the largest are equal."""


@dataclass(frozen=True, eq=False)
class Twins:
    """Values with twins as one leaf, and the way back; L leaves, K of them after merging.

    Attributes
    ----------
    values : of the K; their `leaves` are those of each one's first twin.
    of : which of the K each leaf is, int [L]; share : part of its bundle that is the leaf's, float [L].
    several : whether it stands for more than one, bool [K].
    """

    values: GroupValues
    of: IntArray
    share: FloatArray
    several: BoolArray

    def lift(self, bundles: FloatArray) -> FloatArray:
        """Bundles of the K as bundles of all leaves, float [L, T]."""
        return np.asarray(bundles[self.of] * self.share[:, None])


def merged(values: GroupValues) -> Twins:
    """Merge twins."""
    alike = np.column_stack([values.weights, values.pi, values.cap / values.entitled[values.of]])
    scale = np.maximum(np.abs(alike).max(axis=0, initial=0.0), 1e-300)
    table = values.table
    looks = table.spread(np.round(alike / scale, _DIGITS) + 0.0).reshape(
        len(values.leaves), table.most * alike.shape[1]
    )
    looks = np.column_stack([looks, table.count])
    _, first, which = np.unique(looks, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    of, first = rank[which.reshape(-1)], first[order]
    return Twins(_one_each(values, of, first), of, *_parts(values, of, len(first)))


def _parts(values: GroupValues, of: IntArray, count: int) -> tuple[FloatArray, BoolArray]:
    """Part of each leaf in its merged one, and which stand for several."""
    together = np.bincount(of, weights=values.entitled, minlength=count)
    return values.entitled / together[of], np.bincount(of, minlength=count) > 1


def _one_each(values: GroupValues, of: IntArray, first: IntArray) -> GroupValues:
    """Values of the first of each twins, sizes summed."""
    table, count = values.table, len(first)

    def summed(amounts: FloatArray) -> FloatArray:
        found = np.zeros((count, *amounts.shape[1:]))
        np.add.at(found, of, amounts)
        return found

    stands = np.zeros(len(values.leaves), dtype=bool)
    stands[first] = True
    kept = np.flatnonzero(stands[values.of])
    kept = kept[np.argsort(of[values.of[kept]], kind="stable")]
    leaf = of[values.of[kept]]
    caps = summed(table.spread(values.cap.astype(np.float64)))
    return GroupValues(
        leaves=values.leaves[first],
        entitled=summed(values.entitled),
        of=leaf,
        weights=values.weights[kept],
        cap=np.rint(caps[leaf, table.place[kept]]).astype(np.int64),
        capacity=values.capacity,
        slices=summed(values.slices),
        floor=summed(values.floor),
        pi=values.pi[kept],
    )
