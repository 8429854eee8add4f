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
    alike = np.column_stack([values.weights, values.pi, values.cap / values.entitled])
    scale = np.maximum(np.abs(alike).max(axis=0, initial=0.0), 1e-300)
    _, first, which = np.unique(np.round(alike / scale, _DIGITS) + 0.0, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    of, first = rank[which.reshape(-1)], first[order]
    count = len(first)

    def summed(amounts: FloatArray) -> FloatArray:
        return np.bincount(of, weights=amounts, minlength=count).astype(np.float64)

    entitled = summed(values.entitled)
    slices = np.zeros((count, values.slices.shape[1]))
    np.add.at(slices, of, values.slices)
    one = GroupValues(
        leaves=values.leaves[first],
        entitled=entitled,
        weights=values.weights[first],
        cap=np.rint(summed(values.cap.astype(np.float64))).astype(np.int64),
        capacity=values.capacity,
        slices=slices,
        floor=summed(values.floor),
        pi=values.pi[first],
    )
    return Twins(one, of, values.entitled / entitled[of], np.bincount(of, minlength=count) > 1)
