"""Columns and rows that the programs of the fair target share: uses, capacity, floors, envy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.fairness.group_value import FloatArray, GroupValues
from evenhand.shapes import IntArray
from evenhand.solvers.lp import INFINITY, Rows

DUST = 1e-10
"""Smaller amounts are rounding."""


@dataclass(frozen=True, eq=False)
class Grid:
    """The columns of a program over bundles; only what leaves can use (T4). n columns.

    Amounts of a leaf that is owed less than one charged GPU are counted in GPUs for what it is owed, and its rows
    likewise: so that a leaf that is owed next to nothing is as exact as any.

    Attributes
    ----------
    leaf, gpu_type : of each column, int [n].
    column : index of the column, -1 where a leaf cannot use a type, int [L, T].
    unit : GPUs that one amount of a leaf stands for, float [L].
    """

    values: GroupValues
    leaf: IntArray
    gpu_type: IntArray
    column: IntArray
    unit: FloatArray

    @property
    def count(self) -> int:
        """Number of columns."""
        return len(self.leaf)

    @property
    def gpus(self) -> FloatArray:
        """GPUs that one amount of each column stands for, float [n]."""
        return self.unit[self.leaf]

    @property
    def worth(self) -> FloatArray:
        """Throughput of one amount of each column, float [n]."""
        return self.values.weights[self.leaf, self.gpu_type] * self.gpus

    def gather(self, bundles: FloatArray) -> FloatArray:
        """Bundles in GPUs [L, T] as amounts, float [n]."""
        return bundles[self.leaf, self.gpu_type] / self.gpus

    def lift(self, amounts: FloatArray) -> FloatArray:
        """Amounts home: GPUs by leaf and type, float [L, T], the solver's dust wiped off."""
        found = np.zeros(self.column.shape)
        found[self.leaf, self.gpu_type] = np.where(amounts < DUST, 0.0, amounts) * self.gpus
        return found


def grid_of(values: GroupValues) -> Grid:
    """Number the columns leaf by leaf."""
    usable = (values.weights > 0) & (values.capacity > 0)
    leaf, gpu_type = np.nonzero(usable)
    column = np.full(usable.shape, -1, dtype=np.int64)
    column[leaf, gpu_type] = np.arange(len(leaf))
    unit = np.minimum(values.entitled, 1.0)
    return Grid(values, leaf.astype(np.int64), gpu_type.astype(np.int64), column, unit)


def compressed(keys: IntArray, columns: IntArray, data: FloatArray, lower: FloatArray, upper: FloatArray) -> Rows:
    """Rows from entries (row, column, coefficient) in any order."""
    order = np.lexsort((columns, keys))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=len(lower)))]).astype(np.int64)
    return Rows(indptr, columns[order], data[order], lower, upper)


def capacity_rows(grid: Grid) -> Rows:
    """GPUs of each type at most what there is (row t), GPUs of each leaf at most its cap (row T + i)."""
    types = len(grid.values.capacity)
    keys = np.concatenate([grid.gpu_type, types + grid.leaf])
    upper = np.concatenate([grid.values.capacity, grid.values.cap / grid.unit])
    columns, data = np.tile(np.arange(grid.count), 2), np.concatenate([grid.gpus, np.ones(grid.count)])
    return compressed(keys, columns, data, np.full(len(upper), -INFINITY), upper)


def floor_rows(grid: Grid) -> Rows:
    """Sharing incentive: W_i x_i >= floor_i, one row a leaf (T4), counted in its unit."""
    floor = grid.values.floor / grid.unit
    own = grid.values.weights[grid.leaf, grid.gpu_type]
    return compressed(grid.leaf, np.arange(grid.count), own, floor, np.full(len(floor), INFINITY))


def envy_rows(grid: Grid, envious: IntArray, envied: IntArray) -> Rows:
    """Envy-freeness: W_i x_i - (e_i/e_l) lever_i x_l >= pi_i cap_i, one row for each pair (T3, T4).

    Counted in the unit of the envious.
    """
    values, unit, types = grid.values, grid.unit, np.arange(len(grid.values.capacity))
    keys, kinds = np.repeat(np.arange(len(envious)), len(types)), np.tile(types, len(envious))
    i, other = envious[keys], envied[keys]
    own = values.weights[i, kinds]
    wished = values.lever[i, kinds] * (values.entitled[i] / unit[i]) * (unit[other] / values.entitled[other])
    same = i == other  # twins beside one another: one coefficient for each column
    columns = np.concatenate([grid.column[i, kinds], np.where(same, -1, grid.column[other, kinds])])
    data = np.concatenate([np.where(same, own - wished, own), -wished])
    keys = np.tile(keys, 2)
    keep = (columns >= 0) & (data != 0)
    constant = (values.pi * values.cap / unit)[envious]
    return compressed(keys[keep], columns[keep], data[keep], constant, np.full(len(constant), INFINITY))


def largest(table: FloatArray, few: int) -> tuple[IntArray, IntArray]:
    """Places of the few largest entries of each row, the first of equals: rows, columns, int [rows * few]."""
    left, found = table.copy(), []
    every = np.arange(len(table))
    for _ in range(min(few, table.shape[1])):
        best = left.argmax(axis=1)
        found.append(best)
        left[every, best] = -np.inf
    return np.repeat(every, len(found)), np.array(found, dtype=np.int64).T.reshape(-1)
