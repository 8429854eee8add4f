"""Rule T4's envy_free: fair to 1e-7, best, one answer."""

from __future__ import annotations

import numpy as np
import pytest
from fairness.drawn_values import plain, values

from evenhand.fairness import envy_free as room
from evenhand.fairness.envy_free import envy_free
from evenhand.fairness.fair_share import fair_share
from evenhand.fairness.group_value import GroupValues, value_of, values_of
from evenhand.fairness.max_min import max_min_throughput
from evenhand.fairness.max_throughput import max_throughput
from evenhand.fairness.rows import capacity_rows, envy_rows, floor_rows, grid_of
from evenhand.fairness.swapped import envy_of
from evenhand.solvers.lp import INFINITY, LpStatus, Rows, solve_lp, stack

CAPS = ["none", "some", "tight"]


def holds(v: GroupValues, x: np.ndarray) -> None:
    """Capacity, caps, nothing useless, floors and envy."""
    assert (x >= 0).all()
    assert (x.sum(axis=0) <= v.capacity + 1e-7).all()
    assert (x.sum(axis=1) <= v.cap + 1e-7).all()
    assert not x[v.weights <= 0].any()
    assert (value_of(v, x) >= v.floor - 1e-7).all()
    assert envy_of(v, x).max(initial=0.0) <= 1e-7


def by_all_rows(v: GroupValues) -> float:
    """The program with the lines at the slices, every row from the start, solved as it is written."""
    grid = grid_of(v)
    pairs = np.nonzero(~np.eye(len(v.cap), dtype=bool))
    rows = stack(capacity_rows(grid), floor_rows(grid), envy_rows(grid, *pairs))
    found = solve_lp(grid.worth, rows, np.zeros(grid.count), np.full(grid.count, INFINITY), maximize=True)
    assert found.status is LpStatus.OPTIMAL
    return found.objective


@pytest.mark.parametrize("caps", CAPS)
@pytest.mark.parametrize("seed", range(25))
def test_fair_and_best(seed, caps, monkeypatch):
    v = values(seed, 3 + seed % 18, 1 + seed % 5, caps=caps, twins=seed % 4 == 0)
    repeated, best = envy_free(v)
    holds(v, repeated)
    assert best
    monkeypatch.setattr(room, "MOST_REPEATS", 0)
    x, best = envy_free(v)
    holds(v, x)
    assert best
    assert value_of(v, repeated).sum() >= value_of(v, x).sum() * (1 - 1e-12)
    assert value_of(v, x).sum() == pytest.approx(by_all_rows(v), rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("caps", CAPS)
def test_rows_met_lazily_are_all_met(caps, monkeypatch):
    monkeypatch.setattr(room, "MOST_REPEATS", 0)
    v = values(7, 70, 3, caps=caps)
    x, best = envy_free(v)
    holds(v, x)
    assert best
    assert value_of(v, x).sum() == pytest.approx(by_all_rows(v), rel=1e-7)


def test_best_envy_free_total_of_the_published_counter_example():
    v = plain([[1, 8, 9], [1, 1, 4], [1, 6, 8]], [2, 2, 2])
    x, _ = envy_free(v)
    holds(v, x)
    assert value_of(v, x).sum() == pytest.approx(30.75)


@pytest.mark.parametrize("caps", CAPS)
@pytest.mark.parametrize("seed", range(12))
def test_slices_are_always_fair(seed, caps):
    v = values(seed, 12, 4, caps=caps)
    holds(v, fair_share(v))
    assert value_of(v, fair_share(v)) == pytest.approx(v.floor)


@pytest.mark.parametrize("seed", range(20))
def test_one_type_in_closed_form_is_the_program(seed):
    v = values(seed, 2 + seed % 9, 1, caps=CAPS[seed % 3])
    x, _ = envy_free(v)
    holds(v, x)
    assert value_of(v, x).sum() == pytest.approx(by_all_rows(v), rel=1e-8, abs=1e-8)


def test_equal_tastes_get_their_slices():
    v = plain([[1.0, 0.5]] * 4, [8, 12], [1.0, 2.0, 3.0, 4.0])
    x, _ = envy_free(v)
    assert x == pytest.approx(v.slices)


def least_distance(v: GroupValues) -> float:
    """Least summed distance from the slices over all optima, to about 1 %: by two plain programs."""
    grid, best = grid_of(v), by_all_rows(v)
    n = grid.count
    pairs = np.nonzero(~np.eye(len(v.cap), dtype=bool))
    rows = stack(capacity_rows(grid), floor_rows(grid), envy_rows(grid, *pairs))
    every, near = np.arange(n), grid.gather(fair_share(v))
    most = Rows(np.array([0, n]), every, grid.worth, np.array([best - 1e-7]), np.full(1, INFINITY))
    two = np.arange(0, 2 * n + 1, 2)
    beside = np.column_stack([every, n + every]).reshape(-1)
    over = Rows(two, beside, np.tile([1.0, -1.0], n), np.full(n, -INFINITY), near)
    under = Rows(two, beside, np.tile([1.0, 1.0], n), near, np.full(n, INFINITY))
    cost = np.concatenate([np.zeros(n), np.ones(n)])
    free = np.full(2 * n, INFINITY)
    found = solve_lp(cost, stack(rows, most, over, under), np.zeros(2 * n), free, maximize=False)
    assert found.status is LpStatus.OPTIMAL
    return found.objective


@pytest.mark.parametrize("seed", range(30))
def test_among_optima_the_nearest_to_the_slices_is_chosen(seed, monkeypatch):
    monkeypatch.setattr(room, "MOST_REPEATS", 0)
    rng = np.random.default_rng(seed)
    leaves, types = int(rng.integers(2, 9)), int(rng.integers(2, 4))
    weights = rng.choice([1.0, 0.5, 0.25], (leaves, types))
    entitled = rng.choice([1.0, 2.0, 5.0], leaves)
    cap = np.ceil(entitled * rng.choice([1.0, 3.0, 1e4], leaves)).astype(np.int64)
    v = values_of(np.arange(leaves), entitled, weights, cap, rng.integers(1, 12, types))
    x, best = envy_free(v)
    holds(v, x)
    assert best
    assert value_of(v, x).sum() == pytest.approx(by_all_rows(v), rel=1e-8)
    assert np.abs(x - fair_share(v)).sum() <= least_distance(v) * (1 + 1 / 64) + 1e-5


def test_twins_get_the_same_for_what_they_are_owed():
    v = values(3, 40, 3, twins=True)
    x, _ = envy_free(v)
    holds(v, x)
    each = x / v.entitled[:, None]
    for i in range(40):
        for k in range(i):
            if (v.weights[i] == v.weights[k]).all() and v.cap[i] == v.cap[k]:
                assert each[i] == pytest.approx(each[k], abs=1e-9)


def test_equal_input_gives_equal_bytes():
    v = values(11, 45, 3)
    assert envy_free(v)[0].tobytes() == envy_free(v)[0].tobytes()


def test_where_the_iterations_do_not_do_the_slices_are_served_and_not_called_best():
    v = values(5, 25, 3)
    x, best = envy_free(v, iterations=5)
    holds(v, x)
    assert not best
    assert (x == fair_share(v)).all()


def test_tiny_beside_huge_entitlements():
    v = plain([[1.0, 0.3], [0.4, 1.0], [1.0, 0.9]], [16_000, 8_000], [1e-4, 20_000.0, 3.0])
    x, _ = envy_free(v)
    holds(v, x)


def test_nothing_to_divide():
    for v in (plain([[1.0]], [0]), values(1, 0, 2), plain([[0.0, 0.0]], [3, 3])):
        assert envy_free(v)[0].sum() == 0
        assert max_throughput(v)[0].sum() == 0
        assert max_min_throughput(v) == 0


@pytest.mark.parametrize("seed", range(15))
def test_figures_to_compare_with_stand_in_order(seed):
    v = values(seed, 15, 3, caps=CAPS[seed % 3])
    most, best = max_throughput(v)
    assert best
    assert (most.sum(axis=0) <= v.capacity + 1e-7).all()
    assert (most.sum(axis=1) <= v.cap + 1e-7).all()
    x, _ = envy_free(v)
    top, least = value_of(v, most).sum(), v.floor.sum()
    level = max_min_throughput(v)
    assert level is not None
    for middle in (value_of(v, x).sum(), level):
        assert least - 1e-6 <= middle <= top + 1e-6


def test_hundreds_of_leaves_meet_few_of_their_rows(monkeypatch):
    met = []
    plainly = room.line_rows
    monkeypatch.setattr(room, "line_rows", lambda grid, i, k, *line: met.append(len(i)) or plainly(grid, i, k, *line))
    v = values(2, 150, 3)
    x, best = envy_free(v)
    holds(v, x)
    assert best
    assert sum(met) < 150 * 149 / 5


def test_next_to_nothing_beside_plenty():
    for least in (1e-16, 1e-11, 1e-8, 1e-5):
        v = plain([[1.0, 0.3], [0.4, 1.0], [1.0, 0.9]], [30, 20], [least, 20.0, 3.0])
        holds(v, envy_free(v)[0])
