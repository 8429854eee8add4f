"""The least served as well as possible (rule T4), and its throughput as a figure to compare with.

Water filling: all rise together until some can rise no more, those stay, the others rise on. The figure
stops after the first stop and takes most throughput from there: one program instead of one a stop.
"""

from __future__ import annotations

import numpy as np

from evenhand.errors import SolverError
from evenhand.fairness.bundle_program import BundleProgram, LimitHit
from evenhand.fairness.fair_share import fair_share, near_slices
from evenhand.fairness.group_value import FloatArray, GroupValues, best_split
from evenhand.fairness.rows import Grid, capacity_rows, compressed, floor_rows, grid_of
from evenhand.fairness.twins import merged
from evenhand.shapes import BoolArray
from evenhand.solvers.lp import INFINITY, LinearProgram, LpResult, LpStatus, Rows, stack

MOST_LEAVES = 400
ITERATIONS = 50_000
_HOLDS_BACK = 1e-7
"""Part of the price of the level from which on a leaf cannot rise in any optimum."""
_NARROWER, _AGAIN = 1e-10, 1e-8
"""By how much less than what was reached is asked for later, so that rounding does not make it impossible; and
if it still does."""
_LOST = 1e-8
_PER_START = 40
"""To start a program again takes as long as one simplex iteration for each so many leaves, measured."""


def max_min(values: GroupValues, iterations: int = 100_000) -> tuple[FloatArray, bool]:
    """Throughput over floor as high as can be, the least first: bundles, float [L, T], and if proven."""
    return water_filled(values, values.floor, iterations)


def water_filled(values: GroupValues, measure: FloatArray, iterations: int) -> tuple[FloatArray, bool]:
    """Raise throughput over `measure`, float [L], lexicographically; of optima the nearest to the slices.

    The levels determine every leaf's throughput. Where the iterations do not do, those who still rise get most
    throughput from where they stand, with nobody worse off; or all their slices, if these bring more.
    """
    x, weighty = fair_share(values), values.weighty
    if not len(values.leaves):
        return x, True
    twins = merged(values.only(weighty))
    grid = grid_of(twins.values)
    if not grid.count:
        return x, True
    together = np.bincount(twins.of, weights=measure[weighty], minlength=len(twins.values.leaves))
    try:
        try:
            raised, best = _raised(grid, together / grid.unit, iterations, _NARROWER)
        except SolverError:
            raised, best = _raised(grid, together / grid.unit, iterations, _AGAIN)
        split = nearest_with(grid, raised, iterations)
    except (LimitHit, SolverError):
        return x, False
    if not best:
        split = best_split(twins.values, twins.values.per_leaf(split))
        if (twins.values.weights * split).sum() < twins.values.floor.sum():
            return x, False
    x[weighty] = twins.lift(twins.values.per_leaf(split))
    return x, best


def _raised(grid: Grid, measure: FloatArray, iterations: int, narrower: float) -> tuple[FloatArray, bool]:
    """Raise all, hold those that can rise no more, and go on; `measure` in the leaves' units.

    The split reached, float [K, T], and whether nobody can rise any more.

    Each leaf has two rows, only one in force: v_i >= measure_i z while it rises, v_i >= what it reached after.
    Who has a price in the best level is at it in every optimum.
    """
    n, leaves = grid.count, len(measure)
    every = np.arange(leaves)
    keys = np.concatenate([grid.leaf, every, leaves + grid.leaf])
    columns = np.concatenate([np.arange(n), np.full(leaves, n), np.arange(n)])
    rises: BoolArray = np.bincount(grid.leaf, minlength=leaves) > 0
    lower = np.where(np.concatenate([rises, np.zeros(leaves, dtype=bool)]), 0.0, -INFINITY)
    data = np.concatenate([grid.own, -measure, grid.own])
    capacity = capacity_rows(grid)
    levels = compressed(keys, columns, data, lower, np.full(2 * leaves, INFINITY))
    cost = np.concatenate([np.zeros(n), [1.0]])
    program = LinearProgram(
        cost, stack(capacity, levels), np.zeros(n + 1), np.full(n + 1, INFINITY), maximize=True, primal=True
    )
    last: FloatArray | None = None
    while True:
        try:
            found = solved(program, iterations)
        except LimitHit:
            if last is None:
                raise
            return last, False
        last = grid.split(np.maximum(found.x[:n], 0.0))
        iterations -= found.iterations + leaves // _PER_START
        price = np.abs(found.row_dual[capacity.count : capacity.count + leaves]) * measure
        price[~rises] = 0.0
        held = np.flatnonzero(price > min(_HOLDS_BACK, float(price.max()) / 2))
        rises[held] = False
        if not rises.any() or not len(held):
            return last, True
        reached = found.x[n] * measure[held] * (1 - narrower)
        none, free = np.full(len(held), -INFINITY), np.full(len(held), INFINITY)
        program.set_rows(capacity.count + held, none, free)
        program.set_rows(capacity.count + leaves + held, reached, free)


def solved(program: LinearProgram, iterations: int) -> LpResult:
    """The optimum, from where the program stands; once more from nothing if the solver breaks down on the way.

    Raises
    ------
    LimitHit
        If the iterations do not do, or there is no optimum.
    """
    for _ in range(2):
        try:
            found = program.solve(max(0, iterations))
            if found.status in (LpStatus.OPTIMAL, LpStatus.LIMIT):
                break
        except SolverError:
            pass
        program.forget()
    else:
        raise SolverError("the solver broke down twice on a program that has an optimum.")
    if found.status is not LpStatus.OPTIMAL:
        raise LimitHit("the iterations allowed do not do")
    return found


def nearest_with(grid: Grid, split: FloatArray, iterations: int) -> FloatArray:
    """Of all splits that bring every leaf as much as this, the nearest to the slices, GPUs, float [K, T]."""
    values = grid.values
    value = values.brought(split)
    kept = floor_rows(grid)
    lower = value / grid.unit * (1 - _NARROWER)
    program = BundleProgram(grid.worth, iterations)
    program.at_most(capacity_rows(grid))
    program.at_least(Rows(kept.indptr, kept.indices, kept.data, lower, kept.upper))
    try:
        amounts = program.best()
        if not program.unique:
            program.nearest_to(*near_slices(grid))
            amounts = program.best()
    except (LimitHit, SolverError):
        return split
    found = grid.split(amounts)
    lost = value - values.brought(found)
    return found if (lost <= _LOST * np.maximum(1.0, value)).all() else split


def max_min_throughput(values: GroupValues) -> float | None:
    """Throughput where every leaf gets z times its floor, z as large as can be; None if not computed."""
    if not len(values.leaves):
        return 0.0
    one = merged(values.only(values.weighty)).values
    if len(one.leaves) > MOST_LEAVES:
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
