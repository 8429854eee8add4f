"""The least served as well as possible, then most throughput: a figure to compare with."""

from __future__ import annotations

import numpy as np

from evenhand.errors import SolverError
from evenhand.fairness.group_value import GroupValues
from evenhand.fairness.rows import capacity_rows, floor_rows, grid_of
from evenhand.fairness.twins import merged
from evenhand.solvers.lp import INFINITY, LinearProgram, LpStatus, Rows, stack

MOST_LEAVES = 400
ITERATIONS = 50_000


def max_min_throughput(values: GroupValues) -> float | None:
    """Throughput where every leaf gets z times its floor, z as large as can be; None if not computed."""
    if not len(values.cap):
        return 0.0
    one = merged(values.only(values.weighty)).values
    if len(one.cap) > MOST_LEAVES:
        return None
    grid = grid_of(one)
    if not grid.count:
        return 0.0
    floors = floor_rows(grid)
    some = int((floors.lower > 0).sum())
    n, capacity = grid.count, capacity_rows(grid)
    served = _with_level(floors, n)
    program = LinearProgram(
        np.concatenate([np.zeros(n), [1.0]]),
        stack(capacity, served),
        np.zeros(n + 1),
        np.concatenate([np.full(n, INFINITY), [INFINITY if some else 0.0]]),
        maximize=True,
    )
    try:
        level = program.solve(ITERATIONS)
        if level.status is not LpStatus.OPTIMAL:
            return None
        z = level.x[n : n + 1] * (1 - 1e-12)
        program.set_columns(np.array([n]), z, z)
        program.set_cost(np.concatenate([grid.worth, [0.0]]))
        found = program.solve(ITERATIONS)
    except SolverError:
        return None
    return found.objective if found.status is LpStatus.OPTIMAL else None


def _with_level(floors: Rows, level: int) -> Rows:
    """v_i(x_i) - floor_i z >= 0, z in column `level`."""
    ends = floors.indptr[1:]
    return Rows(
        floors.indptr + np.arange(len(floors.indptr)),
        np.insert(floors.indices, ends, level),
        np.insert(floors.data, ends, -floors.lower),
        np.zeros(floors.count),
        floors.upper,
    )
