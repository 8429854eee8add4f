"""What pinned jobs force on any division, for the certificate."""

from __future__ import annotations

import numpy as np
import pytest
from fairness.drawn_values import plain, values

from evenhand.fairness import forced as room
from evenhand.fairness.envy_free import envy_free
from evenhand.fairness.forced import least_slack
from evenhand.fairness.group_value import GroupValues
from evenhand.fairness.rows import capacity_rows, envy_rows, floor_rows, grid_of
from evenhand.solvers.lp import INFINITY, LpStatus, Rows, solve_lp, stack


def soft(rows: Rows, first: int) -> Rows:
    """Rows a x + slack >= lower, the slacks in columns from `first` on."""
    ends = rows.indptr[1:]
    more = first + np.arange(rows.count)
    indptr = rows.indptr + np.arange(rows.count + 1)
    return Rows(indptr, np.insert(rows.indices, ends, more), np.insert(rows.data, ends, 1.0), rows.lower, rows.upper)


def by_all_rows(v: GroupValues, pinned: np.ndarray) -> float:
    """Least summed envy at the least shortfall, all rows at once, in two plain solves."""
    grid, leaves = grid_of(v), len(v.cap)
    pairs = np.nonzero(~np.eye(leaves, dtype=bool))
    there = capacity_rows(grid)
    raised = np.maximum(there.upper, np.concatenate([pinned.sum(axis=0), pinned.sum(axis=1) / grid.unit]))
    there = Rows(there.indptr, there.indices, there.data, there.lower, raised)
    floors, envy = soft(floor_rows(grid), grid.count), soft(envy_rows(grid, *pairs), grid.count + leaves)
    rows = stack(there, floors, envy)
    count = grid.count + leaves + len(pairs[0])
    low = np.concatenate([grid.gather(pinned), np.zeros(count - grid.count)])
    short = np.concatenate([np.zeros(grid.count), grid.unit, np.zeros(len(pairs[0]))])
    first = solve_lp(short, rows, low, np.full(count, INFINITY), maximize=False)
    total = Rows(
        np.array([0, leaves]), grid.count + np.arange(leaves), grid.unit, -np.full(1, INFINITY),
        np.array([first.objective + 1e-9]),
    )  # fmt: skip
    cost = np.concatenate([np.zeros(grid.count + leaves), grid.unit[pairs[0]]])
    found = solve_lp(cost, stack(rows, total), low, np.full(count, INFINITY), maximize=False)
    assert found.status is LpStatus.OPTIMAL
    return found.objective


@pytest.mark.parametrize("seed", range(16))
def test_least_envy_that_pins_leave(seed):
    v = values(seed, 4 + seed % 12, 1 + seed % 3, caps=("none", "some", "tight")[seed % 3])
    rng = np.random.default_rng(seed)
    pinned = np.floor(v.slices * rng.uniform(0, 2.5, v.slices.shape)) * (v.weights > 0)
    pinned *= (rng.random(len(v.cap)) < 0.4)[:, None] & (pinned.sum(axis=1) <= v.cap)[:, None]
    slack = least_slack(v, envy_free(v)[0], pinned)
    assert slack.sum() == pytest.approx(by_all_rows(v, pinned), abs=1e-4, rel=1e-5)
    assert not slack.diagonal().any()


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
    assert room.WORST_PER_LEAF > 0
