"""Prices of a leaf's classes and of its GPU types at its slice: the line L of rule T3.

A bundle's best split has prices pi of a class's cap and q of a type with pi_k + q_t >= W_kt, equal where class k
holds type t, pi_k = 0 where it holds less than its cap, q_t = 0 where some of t is left: then
sum pi cap + sum q y is at least the value of every bundle y, and the value itself at this one. They are
differences along paths: moving GPUs between types, in and out. Of all such prices those are taken where pi = 0
for every class of which more would bring nothing, and with this the greatest pi.
"""

from __future__ import annotations

import numpy as np

from evenhand.fairness.best_split import FloatArray, moves_of

_EVEN = 1e-9
"""Amounts of GPUs, relative to a cap of at least one, and prices that differ by less are equal."""


def cap_prices(weights: FloatArray, cap: FloatArray, bundles: FloatArray, split: FloatArray) -> FloatArray:
    """pi of each class, float [M, K].

    Parameters
    ----------
    weights : float [M, K, T]; cap : float [M, K]; bundles : float [M, T]; split : the best one, float [M, K, T].
    """
    many, classes, types = weights.shape
    dust = _EVEN * np.maximum(1.0, cap.sum(axis=1))
    free = bundles - split.sum(axis=1) > dust[:, None]
    out = cap - split.sum(axis=2)
    rate = np.concatenate([weights, np.zeros((many, classes, 1))], axis=2)
    held = np.concatenate([split, out[:, :, None]], axis=2)
    loss, _ = moves_of(rate, held, dust)
    idle = np.concatenate([free, np.ones((many, 1), dtype=bool)], axis=1)
    most = np.where(idle, 0.0, np.inf)
    for _ in range(types):
        most = np.minimum(most, (most[:, None, :] + loss).min(axis=2))
    nothing = _of_classes(weights, most[:, :types]) <= _EVEN
    least = np.concatenate([_of_types(weights, np.where(nothing, 0.0, np.inf)), np.zeros((many, 1))], axis=1)
    for _ in range(types):
        least = np.maximum(least, (least[:, :, None] - loss).max(axis=1))
    return _of_classes(weights, least[:, :types])


def _of_classes(weights: FloatArray, type_price: FloatArray) -> FloatArray:
    """Least pi that go with prices of types, float [M, K]."""
    return np.asarray(np.maximum((weights - type_price[:, None, :]).max(axis=2, initial=0.0), 0.0))


def _of_types(weights: FloatArray, pi: FloatArray) -> FloatArray:
    """Least q that go with prices of classes, float [M, T]."""
    return np.asarray(np.maximum((weights - pi[:, :, None]).max(axis=1, initial=0.0), 0.0))
