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
    """The columns of a program over splits of bundles; only what job classes can use (T4). n columns.

    Amounts of a leaf that is owed less than one charged GPU are counted in GPUs for what it is owed, and its rows
    likewise: so that a leaf that is owed next to nothing is as exact as any.

    Attributes
    ----------
    job_class, leaf, gpu_type : of each column, int [n].
    column : index of the column, -1 where a class cannot use a type, int [K, T].
    unit : GPUs that one amount of a leaf stands for, float [L].
    """

    values: GroupValues
    job_class: IntArray
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
    def own(self) -> FloatArray:
        """Throughput of one GPU of each column, float [n]."""
        return self.values.weights[self.job_class, self.gpu_type]

    @property
    def worth(self) -> FloatArray:
        """Throughput of one amount of each column, float [n]."""
        return self.own * self.gpus

    @property
    def class_unit(self) -> FloatArray:
        """GPUs that one amount of a class stands for, float [K]."""
        return self.unit[self.values.of]

    def piles(self) -> tuple[IntArray, IntArray, IntArray]:
        """Columns of the same leaf and type as one pile: the pile of each column, int [n]; leaf and type of each."""
        types = len(self.values.capacity)
        found, of = np.unique(self.leaf * types + self.gpu_type, return_inverse=True)
        return of.reshape(-1), found // types, found % types

    def gather(self, split: FloatArray) -> FloatArray:
        """GPUs by class and type, float [K, T], as amounts, float [n]."""
        return split[self.job_class, self.gpu_type] / self.gpus

    def split(self, amounts: FloatArray) -> FloatArray:
        """Amounts home: GPUs by class and type, float [K, T], the solver's dust wiped off."""
        found = np.zeros(self.column.shape)
        found[self.job_class, self.gpu_type] = np.where(amounts < DUST, 0.0, amounts) * self.gpus
        return found

    def lift(self, amounts: FloatArray) -> FloatArray:
        """Amounts as bundles: GPUs by leaf and type, float [L, T]."""
        return self.values.per_leaf(self.split(amounts))


def grid_of(values: GroupValues) -> Grid:
    """Number the columns class by class."""
    usable = (values.weights > 0) & (values.capacity > 0)
    job_class, gpu_type = np.nonzero(usable)
    column = np.full(usable.shape, -1, dtype=np.int64)
    column[job_class, gpu_type] = np.arange(len(job_class))
    unit = np.minimum(values.entitled, 1.0)
    return Grid(values, job_class, values.of[job_class], gpu_type, column, unit)


def compressed(keys: IntArray, columns: IntArray, data: FloatArray, lower: FloatArray, upper: FloatArray) -> Rows:
    """Rows from entries (row, column, coefficient) in any order."""
    order = np.lexsort((columns, keys))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=len(lower)))]).astype(np.int64)
    return Rows(indptr, columns[order], data[order], lower, upper)


def capacity_rows(grid: Grid) -> Rows:
    """GPUs of each type at most what there is (row t), GPUs of each class at most its cap (row T + k)."""
    types = len(grid.values.capacity)
    keys = np.concatenate([grid.gpu_type, types + grid.job_class])
    upper = np.concatenate([grid.values.capacity, grid.values.cap / grid.class_unit])
    columns, data = np.tile(np.arange(grid.count), 2), np.concatenate([grid.gpus, np.ones(grid.count)])
    return compressed(keys, columns, data, np.full(len(upper), -INFINITY), upper)


def floor_rows(grid: Grid) -> Rows:
    """Sharing incentive: v_i(x_i) >= floor_i, one row a leaf (T4), counted in its unit."""
    floor = grid.values.floor / grid.unit
    return compressed(grid.leaf, np.arange(grid.count), grid.own, floor, np.full(len(floor), INFINITY))


def envy_rows(grid: Grid, envious: IntArray, envied: IntArray) -> Rows:
    """Envy-freeness: v_i(x_i) - (e_i/e_l) lever_i x_l >= base_i, one row for each pair (T3, T4).

    Counted in the unit of the envious.
    """
    return line_rows(grid, envious, envied, grid.values.base[envious], grid.values.lever[envious])


def line_rows(grid: Grid, envious: IntArray, envied: IntArray, base: FloatArray, slope: FloatArray) -> Rows:
    """v_i(x_i) - (e_i/e_l) slope x_l >= base, one row for each of n pairs with lines of their own (T3, T4).

    Parameters
    ----------
    base : float [n]; slope : float [n, T].
    """
    values, unit = grid.values, grid.unit
    keys, columns = columns_of(grid, envious)
    more, theirs = columns_of(grid, envied)
    i, other = envious[more], envied[more]
    wished = slope[more, grid.gpu_type[theirs]] * (values.entitled[i] / unit[i])
    wished *= unit[other] / values.entitled[other]
    keys, columns = np.concatenate([keys, more]), np.concatenate([columns, theirs])
    data = np.concatenate([grid.own[columns[: len(columns) - len(theirs)]], -wished])
    constant = base / unit[envious]
    rows = compressed(keys, columns, data, constant, np.full(len(constant), INFINITY))
    return _joined(rows, grid.count) if (envious == envied).any() else rows


def columns_of(grid: Grid, leaves: IntArray) -> tuple[IntArray, IntArray]:
    """All columns of each of some leaves: the place of the leaf among them, and the column."""
    count = np.bincount(grid.leaf, minlength=len(grid.unit))
    first = np.cumsum(count) - count
    each = count[leaves]
    place = np.repeat(np.arange(len(leaves)), each)
    within = np.arange(len(place)) - np.repeat(np.cumsum(each) - each, each)
    return place, first[leaves][place] + within


def _joined(rows: Rows, columns: int) -> Rows:
    """One coefficient for each column of a row: twins stand beside one another."""
    keys = np.repeat(np.arange(rows.count), np.diff(rows.indptr)) * columns + rows.indices
    found, of = np.unique(keys, return_inverse=True)
    data = np.bincount(of.reshape(-1), weights=rows.data, minlength=len(found)).astype(np.float64)
    return compressed(found // columns, found % columns, data, rows.lower, rows.upper)


def largest(table: FloatArray, few: int) -> tuple[IntArray, IntArray]:
    """Places of the few largest entries of each row, the first of equals: rows, columns, int [rows * few]."""
    left, found = table.copy(), []
    every = np.arange(len(table))
    for _ in range(min(few, table.shape[1])):
        best = left.argmax(axis=1)
        found.append(best)
        left[every, best] = -np.inf
    return np.repeat(every, len(found)), np.array(found, dtype=np.int64).T.reshape(-1)


def largest_both_ways(table: FloatArray, few: int, above: float) -> tuple[IntArray, IntArray]:
    """Places of the few largest entries of each row and of each column, those above a limit: rows, columns."""
    wanted = np.zeros(table.shape, dtype=bool)
    wanted[largest(table, few)] = True
    wanted.T[largest(table.T, few)] = True
    rows, columns = np.nonzero(wanted & (table > above))
    return rows.astype(np.int64), columns.astype(np.int64)
