"""Most throughput subject to envy-freeness and sharing incentive (rule T4, cooperative OEF with caps).

Envy constraints are met lazily: at first those between leaves of like taste, then the worst found violated. Among
optima the one nearest to the slices is chosen. Work is bounded by simplex iterations: where they do not do, leaves
are treated as kin more widely, at last the slices themselves are the answer, which are always possible.
"""

from __future__ import annotations

import numpy as np

from evenhand.fairness.bundle_program import BundleProgram, LimitHit
from evenhand.fairness.group_value import FloatArray, GroupValues, used_of
from evenhand.fairness.kinship import kinship_of
from evenhand.fairness.rows import Grid, capacity_rows, envy_rows, floor_rows, grid_of
from evenhand.shapes import BoolArray, IntArray

ALL_PAIRS_UP_TO = 30
"""Up to so many kins all envy constraints are there from the start."""
LIKE_TASTES = 8
WORST_PER_KIN = 3
WIDTHS = (400, 60)
"""Most kins at the first try and at the next."""
ITERATIONS = 20_000
SLACK = 1e-8
"""Envy up to this, in throughput, counts as none."""


def envy_free(values: GroupValues) -> tuple[FloatArray, bool]:
    """Best bundles, float [L, T], and whether they are proven best."""
    useful = (values.weights > 0).any(axis=0) & (values.capacity > 0)
    if not useful.any():
        return np.zeros(values.weights.shape), True
    if useful.sum() == 1:
        return _one_type(values, int(np.flatnonzero(useful)[0])), True
    for width in WIDTHS:
        kinship = kinship_of(values, width)
        try:
            return _best(grid_of(values, kinship)), kinship.exact
        except LimitHit:
            continue
    return used_of(values.weights, values.cap, values.slices), False


def _one_type(values: GroupValues, gpu_type: int) -> FloatArray:
    """Closed form: leaves whose slice is above their cap get the cap, all others the same for what they are owed."""
    e, cap, weight = values.entitled, values.cap, values.weights[:, gpu_type]
    full = values.pi > 0
    rest = (weight > 0) & ~full
    x = np.zeros(values.weights.shape)
    x[full, gpu_type] = cap[full]
    if rest.any():
        left = float(values.capacity[gpu_type] - cap[full].sum())
        level = min(float((cap[rest] / e[rest]).min()), left / float(e[rest].sum()))
        x[rest, gpu_type] = level * e[rest]
    return x


def _best(grid: Grid) -> FloatArray:
    """Solve, and among optima take the one nearest to the slices."""
    values = grid.values
    program = BundleProgram(grid.worth, ITERATIONS)
    program.at_most(capacity_rows(grid))
    program.at_least(floor_rows(grid))
    met = _never(grid)
    _meet(program, grid, met, _like_tastes(grid))
    x = _settled(program, grid, met)
    if not program.unique:
        program.nearest_to(grid.gather(used_of(values.weights, values.cap, values.slices)))
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


def _never(grid: Grid) -> BoolArray:
    """Pairs (leaf, kin) that need no constraint: a leaf and its own kin, unless its cap has a price; bool [L, K]."""
    kinship = grid.kinship
    alone = np.bincount(kinship.of) == 1
    met = np.zeros((len(kinship.of), kinship.count), dtype=bool)
    own = alone[kinship.of] | (grid.values.pi <= 0)
    met[np.flatnonzero(own), kinship.of[own]] = True
    return met


def _meet(program: BundleProgram, grid: Grid, met: BoolArray, pairs: tuple[IntArray, IntArray]) -> None:
    envious, envied = pairs
    fresh = ~met[envious, envied]
    envious, envied = envious[fresh], envied[fresh]
    met[envious, envied] = True
    program.at_least(envy_rows(grid, envious, envied))


def _like_tastes(grid: Grid) -> tuple[IntArray, IntArray]:
    """The speakers of all kins and the kins of most like taste: whom they will envy first."""
    speaker, count = grid.kinship.speaker, grid.kinship.count
    if count <= ALL_PAIRS_UP_TO:
        return np.repeat(speaker, count), np.tile(np.arange(count), count)
    taste = grid.values.lever[speaker]
    taste = taste / np.maximum(np.linalg.norm(taste, axis=1, keepdims=True), 1e-12)
    likeness = np.round(taste @ taste.T, 12)
    np.fill_diagonal(likeness, -1.0)
    like = np.argsort(-likeness, axis=1, kind="stable")[:, :LIKE_TASTES]
    return np.repeat(speaker, like.shape[1]), like.reshape(-1)


def _worst(grid: Grid, x: FloatArray, met: BoolArray) -> tuple[IntArray, IntArray]:
    """For each kin the few other kins that one of its leaves envies most beyond the slack."""
    values, kinship = grid.values, grid.kinship
    bundles = np.zeros(grid.column.shape)
    bundles[grid.kin, grid.gpu_type] = x
    each = bundles / kinship.entitled[:, None]
    own = (values.weights * each[kinship.of]).sum(axis=1) * values.entitled
    envy = (values.pi * values.cap - own)[:, None] + values.entitled[:, None] * (values.lever @ each.T)
    envy[met] = -1.0
    if kinship.count == len(kinship.of):
        leaf = np.argsort(kinship.of)[:, None].repeat(kinship.count, axis=1)
        worst = envy[leaf[:, 0]]
    else:
        order = np.argsort(kinship.of, kind="stable")
        starts = np.searchsorted(kinship.of[order], np.arange(kinship.count))
        worst = np.maximum.reduceat(envy[order], starts, axis=0)
        leaf = _first_at(envy, worst, order, kinship.of)
    few = min(WORST_PER_KIN, kinship.count)
    envied = np.argsort(-np.round(worst, 12), axis=1, kind="stable")[:, :few]
    kins = np.repeat(np.arange(kinship.count), few)
    envied = envied.reshape(-1)
    keep = worst[kins, envied] > SLACK
    return leaf[kins[keep], envied[keep]], envied[keep]


def _first_at(envy: FloatArray, worst: FloatArray, order: IntArray, of: IntArray) -> IntArray:
    """For each kin and envied kin the first leaf whose envy is the worst, int [K, K]."""
    leaf = np.zeros(worst.shape, dtype=np.int64)
    for i in order[::-1]:
        hits = envy[i] >= worst[of[i]]
        leaf[of[i], hits] = i
    return leaf
