"""Most throughput, whoever gets it (rule T4 without floors and envy): a transport program."""

from __future__ import annotations

import numpy as np

from evenhand.fairness.bundle_program import BundleProgram, LimitHit
from evenhand.fairness.group_value import FloatArray, GroupValues, used_of
from evenhand.fairness.kinship import kinship_of
from evenhand.fairness.rows import capacity_rows, grid_of

ITERATIONS = 50_000


def max_throughput(values: GroupValues) -> tuple[FloatArray, bool]:
    """Best bundles, float [L, T], of all optima the nearest to the slices, and whether they are proven best."""
    slices = used_of(values.weights, values.cap, values.slices)
    if not len(slices):
        return slices, True
    grid = grid_of(values, kinship_of(values, len(slices) + 1))
    if not grid.count:
        return slices, True
    program = BundleProgram(grid.worth, ITERATIONS)
    program.at_most(capacity_rows(grid))
    try:
        x = program.best()
        if not program.unique:
            program.nearest_to(grid.gather(slices))
            x = program.best()
    except LimitHit:
        return slices, False
    return np.asarray(grid.lift(x)), True
