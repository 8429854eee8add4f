"""Rule T4's nash: fair, nothing wasted, proven."""

from __future__ import annotations

import numpy as np
import pytest
from fairness.drawn_values import plain, values

from evenhand.fairness.fair_share import fair_share
from evenhand.fairness.group_value import GroupValues, value_of, values_of
from evenhand.fairness.nash import GAP, gap_of, nash
from evenhand.fairness.rows import capacity_rows, floor_rows, grid_of
from evenhand.fairness.swapped import envy_of
from evenhand.solvers.lp import INFINITY, LpStatus, Rows, solve_lp, stack

CAPS = ["none", "some", "tight"]
MATTER = 1e-5


def fits(v: GroupValues, x: np.ndarray) -> None:
    assert (x >= 0).all()
    assert (x.sum(axis=0) <= v.capacity + 1e-7).all()
    assert (x.sum(axis=1) <= v.cap + 1e-7).all()
    assert not x[v.weights <= 0].any()


def welfare(v: GroupValues, x: np.ndarray) -> float:
    some = v.floor > 0
    return float((v.entitled * np.log(np.maximum(value_of(v, x), 1e-300)))[some].sum() / v.entitled.sum())


def most_with_nobody_worse(v: GroupValues, x: np.ndarray) -> float:
    """Most throughput with every leaf at what it has: sum v if nobody can gain without another's loss."""
    grid = grid_of(v)
    kept = floor_rows(grid)
    rows = Rows(kept.indptr, kept.indices, kept.data, value_of(v, x) / grid.unit * (1 - 1e-9), kept.upper)
    n = grid.count
    found = solve_lp(grid.worth, stack(capacity_rows(grid), rows), np.zeros(n), np.full(n, INFINITY), maximize=True)
    assert found.status is LpStatus.OPTIMAL
    return found.objective


@pytest.mark.parametrize("seed", range(60))
def test_without_caps_no_envy_floors_and_nothing_wasted(seed):
    v = values(seed, 2 + seed % 25, 1 + seed % 5, caps="none", twins=seed % 4 == 0)
    x, best = nash(v)
    fits(v, x)
    assert best
    assert (value_of(v, x) >= v.floor - MATTER).all()
    assert envy_of(v, x).max(initial=0.0) <= MATTER
    assert most_with_nobody_worse(v, x) == pytest.approx(value_of(v, x).sum(), abs=MATTER)


@pytest.mark.parametrize("caps", ["some", "tight"])
@pytest.mark.parametrize("seed", range(40))
def test_with_caps_nothing_is_wasted_and_whoever_is_below_its_cap_has_its_floor(seed, caps):
    v = values(seed, 2 + seed % 25, 1 + seed % 5, caps=caps, twins=seed % 4 == 0)
    x, best = nash(v)
    fits(v, x)
    assert best
    below = x.sum(axis=1) < v.cap - 1e-6
    assert (value_of(v, x) >= v.floor - MATTER)[below].all()
    assert most_with_nobody_worse(v, x) == pytest.approx(value_of(v, x).sum(), abs=MATTER)


@pytest.mark.parametrize("caps", CAPS)
@pytest.mark.parametrize("seed", range(15))
def test_no_step_towards_any_other_division_raises_the_product(seed, caps):
    v = values(seed, 2 + seed % 9, 1 + seed % 4, caps=caps)
    x, _ = nash(v)
    rng = np.random.default_rng(seed)
    for _ in range(40):
        other = rng.uniform(0, 1, x.shape) * (v.weights > 0)
        other *= v.capacity / np.maximum(other.sum(axis=0), 1e-12)
        other *= np.minimum(1, v.cap / np.maximum(other.sum(axis=1), 1e-12))[:, None]
        for step in (1e-4, 1e-2, 0.3):
            assert welfare(v, x + step * (other - x)) <= welfare(v, x) + GAP


def test_the_gap_is_proven_by_prices_and_not_taken_on_trust():
    v = plain([[1.0, 2.0], [1.0, 4.0]], [3, 1], [1.0, 1.0])
    x, _ = nash(v)
    good = np.array([2 / 3.5, 2 / 3.5 * 2.5])
    for prices in (good, np.array([0.5, 1.0]), np.array([2.0, 0.1])):
        assert gap_of(v, x, prices, np.zeros(2)) >= -1e-12
        assert gap_of(v, fair_share(v), prices, np.zeros(2)) >= (welfare(v, x) - welfare(v, fair_share(v))) - 1e-9


def test_two_groups_by_hand():
    """B buys all of the fast type and A all of the slow one: each spends its half."""
    x, best = nash(plain([[1.0, 0.5], [1.0, 4.0]], [4, 4]))
    assert best
    assert x == pytest.approx(np.array([[4.0, 0.0], [0.0, 4.0]]), abs=1e-5)


def capped() -> GroupValues:
    """Issue's counter-example, in half GPUs: a cap is a whole number."""
    return values_of(
        np.arange(2), np.array([3.0, 5.0]), np.array([[1.0, 2.0], [1.0, 4.0]]), np.array([3, 10**6]), np.array([6, 2])
    )


def test_with_caps_a_floor_can_be_lost():
    """W = (1,2) with a cap of 1.5 and (1,4), m = (3,1), e = (1.5, 2.5): A has 1.5 where its slice brings 1.875."""
    v = capped()
    x, best = nash(v)
    assert best
    assert v.floor / 2 == pytest.approx([1.875, 4.375])
    assert x / 2 == pytest.approx(np.array([[1.5, 0.0], [1.5, 1.0]]), abs=1e-5)
    assert value_of(v, x) / 2 == pytest.approx([1.5, 5.5], abs=1e-5)


@pytest.mark.parametrize("caps", CAPS)
@pytest.mark.parametrize("seed", range(8))
def test_scale_and_order_change_nothing(seed, caps):
    v = values(seed, 9, 3, caps=caps)
    x, _ = nash(v)
    rng = np.random.default_rng(seed)
    factor = rng.uniform(0.01, 100, 9)
    scaled = values_of(v.leaves, v.entitled, v.weights * factor[:, None], v.cap, v.capacity)
    assert value_of(scaled, nash(scaled)[0]) / factor == pytest.approx(value_of(v, x), rel=1e-5)
    rows, kinds = rng.permutation(9), rng.permutation(3)
    mixed = values_of(v.leaves, v.entitled[rows], v.weights[rows][:, kinds], v.cap[rows], v.capacity[kinds])
    assert value_of(mixed, nash(mixed)[0]) == pytest.approx(value_of(v, x)[rows], rel=1e-5)


def test_a_group_is_as_good_as_its_parts():
    whole = plain([[1.0, 0.2], [0.5, 1.0]], [10, 10], [3.0, 2.0])
    parts = plain([[1.0, 0.2]] * 3 + [[0.5, 1.0]], [10, 10], [1.0, 1.0, 1.0, 2.0])
    x, y = nash(whole)[0], nash(parts)[0]
    assert y[:3].sum(axis=0) == pytest.approx(x[0], abs=1e-5)
    assert y[3] == pytest.approx(x[1], abs=1e-5)


def test_nothing_to_divide():
    for v in (plain([[1.0]], [0]), values(1, 0, 2), plain([[0.0, 0.0]], [3, 3])):
        x, best = nash(v)
        assert x.shape == v.weights.shape
        assert best
        assert x.sum() == 0


def test_who_can_use_nothing_changes_nothing():
    v = plain([[1.0, 0.3], [0.0, 0.0], [0.2, 1.0]], [5, 7], [2.0, 9.0, 3.0])
    one = plain([[1.0, 0.3], [0.2, 1.0]], [5, 7], [2.0, 3.0])
    assert value_of(v, nash(v)[0])[[0, 2]] == pytest.approx(value_of(one, nash(one)[0]), rel=1e-6)


def test_equal_input_gives_equal_bytes():
    v = values(11, 45, 3)
    assert nash(v)[0].tobytes() == nash(v)[0].tobytes()


def test_where_the_iterations_do_not_do_the_slices_are_served_and_not_called_best():
    v = values(5, 25, 3)
    x, best = nash(v, iterations=5)
    assert not best
    assert (x == fair_share(v)).all()


@pytest.mark.parametrize("least", [1e-16, 1e-11, 1e-8, 1e-5])
def test_next_to_nothing_beside_plenty(least):
    v = plain([[1.0, 0.3], [0.4, 1.0], [1.0, 0.9]], [30, 20], [least, 20.0, 3.0])
    x, best = nash(v)
    fits(v, x)
    assert best
    assert (value_of(v, x) >= v.floor - 1e-6).all()


@pytest.mark.parametrize("caps", CAPS)
@pytest.mark.parametrize("types", [1, 3, 5])
def test_hundreds_of_leaves(caps, types):
    v = values(2, 181, types, caps=caps)
    x, best = nash(v)
    fits(v, x)
    assert best
