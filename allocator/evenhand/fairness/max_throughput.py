"""Most throughput, whoever gets it (rule T4 without floors and envy): a transport program."""

from __future__ import annotations

import numpy as np

from evenhand.errors import SolverError
from evenhand.fairness.bundle_program import BundleProgram, LimitHit
from evenhand.fairness.fair_share import fair_share, near_slices
from evenhand.fairness.group_value import FloatArray, GroupValues
from evenhand.fairness.rows import capacity_rows, grid_of
from evenhand.fairness.twins import merged


def max_throughput(values: GroupValues, iterations: int = 100_000) -> tuple[FloatArray, bool]:
    """Best bundles, of optima the nearest to the slices, float [L, T], and whether they are proven best."""
    if not len(values.leaves):
        return np.zeros(values.slices.shape), True
    x, weighty = fair_share(values), values.weighty
    twins = merged(values.only(weighty))
    grid = grid_of(twins.values)
    if not grid.count:
        return np.zeros(values.slices.shape), True
    program = BundleProgram(grid.worth, iterations)
    program.at_most(capacity_rows(grid))
    try:
        amounts = program.best()
        if not program.unique:
            program.nearest_to(*near_slices(grid))
            amounts = program.best()
    except (LimitHit, SolverError):
        return x, False
    x[weighty] = twins.lift(grid.lift(amounts))
    return x, True
