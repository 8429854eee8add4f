"""What pinned jobs force on any division, for the certificate."""

from __future__ import annotations

import numpy as np
import pytest
from fairness.drawn_values import plain, values
from fairness.test_bars import few_tastes

from evenhand.fairness.envy_free import envy_free
from evenhand.fairness.forced import least_slack
from evenhand.fairness.group_value import GroupValues
from evenhand.fairness.rows import capacity_rows, envy_rows, floor_rows, grid_of
from evenhand.solvers.lp import INFINITY, LpStatus, Rows, solve_lp, stack


def with_slack(rows: Rows, columns: np.ndarray, data: np.ndarray) -> Rows:
    """Rows a x + data slack >= lower, each with its slack column."""
    ends = rows.indptr[1:]
    indptr = rows.indptr + np.arange(rows.count + 1)
    return Rows(
        indptr, np.insert(rows.indices, ends, columns), np.insert(rows.data, ends, data), rows.lower, rows.upper
    )


def least_excess(v: GroupValues, pinned: np.ndarray) -> float:
    """Least total excess at the least shortfall, all rows at once, in two plain solves over whole splits."""
    grid, leaves = grid_of(v), len(v.leaves)
    n, every = grid.count, np.arange(leaves)
    i, other = np.nonzero(~np.eye(leaves, dtype=bool))
    there = capacity_rows(grid)
    pins = np.concatenate([pinned.sum(axis=0), pinned.sum(axis=1) / grid.class_unit])
    there = Rows(there.indptr, there.indices, there.data, there.lower, np.maximum(there.upper, pins))
    floors = with_slack(floor_rows(grid), n + every, np.ones(leaves))
    scale = v.entitled[i] / v.entitled[other] * grid.unit[other] / grid.unit[i]
    envy = with_slack(envy_rows(grid, i, other), n + leaves + other, scale)
    rows, none = stack(there, floors, envy), np.full(1, -INFINITY)
    low = np.concatenate([grid.gather(pinned), np.zeros(2 * leaves)])
    high = np.full(n + 2 * leaves, INFINITY)
    short = np.concatenate([np.zeros(n), grid.unit, np.zeros(leaves)])
    first = solve_lp(short, rows, low, high, maximize=False)
    total = Rows(np.array([0, leaves]), n + every, grid.unit, none, np.array([first.objective + 1e-9]))
    cost = np.concatenate([np.zeros(n + leaves), grid.unit])
    found = solve_lp(cost, stack(rows, total), low, high, maximize=False)
    assert found.status is LpStatus.OPTIMAL
    return found.objective


def excess_of(v: GroupValues, slack: np.ndarray) -> float:
    """Most that anybody envies each leaf, in GPUs of that leaf, in sum."""
    return float((slack * v.entitled[None, :] / v.entitled[:, None]).max(axis=0).sum())


@pytest.mark.parametrize("seed", range(16))
def test_least_excess_that_pins_leave(seed):
    v = values(seed, 4 + seed % 12, 1 + seed % 3, caps=("none", "some", "tight")[seed % 3])
    rng = np.random.default_rng(seed)
    pinned = np.floor(v.slices * rng.uniform(0, 2.5, v.slices.shape)) * (v.weights > 0)
    pinned *= (rng.random(len(v.cap)) < 0.4)[:, None] & (pinned.sum(axis=1) <= v.cap)[:, None]
    slack = least_slack(v, envy_free(v)[0], pinned)
    assert excess_of(v, slack) == pytest.approx(least_excess(v, pinned), abs=1e-4, rel=1e-5)
    assert not slack.diagonal().any()


@pytest.mark.parametrize("seed", range(8))
def test_the_least_excess_is_the_same_where_leaves_share_bars(seed):
    v = few_tastes(seed, 34, 2 + seed % 4, 1 + seed % 3)
    rng = np.random.default_rng(seed)
    pinned = np.floor(v.slices * rng.uniform(0, 6, v.slices.shape))
    pinned *= (rng.random(len(v.cap)) < 0.4)[:, None] & (pinned.sum(axis=1) <= v.cap)[:, None]
    slack = least_slack(v, envy_free(v)[0], pinned)
    assert excess_of(v, slack) == pytest.approx(least_excess(v, pinned), abs=1e-4, rel=1e-5)
    assert slack.any()


def test_with_too_few_iterations_nothing_is_called_forced():
    v = few_tastes(1, 34, 3, 3)
    pinned = np.floor(v.slices * 4) * (np.arange(34) < 9)[:, None]
    assert least_slack(v, v.slices, pinned).any()
    assert not least_slack(v, v.slices, pinned, 4 * len(v.cap)).any()


def test_no_pins_force_nothing():
    v = values(2, 9, 3)
    assert not least_slack(v, envy_free(v)[0], np.zeros(v.slices.shape)).any()
    assert not least_slack(v, envy_free(v)[0], envy_free(v)[0]).any()


def test_who_holds_more_than_its_share_is_envied():
    v = plain([[1.0], [1.0], [1.0]], [9])
    slack = least_slack(v, envy_free(v)[0], np.array([[5.0], [0.0], [0.0]]))
    assert slack[1:, 0] == pytest.approx([3.0, 3.0])
    assert slack.sum() == pytest.approx(6.0)


def test_pins_above_capacity_raise_it():
    v = plain([[1.0], [1.0]], [4])
    slack = least_slack(v, envy_free(v)[0], np.array([[6.0], [0.0]]))
    assert slack[1, 0] == pytest.approx(6.0)


def test_where_the_iterations_do_not_do_nothing_is_called_forced():
    v = plain([[1.0], [1.0]], [4])
    assert not least_slack(v, envy_free(v)[0], np.array([[3.0], [0.0]]), iterations=0).any()
