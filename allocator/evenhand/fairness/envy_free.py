"""Most throughput subject to envy-freeness and sharing incentive (rule T4, cooperative OEF with caps).

Envy constraints are met lazily: at first those between leaves of like taste, then the worst found
violated. Among optima the one nearest to the slices is chosen. Work is bounded by simplex iterations:
where they do not do, the answer is the last one found, if next to nobody envies anybody under it, else
the slices themselves, which are always envy-free and at their floors.
"""

from __future__ import annotations

import numpy as np

from evenhand.errors import SolverError
from evenhand.fairness.bundle_program import BundleProgram, LimitHit
from evenhand.fairness.fair_share import fair_share, near_slices
from evenhand.fairness.group_value import FloatArray, GroupValues, wished_of
from evenhand.fairness.rows import Grid, capacity_rows, envy_rows, floor_rows, grid_of, largest, largest_both_ways
from evenhand.fairness.twins import Twins, merged
from evenhand.shapes import BoolArray, IntArray

ALL_PAIRS_UP_TO = 30
"""Up to so many leaves all envy constraints are there from the start."""
LIKE_TASTES = 8
WORST_PER_LEAF = 3
SLACK = 1e-8
"""Envy up to this, in throughput, counts as none."""
ROUGH = 0.01
"""Envy, as a share of the floor, up to which an answer is served that is not finished."""


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
        bundles, best = _best(twins, iterations)
    except (LimitHit, SolverError):
        return x, False
    x[weighty] = twins.lift(bundles)
    return x, best


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


def _best(twins: Twins, iterations: int) -> tuple[FloatArray, bool]:
    """Solve, and among optima take the one nearest to the slices; whether that was done to the end.

    Raises
    ------
    LimitHit
        If the iterations do not do, and the last answer is unfair.
    """
    values = twins.values
    grid = grid_of(values)
    program = BundleProgram(grid.worth, iterations)
    program.at_most(capacity_rows(grid))
    program.at_least(floor_rows(grid))
    met = np.diag(~twins.several | ((values.base <= 0) & ~values.several))
    _meet(program, grid, met, _like_tastes(values))
    x, done = _settled(program, grid, met, None)
    if done and not program.unique:
        program.nearest_to(*near_slices(grid))
        x, done = _settled(program, grid, met, x)
    return grid.lift(x), done


def _settled(program: BundleProgram, grid: Grid, met: BoolArray, last: FloatArray | None) -> tuple[FloatArray, bool]:
    """Solve and meet what is violated until nothing is; else the last answer, if it is fair but for a rest."""
    while True:
        try:
            x = program.best()
        except LimitHit:
            if (
                last is None
                or _envy(grid, last, met=np.eye(len(met), dtype=bool), scale=grid.values.floor).max() > ROUGH
            ):
                raise
            return last, False
        last = x
        worst = largest_both_ways(_envy(grid, x, met), WORST_PER_LEAF, SLACK)
        if not len(worst[0]):
            return x, True
        _meet(program, grid, met, worst)


def _envy(grid: Grid, x: FloatArray, met: BoolArray, scale: FloatArray | None = None) -> FloatArray:
    """Envy of each pair, -1 where its constraint is met already, float [L, L]; as a share of `scale`, float [L]."""
    values, split = grid.values, grid.split(x)
    envy = wished_of(values, values.per_leaf(split)) - values.brought(split)[:, None]
    if scale is not None:
        envy = np.where(envy > SLACK, envy / np.maximum(scale, SLACK)[:, None], 0.0)
    envy[met] = -1.0
    return envy


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
