"""Most throughput subject to envy-freeness and sharing incentive (rule T4, cooperative OEF with caps)."""

from __future__ import annotations

import numpy as np

from evenhand.fairness.group_value import FloatArray, GroupValues, envy_of
from evenhand.fairness.max_throughput import Grid, capacity_rows, grid_of, row_groups
from evenhand.shapes import IntArray
from evenhand.solvers.lp import INFINITY, LinearProgram, LpResult, LpStatus, Rows, SolverError, stack

ALL_PAIRS_UP_TO = 30
"""Up to so many leaves all envy rows are there from the start, beyond only those found violated."""
WORST_PER_LEAF = 3
SLACK = 1e-8
"""Envy up to this, in throughput, counts as none."""


def envy_free(values: GroupValues) -> FloatArray:
    """Best bundles, float [L, T]."""
    grid = grid_of(values)
    if not grid.count:
        return np.zeros(values.weights.shape)
    program = LinearProgram(
        grid.cost, stack(capacity_rows(grid), floor_rows(grid)), np.zeros(grid.count), grid.upper, maximize=True
    )
    seen = np.eye(len(values.cap), dtype=bool)
    first = _all_pairs(values) if len(values.cap) <= ALL_PAIRS_UP_TO else _neighbours(values)
    _add(program, grid, seen, first)
    while True:
        found = optimum(program.solve())
        x = grid.bundles(found.x)
        envious, envied = _worst_pairs(values, x, seen)
        if not len(envious):
            return x
        _add(program, grid, seen, (envious, envied))


def optimum(found: LpResult) -> LpResult:
    """Insist on an optimum: every program here has one, the slices are feasible in it."""
    if found.status is not LpStatus.OPTIMAL:
        raise SolverError(f"the program of the fair target ended as {found.status}, but it has an optimum.")
    return found


def floor_rows(grid: Grid) -> Rows:
    """Sharing incentive: W_i x_i >= floor_i, one row a leaf."""
    indptr, indices, data = row_groups(grid.leaf, np.arange(grid.count), grid.cost, len(grid.values.cap))
    return Rows(indptr, indices, data, grid.values.floor, np.full(len(grid.values.cap), INFINITY))


def envy_rows(grid: Grid, envious: IntArray, envied: IntArray) -> Rows:
    """Envy-freeness: W_i x_i - (e_i/e_l) lever_i x_l >= pi_i cap_i, one row a pair (rule T3)."""
    values, rows = grid.values, np.arange(len(envious))
    types = np.arange(len(values.capacity))
    keys = np.repeat(rows, len(types))
    kinds = np.tile(types, len(rows))
    i, other = envious[keys], envied[keys]
    scaled = values.lever[i, kinds] * (values.entitled[i] / values.entitled[other])
    columns = np.concatenate([grid.column[i, kinds], grid.column[other, kinds]])
    data = np.concatenate([values.weights[i, kinds], -scaled])
    keep = (columns >= 0) & (data != 0)
    indptr, indices, data = row_groups(np.tile(keys, 2)[keep], columns[keep], data[keep], len(rows))
    return Rows(indptr, indices, data, (values.pi * values.cap)[envious], np.full(len(rows), INFINITY))


def _add(program: LinearProgram, grid: Grid, seen: np.ndarray, pairs: tuple[IntArray, IntArray]) -> None:
    seen[pairs] = True
    program.add_rows(envy_rows(grid, *pairs))


def _all_pairs(values: GroupValues) -> tuple[IntArray, IntArray]:
    envious, envied = np.nonzero(~np.eye(len(values.cap), dtype=bool))
    return envious, envied


def _neighbours(values: GroupValues) -> tuple[IntArray, IntArray]:
    return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)


def _worst_pairs(values: GroupValues, x: FloatArray, seen: np.ndarray) -> tuple[IntArray, IntArray]:
    """For each leaf the few others it envies most beyond the slack."""
    envy = envy_of(values, x)
    envy[seen] = 0.0
    few = min(WORST_PER_LEAF, envy.shape[1])
    worst = np.argpartition(-envy, few - 1, axis=1)[:, :few]
    envious = np.repeat(np.arange(len(envy)), few)
    envied = worst.reshape(-1)
    keep = envy[envious, envied] > SLACK
    return envious[keep], envied[keep]
