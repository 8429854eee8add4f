"""Entitlement only, blind to speedups (rule T4): every leaf its slice, as far as it can use it."""

from __future__ import annotations

from evenhand.fairness.group_value import FloatArray, GroupValues, used_of


def fair_share(values: GroupValues) -> FloatArray:
    """Used part of the slices, float [L, T]."""
    return used_of(values.weights, values.cap, values.slices)
