"""Entitlement only, blind to speedups (rule T4): every leaf its slice, as far as it can use it."""

from __future__ import annotations

from evenhand.fairness.group_value import FloatArray, GroupValues, best_split
from evenhand.fairness.rows import Grid
from evenhand.shapes import IntArray

NearTo = tuple[FloatArray, FloatArray, IntArray]
"""Amount and GPUs of each pile, and the pile of each column."""


def fair_share(values: GroupValues) -> FloatArray:
    """Used part of the slices, float [L, T]."""
    return values.per_leaf(best_split(values, values.slices))


def near_slices(grid: Grid) -> NearTo:
    """What a program over bundles is told to stay near to: amounts and GPUs of each pile, and piles of columns."""
    pile, leaf, gpu_type = grid.piles()
    unit = grid.unit[leaf]
    return fair_share(grid.values)[leaf, gpu_type] / unit, unit, pile
