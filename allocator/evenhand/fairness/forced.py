"""How much unfairness pinned jobs force on any division, pair by pair: for the certificate."""

from __future__ import annotations

import numpy as np

from evenhand.errors import SolverError
from evenhand.fairness.bundle_program import BundleProgram, LimitHit
from evenhand.fairness.group_value import FloatArray, GroupValues, best_split, wished_of
from evenhand.fairness.rows import capacity_rows, envy_rows, floor_rows, grid_of, largest
from evenhand.shapes import BoolArray, IntArray
from evenhand.solvers.lp import INFINITY, Rows

WORST_PER_LEAF = 12
SLACK = 1e-7
"""Envy up to this, in throughput, counts as none."""


def least_slack(values: GroupValues, fair: FloatArray, pinned: FloatArray, iterations: int = 100_000) -> FloatArray:
    """Envy that is left when pinned GPUs stay where they are: throughput, envious first, float [L, L].

    The program of the target with x_i >= P_i and capacity raised to hold the pins: least total shortfall
    below floors first, then least summed envy. Where the work allowed does not do, nothing is called forced.

    Parameters
    ----------
    fair : the target's bundles, float [L, T]: if they hold the pins, nothing is forced.
    pinned : P, GPUs by class and type, float [K, T].
    """
    leaves = len(values.leaves)
    none = np.zeros((leaves, leaves))
    for possible in (fair, values.slices):
        if (best_split(values, possible) >= pinned - SLACK).all():
            return none
    x = _least_unfair(values, pinned, iterations)
    return none if x is None else _slack_at(values, x)


def _slack_at(values: GroupValues, split: FloatArray) -> FloatArray:
    """Envy above dust at a split, float [L, L]."""
    envy = wished_of(values, values.per_leaf(split)) - values.brought(split)[:, None]
    np.fill_diagonal(envy, 0.0)
    return np.where(envy > SLACK, envy, 0.0)


def _least_unfair(values: GroupValues, pinned: FloatArray, iterations: int) -> FloatArray | None:
    """The split with the least shortfall, then the least envy; None if the work allowed does not do."""
    ground = _Ground(values, pinned, iterations)
    try:
        short = ground.program(np.concatenate([np.zeros(ground.grid.count), -ground.grid.unit]))
        shortfall = float((short.best()[ground.grid.count :] * ground.grid.unit).sum())
        program = ground.program(np.zeros(ground.grid.count + ground.leaves))
        program.at_most(ground.shortfall_row(shortfall))
        met = np.eye(ground.leaves, dtype=bool)
        while True:
            x = ground.lift(program.best())
            envious, envied = _worst(_slack_at(values, x), met)
            if not len(envious):
                return x
            met[envious, envied] = True
            program.at_least(ground.envy(envious, envied), dearest=ground.grid.unit[envious])
    except (LimitHit, SolverError):
        return None


def _worst(envy: FloatArray, met: BoolArray) -> tuple[IntArray, IntArray]:
    envy = np.where(met, 0.0, envy)
    envious, envied = largest(envy, WORST_PER_LEAF)
    keep = envy[envious, envied] > 0
    return envious[keep], envied[keep]


class _Ground:
    """Amounts are what a bundle has above the pins for each column of the grid, then each leaf's shortfall."""

    def __init__(self, values: GroupValues, pinned: FloatArray, iterations: int) -> None:
        self.grid = grid_of(values)
        self.leaves = len(values.leaves)
        self._values, self._pinned, self._iterations = values, pinned, iterations
        self._all = np.arange(self.leaves)

    def lift(self, amounts: FloatArray) -> FloatArray:
        """The split, pins included, float [K, T]."""
        return np.asarray(self._pinned + self.grid.split(amounts[: self.grid.count]))

    def program(self, worth: FloatArray) -> BundleProgram:
        """Capacity, raised to hold the pins, and floors, missed at the price of a shortfall."""
        program = BundleProgram(worth, self._iterations)
        there = capacity_rows(self.grid)
        pins = np.concatenate([self._pinned.sum(axis=0), self._pinned.sum(axis=1) / self.grid.class_unit])
        room = np.maximum(there.upper - pins, 0.0)
        program.at_most(Rows(there.indptr, there.indices, there.data, there.lower, room))
        floors = floor_rows(self.grid)
        ends, count = floors.indptr[1:], self.grid.count
        program.at_least(
            Rows(
                floors.indptr + np.arange(self.leaves + 1),
                np.insert(floors.indices, ends, count + self._all),
                np.insert(floors.data, ends, 1.0),
                floors.lower - self._values.brought(self._pinned) / self.grid.unit,
                floors.upper,
            )
        )
        return program

    def shortfall_row(self, least: float) -> Rows:
        """The shortfall in sum at most what it has to be."""
        indptr = np.array([0, self.leaves], dtype=np.int64)
        upper = np.array([least * (1 + 1e-9) + 1e-9])
        return Rows(indptr, self.grid.count + self._all, self.grid.unit, -np.full(1, INFINITY), upper)

    def envy(self, envious: IntArray, envied: IntArray) -> Rows:
        """Envy rows over amounts above the pins."""
        rows, values = envy_rows(self.grid, envious, envied), self._values
        ratio = values.entitled[envious] / values.entitled[envied]
        wished = ratio * (values.lever[envious] * values.per_leaf(self._pinned)[envied]).sum(axis=1)
        own = values.brought(self._pinned)[envious]
        beyond = (wished - own) / self.grid.unit[envious]
        return Rows(rows.indptr, rows.indices, rows.data, rows.lower + beyond, rows.upper)
