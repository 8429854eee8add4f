"""Most throughput, whoever gets it (rule T4 without floors and envy): a transport program."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.fairness.group_value import FloatArray, GroupValues
from evenhand.shapes import IntArray
from evenhand.solvers.lp import INFINITY, Rows

DUST_GPUS = 1e-10
"""Less than this in a bundle is rounding."""


@dataclass(frozen=True, eq=False)
class Grid:
    """The columns of a program over x: only what a leaf can use (T4); n columns.

    Attributes
    ----------
    leaf, gpu_type : of each column, int [n].
    column : index of the column, -1 where a leaf cannot use a type, int [L, T].
    """

    values: GroupValues
    leaf: IntArray
    gpu_type: IntArray
    column: IntArray

    @property
    def count(self) -> int:
        """Number of columns."""
        return len(self.leaf)

    @property
    def cost(self) -> FloatArray:
        """Throughput per GPU of each column, float [n]."""
        return self.values.weights[self.leaf, self.gpu_type]

    @property
    def upper(self) -> FloatArray:
        """Most GPUs of each column, float [n]."""
        return np.minimum(self.values.cap[self.leaf], self.values.capacity[self.gpu_type]).astype(np.float64)

    def bundles(self, x: FloatArray) -> FloatArray:
        """Lift column values home: GPUs by leaf and type, float [L, T], the solver's dust wiped off."""
        clean = np.clip(x[: self.count], 0.0, self.upper)
        clean[clean < DUST_GPUS] = 0.0
        found = np.zeros(self.column.shape)
        found[self.leaf, self.gpu_type] = clean
        return found


def grid_of(values: GroupValues) -> Grid:
    """Number the columns leaf by leaf."""
    usable = (values.weights > 0) & (values.capacity > 0)
    leaf, gpu_type = np.nonzero(usable)
    column = np.full(usable.shape, -1, dtype=np.int64)
    column[leaf, gpu_type] = np.arange(len(leaf))
    return Grid(values, leaf.astype(np.int64), gpu_type.astype(np.int64), column)


def row_groups(keys: IntArray, columns: IntArray, data: FloatArray, count: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Compressed rows 0 to count - 1 from entries (row, column, coefficient)."""
    order = np.lexsort((columns, keys))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=count))]).astype(np.int64)
    return indptr, columns[order], data[order]


def capacity_rows(grid: Grid) -> Rows:
    """C1 in sums: GPUs of each type at most what there is (row t), GPUs of each leaf at most its cap (row T + i)."""
    types, leaves = len(grid.values.capacity), len(grid.values.cap)
    columns = np.arange(grid.count)
    indptr, indices, data = row_groups(
        np.concatenate([grid.gpu_type, types + grid.leaf]), np.tile(columns, 2), np.ones(2 * grid.count), types + leaves
    )
    upper = np.concatenate([grid.values.capacity, grid.values.cap]).astype(np.float64)
    return Rows(indptr, indices, data, np.full(types + leaves, -INFINITY), upper)
