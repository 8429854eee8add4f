"""Columns and rows that the programs of the fair target share: what leaves can use, capacity, floors, envy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.fairness.group_value import FloatArray, GroupValues
from evenhand.fairness.kinship import Kinship
from evenhand.shapes import IntArray
from evenhand.solvers.lp import INFINITY, Rows

DUST_GPUS = 1e-10
"""Less than this in a bundle is rounding."""


@dataclass(frozen=True, eq=False)
class Grid:
    """The columns of a program over bundles of kins, GPUs; only what they can use (T4). n columns.

    Attributes
    ----------
    kin, gpu_type : of each column, int [n].
    column : index of the column, -1 where a kin cannot use a type, int [K, T].
    """

    values: GroupValues
    kinship: Kinship
    kin: IntArray
    gpu_type: IntArray
    column: IntArray

    @property
    def count(self) -> int:
        """Number of columns."""
        return len(self.kin)

    @property
    def worth(self) -> FloatArray:
        """Throughput per GPU of each column, float [n]."""
        mean = np.zeros((self.kinship.count, len(self.values.capacity)))
        np.add.at(mean, self.kinship.of, self.values.weights * self.kinship.share[:, None])
        return mean[self.kin, self.gpu_type]

    def gather(self, bundles: FloatArray) -> FloatArray:
        """Bundles of leaves as column values of their kins, float [n]."""
        summed = np.zeros(self.column.shape)
        np.add.at(summed, self.kinship.of, bundles)
        return summed[self.kin, self.gpu_type]

    def lift(self, x: FloatArray) -> FloatArray:
        """Column values home: GPUs by leaf and type, float [L, T], the solver's dust wiped off."""
        found = np.zeros(self.column.shape)
        found[self.kin, self.gpu_type] = np.where(x < DUST_GPUS, 0.0, x)
        return found[self.kinship.of] * self.kinship.share[:, None]


def grid_of(values: GroupValues, kinship: Kinship) -> Grid:
    """Number the columns kin by kin."""
    usable = (values.weights[kinship.speaker] > 0) & (values.capacity > 0)
    kin, gpu_type = np.nonzero(usable)
    column = np.full(usable.shape, -1, dtype=np.int64)
    column[kin, gpu_type] = np.arange(len(kin))
    return Grid(values, kinship, kin.astype(np.int64), gpu_type.astype(np.int64), column)


def compressed(
    keys: IntArray, columns: IntArray, data: FloatArray, lower: FloatArray, upper: FloatArray
) -> Rows:
    """Rows from entries (row, column, coefficient) in any order."""
    order = np.lexsort((columns, keys))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=len(lower)))]).astype(np.int64)
    return Rows(indptr, columns[order], data[order], lower, upper)


def capacity_rows(grid: Grid) -> Rows:
    """GPUs of each type at most what there is (row t), GPUs of each kin at most what all its leaves can hold (row T + k)."""
    values, kinship, types = grid.values, grid.kinship, len(grid.values.capacity)
    tightest = np.full(kinship.count, INFINITY)
    np.minimum.at(tightest, kinship.of, values.cap / kinship.share)
    keys = np.concatenate([grid.gpu_type, types + grid.kin])
    upper = np.concatenate([values.capacity.astype(np.float64), tightest])
    columns = np.tile(np.arange(grid.count), 2)
    return compressed(keys, columns, np.ones(2 * grid.count), np.full(len(upper), -INFINITY), upper)


def _own(grid: Grid, leaf: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Entries of v_i(x_i), row k for leaf[k]: rows, columns (-1 where there is none), coefficients."""
    types = np.arange(len(grid.values.capacity))
    keys, kinds = np.repeat(np.arange(len(leaf)), len(types)), np.tile(types, len(leaf))
    i = leaf[keys]
    return keys, grid.column[grid.kinship.of[i], kinds], grid.values.weights[i, kinds] * grid.kinship.share[i]


def floor_rows(grid: Grid) -> Rows:
    """Sharing incentive: v_i(x_i) >= floor_i, one row a leaf."""
    keys, columns, data = _own(grid, np.arange(len(grid.values.cap)))
    keep = columns >= 0
    floor = grid.values.floor
    return compressed(keys[keep], columns[keep], data[keep], floor, np.full(len(floor), INFINITY))


def envy_rows(grid: Grid, envious: IntArray, envied: IntArray) -> Rows:
    """Envy-freeness: v_i(x_i) >= L_i((e_i/e_k) x_k), one row for each leaf i and kin k of the lists (rule T3)."""
    values, kinship = grid.values, grid.kinship
    keys, columns, data = _own(grid, envious)
    kinds = np.tile(np.arange(len(values.capacity)), len(envious))
    i, k = envious[keys], envied[keys]
    theirs = grid.column[k, kinds]
    wished = values.lever[i, kinds] * (values.entitled[i] / kinship.entitled[k])
    keys, columns, data = np.tile(keys, 2), np.concatenate([columns, theirs]), np.concatenate([data, -wished])
    same = np.tile(kinship.of[i] == k, 2)
    if same.any():  # a kin beside itself: one coefficient for each column
        both = np.where(same[: len(theirs)], data[: len(theirs)] - wished, data[: len(theirs)])
        data = np.concatenate([both, np.where(same[len(theirs) :], 0.0, -wished)])
    keep = (columns >= 0) & (data != 0)
    constant = (values.pi * values.cap)[envious]
    return compressed(keys[keep], columns[keep], data[keep], constant, np.full(len(constant), INFINITY))
