"""How much unfairness pinned jobs force on any division, pair by pair: for the certificate.

Measured as E1 measures what a plan leaves: GPUs that a leaf holds beyond what every other one accepts.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from evenhand.errors import SolverError
from evenhand.fairness.bars import shared_bars
from evenhand.fairness.bundle_program import BundleProgram, LimitHit
from evenhand.fairness.group_value import FloatArray, GroupValues, best_split, wished_of
from evenhand.fairness.rows import capacity_rows, envy_rows, floor_rows, grid_of, largest_both_ways
from evenhand.shapes import IntArray
from evenhand.solvers.lp import INFINITY, Rows

WORST_PER_LEAF = 3
"""Constraints met at once for each leaf, by those it envies and by those that envy it."""
_NOT_LESS = 1e-7
"""How much more shortfall than the least is allowed, so that rounding does not make the least impossible."""
LEAST_PER_CLASS = 4
LEAST_PER_ROOT = 0.2
"""Iterations for each of n classes, and for each and the root of n, than which it never took fewer when measured, from
26 to 1,355 classes: with fewer there is no need to begin."""
SLACK = 1e-7
"""Envy up to this, in throughput, counts as none."""


def least_slack(values: GroupValues, fair: FloatArray, pinned: FloatArray, iterations: int = 100_000) -> FloatArray:
    """Envy that is left when pinned GPUs stay where they are: throughput, envious first, float [L, L].

    The program of the target with f_ik >= P_ik and capacity raised to hold the pins: least total shortfall below
    floors first, then least total excess: for each leaf l, the most that any i envies it, (e_l/e_i) times, in GPUs
    of l. Where the work allowed does not do, nothing is called forced.

    Parameters
    ----------
    fair : the target's bundles, float [L, T]: if they hold the pins, nothing is forced.
    pinned : P, GPUs by class and type, float [K, T].
    """
    none = np.zeros((len(values.leaves), len(values.leaves)))
    for possible in (fair, values.slices):
        if (best_split(values, possible) >= pinned - SLACK).all():
            return none
    enough = iterations >= len(values.cap) * max(LEAST_PER_CLASS, LEAST_PER_ROOT * len(values.cap) ** 0.5)
    split = _least_unfair(values, pinned, iterations) if enough else None
    if split is None:
        return none
    envy = _envy_at(values, split)
    return np.where(envy > SLACK, envy, 0.0)


def _envy_at(values: GroupValues, split: FloatArray) -> FloatArray:
    """L of the others' bundles less what the own split brings, float [L, L]."""
    envy = wished_of(values, values.per_leaf(split)) - values.brought(split)[:, None]
    np.fill_diagonal(envy, 0.0)
    return envy


def _least_unfair(values: GroupValues, pinned: FloatArray, iterations: int) -> FloatArray | None:
    """The split with the least shortfall, then the least excess; None if the work allowed does not do."""
    ground, leaves = _Ground(values, pinned), len(values.leaves)
    ratio = values.entitled[None, :] / values.entitled[:, None]
    try:
        short = ground.program(iterations, shortfall=1.0, excess=0.0)
        shortfall = ground.shortfall(short.best())
        program = ground.program(iterations, shortfall=0.0, excess=1.0)
        program.at_most(ground.shortfall_row(shortfall))
        program.at_least(ground.links())
        bars, met = ground.bars, np.eye(leaves, dtype=bool)
        above = np.zeros((bars.count, leaves), dtype=bool)
        while True:
            amounts = program.best()
            split = ground.lift(amounts)
            beyond = np.where(met, 0.0, _envy_at(values, split) * ratio - ground.excess(amounts)[None, :])
            envious, envied = largest_both_ways(np.where(bars.pays, 0.0, beyond), WORST_PER_LEAF, SLACK)
            taste, other = largest_both_ways(np.where(above, 0.0, bars.highest(beyond)), WORST_PER_LEAF, SLACK)
            if not len(envious) and not len(taste):
                return split
            met[envious, envied] = above[taste, other] = True
            program.at_least(ground.envy(envious, envied))
            program.at_least(ground.envy_of_tastes(taste, other))
    except (LimitHit, SolverError):
        return None


class _Ground:
    """Amounts: what is held above the pins for each column of the grid, each leaf's shortfall, its excess, then bars.

    A leaf below its floor may bring less than its base. So that bars are not below 0 either, each is counted from
    the most that a leaf of its taste can be below: `sunk`, throughput for what it is owed, float [Q].
    """

    def __init__(self, values: GroupValues, pinned: FloatArray) -> None:
        self._grid, self._values, self._pinned = grid_of(values), values, pinned
        self._leaves = len(values.leaves)
        self._short = self._grid.count + np.arange(self._leaves)
        self._excess = self._short + self._leaves
        self._first = self._grid.count + 2 * self._leaves
        self.bars = shared_bars(values, self._grid.unit, values.several | (values.base > 0))
        self._sunk = np.zeros(self.bars.count)
        some = self.bars.leaves
        np.maximum.at(self._sunk, self.bars.taste[some], (values.base / values.entitled)[some])

    def lift(self, amounts: FloatArray) -> FloatArray:
        """The split, pins included, float [K, T]."""
        return np.asarray(self._pinned + self._grid.split(amounts[: self._grid.count]))

    def shortfall(self, amounts: FloatArray) -> float:
        """Throughput below floors, in sum."""
        return float((amounts[self._short] * self._grid.unit).sum())

    def excess(self, amounts: FloatArray) -> FloatArray:
        """GPUs that each leaf holds beyond what others accept, float [L]."""
        return np.asarray(amounts[self._excess] * self._grid.unit)

    def program(self, iterations: int, *, shortfall: float, excess: float) -> BundleProgram:
        """Capacity, raised to hold the pins, and floors, with prices of a shortfall and of an excess."""
        grid, unit = self._grid, self._grid.unit
        worth = [np.zeros(grid.count), -shortfall * unit, -excess * unit, np.zeros(self.bars.count)]
        program = BundleProgram(np.concatenate(worth), iterations)
        there = capacity_rows(grid)
        pins = np.concatenate([self._pinned.sum(axis=0), self._pinned.sum(axis=1) / grid.class_unit])
        room = np.maximum(there.upper - pins, 0.0)
        program.at_most(Rows(there.indptr, there.indices, there.data, there.lower, room))
        floors = floor_rows(grid)
        reached = self._values.brought(self._pinned) / unit
        program.at_least(_with(floors, self._short, np.ones(self._leaves), floors.lower - reached))
        return program

    def shortfall_row(self, least: float) -> Rows:
        """The shortfall in sum at most what it has to be."""
        indptr = np.array([0, self._leaves], dtype=np.int64)
        upper = np.array([least * (1 + _NOT_LESS) + _NOT_LESS])
        return Rows(indptr, self._short, self._grid.unit, -np.full(1, INFINITY), upper)

    def links(self) -> Rows:
        """What each leaf must bring, pins included, for its bar."""
        values, some = self._values, self.bars.leaves
        rows = self.bars.links(self._grid, self._first)
        lower = values.entitled[some] * self._sunk[self.bars.taste[some]] + values.brought(self._pinned)[some]
        return replace(rows, lower=rows.lower - lower / self._grid.unit[some])

    def envy_of_tastes(self, taste: IntArray, envied: IntArray) -> Rows:
        """Bars over what is held above the pins, missed by the excess of the envied."""
        values, bars = self._values, self.bars
        rows = bars.rows(self._grid, self._first, taste, envied)
        held = (bars.slope[taste] * values.per_leaf(self._pinned)[envied]).sum(axis=1) / values.entitled[envied]
        missed = bars.scale[taste] * self._grid.unit[envied] / values.entitled[envied]
        return _with(rows, self._excess[envied], missed, bars.scale[taste] * (self._sunk[taste] + held))

    def envy(self, envious: IntArray, envied: IntArray) -> Rows:
        """Envy rows over amounts above the pins, missed by the excess of the envied."""
        values, unit = self._values, self._grid.unit
        ratio = values.entitled[envious] / values.entitled[envied]
        wished = ratio * (values.lever[envious] * values.per_leaf(self._pinned)[envied]).sum(axis=1)
        beyond = (wished - values.brought(self._pinned)[envious]) / unit[envious]
        rows = envy_rows(self._grid, envious, envied)
        return _with(rows, self._excess[envied], ratio * unit[envied] / unit[envious], rows.lower + beyond)


def _with(rows: Rows, columns: IntArray, data: FloatArray, lower: FloatArray) -> Rows:
    """Rows with one more entry each, at their ends, and other lower bounds."""
    ends = rows.indptr[1:]
    indptr = rows.indptr + np.arange(len(rows.indptr))
    return Rows(indptr, np.insert(rows.indices, ends, columns), np.insert(rows.data, ends, data), lower, rows.upper)
