"""Most throughput subject to envy-freeness and sharing incentive (rule T4, cooperative OEF with caps).

Envy constraints are met lazily: at first those between leaves of like taste, then the worst found
violated. Among optima the one nearest to the slices is chosen. Work is bounded by simplex iterations:
where they do not do, the slices themselves are the answer, which are always envy-free and at their
floors.
"""

from __future__ import annotations

import numpy as np

from evenhand.errors import SolverError
from evenhand.fairness.bundle_program import BundleProgram, LimitHit
from evenhand.fairness.fair_share import fair_share, near_slices
from evenhand.fairness.group_value import FloatArray, GroupValues, wished_of
from evenhand.fairness.rows import Grid, capacity_rows, envy_rows, floor_rows, grid_of, largest
from evenhand.fairness.twins import Twins, merged
from evenhand.shapes import BoolArray, IntArray

ALL_PAIRS_UP_TO = 30
"""Up to so many leaves all envy constraints are there from the start."""
LIKE_TASTES = 8
WORST_PER_LEAF = 3
SLACK = 1e-8
"""Envy up to this, in throughput, counts as none."""


def envy_free(values: GroupValues, iterations: int = 100_000) -> tuple[FloatArray, bool]:
    """Best bundles, float [L, T], and whether they are proven best: not if the iterations did not do.

    Leaves that are owed next to nothing get their slices: nobody who is at its floor envies them.
    """
    useful = values.usable.any(axis=0)
    if not useful.any():
        return np.zeros(values.slices.shape), True
    if useful.sum() == 1 and not values.several.any():
        return _one_type(values, int(np.flatnonzero(useful)[0])), True
    x, weighty = fair_share(values), values.weighty
    twins = merged(values.only(weighty))
    try:
        x[weighty] = twins.lift(_best(twins, iterations))
    except (LimitHit, SolverError):
        return x, False
    return x, True


def _one_type(values: GroupValues, gpu_type: int) -> FloatArray:
    """Closed form for one class a leaf: leaves with a slice above their cap get the cap, others alike for what they are owed."""
    e, cap, weight = values.entitled, values.cap, values.weights[:, gpu_type]
    full = values.pi > 0
    rest = (weight > 0) & ~full
    x = np.zeros(values.slices.shape)
    x[full, gpu_type] = cap[full]
    if rest.any():
        left = float(values.capacity[gpu_type] - cap[full].sum())
        level = min(float((cap[rest] / e[rest]).min()), left / float(e[rest].sum()))
        x[rest, gpu_type] = level * e[rest]
    return x


def _best(twins: Twins, iterations: int) -> FloatArray:
    """Solve, and among optima take the one nearest to the slices."""
    values = twins.values
    grid = grid_of(values)
    program = BundleProgram(grid.worth, iterations)
    program.at_most(capacity_rows(grid))
    program.at_least(floor_rows(grid))
    met = np.diag(~twins.several | ((values.base <= 0) & ~values.several))
    _meet(program, grid, met, _like_tastes(values))
    x = _settled(program, grid, met)
    if not program.unique:
        program.nearest_to(*near_slices(grid))
        x = _settled(program, grid, met)
    return grid.lift(x)


def _settled(program: BundleProgram, grid: Grid, met: BoolArray) -> FloatArray:
    """Solve and meet what is violated until nothing is."""
    while True:
        x = program.best()
        worst = _worst(grid, x, met)
        if not len(worst[0]):
            return x
        _meet(program, grid, met, worst)


def _meet(program: BundleProgram, grid: Grid, met: BoolArray, pairs: tuple[IntArray, IntArray]) -> None:
    """Add the constraints of pairs (envious, envied) that are not there yet."""
    envious, envied = pairs
    fresh = ~met[envious, envied]
    envious, envied = envious[fresh], envied[fresh]
    met[envious, envied] = True
    program.at_least(envy_rows(grid, envious, envied))


def _like_tastes(values: GroupValues) -> tuple[IntArray, IntArray]:
    """For each leaf those of most like taste: whom it will envy first. All pairs if there are few."""
    count = len(values.leaves)
    if count <= ALL_PAIRS_UP_TO:
        return np.repeat(np.arange(count), count), np.tile(np.arange(count), count)
    taste = values.lever / np.maximum(np.linalg.norm(values.lever, axis=1, keepdims=True), 1e-12)
    likeness = np.round(taste @ taste.T, 12)
    np.fill_diagonal(likeness, -1.0)
    return largest(likeness, LIKE_TASTES)


def _worst(grid: Grid, x: FloatArray, met: BoolArray) -> tuple[IntArray, IntArray]:
    """For each leaf the few others that it envies most beyond the slack."""
    values = grid.values
    split = grid.split(x)
    envy = wished_of(values, values.per_leaf(split)) - values.brought(split)[:, None]
    envy[met] = -1.0
    some = np.flatnonzero(envy.max(axis=1, initial=-1.0) > SLACK)
    rows, envied = largest(envy[some], WORST_PER_LEAF)
    envious = some[rows]
    keep = envy[envious, envied] > SLACK
    return envious[keep], envied[keep]
