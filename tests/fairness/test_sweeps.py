"""What the objectives promise, on drawn matrices and on every measured one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from fairness.matrices import Matrix, drawn, measured

from evenhand.fairness.envy_free import envy_free
from evenhand.fairness.equal_throughput import equal_throughput
from evenhand.fairness.fair_share import fair_share
from evenhand.fairness.group_value import FloatArray, GroupValues, value_of
from evenhand.fairness.max_min import max_min
from evenhand.fairness.max_throughput import max_throughput
from evenhand.fairness.nash import nash
from evenhand.fairness.pareto import pareto_gap
from evenhand.fairness.swapped import value_of_others

EXACT, MATTER = 1e-6, 1e-5
"""Slack of what linear programs answer, and of `nash`, whose product is proven to 1e-7."""
FEW, MANY = range(30), range(1000)
Objective = Callable[[GroupValues], tuple[FloatArray, bool]]


def envy(v: GroupValues, x: FloatArray) -> float:
    """Largest envy of any pair, as a share of the envier's floor."""
    gain = (value_of_others(v, x) - value_of(v, x)[:, None]) / np.where(v.floor > 0, v.floor, np.inf)[:, None]
    np.fill_diagonal(gain, 0.0)
    return float(gain.max(initial=0.0))


def incentive(v: GroupValues, x: FloatArray) -> float:
    """Least value over floor."""
    some = v.floor > 0
    return float((value_of(v, x)[some] / v.floor[some]).min(initial=np.inf))


def waste(v: GroupValues, x: FloatArray) -> float:
    found = pareto_gap(v, x)
    assert found is not None
    return found.gap


def solved(objective: Objective, matrix: Matrix) -> tuple[GroupValues, FloatArray]:
    v = matrix.values
    x, proven = objective(v)
    assert proven
    assert (x >= 0).all()
    assert (x.sum(axis=0) <= v.capacity * (1 + 1e-9) + 1e-9).all()
    return v, x


def cases(seeds: range) -> Iterator[Matrix]:
    yield from (drawn(seed) for seed in seeds)
    yield from (matrix for _, matrix in measured(100 if seeds is MANY else 10))


def envy_free_keeps_both(seeds: range) -> None:
    for matrix in cases(seeds):
        v, x = solved(envy_free, matrix)
        assert envy(v, x) <= EXACT
        assert incentive(v, x) >= 1 - EXACT


def nash_keeps_all_three(seeds: range) -> None:
    for matrix in cases(seeds):
        v, x = solved(nash, matrix)
        assert envy(v, x) <= MATTER
        assert incentive(v, x) >= 1 - MATTER
        assert waste(v, x) <= EXACT


def test_envy_free_leaves_no_envy_and_no_floor_missed():
    envy_free_keeps_both(FEW)


@pytest.mark.heavy
def test_envy_free_leaves_no_envy_and_no_floor_missed_on_a_thousand_matrices():
    envy_free_keeps_both(MANY)


def test_nash_leaves_no_envy_no_floor_missed_and_no_waste():
    nash_keeps_all_three(range(12))


@pytest.mark.heavy
def test_nash_leaves_no_envy_no_floor_missed_and_no_waste_on_a_thousand_matrices():
    nash_keeps_all_three(MANY)


def capped_keep_both(seeds: range) -> None:
    for seed, matrix in enumerate(cases(seeds)):
        v, x = solved(envy_free, matrix.capped(seed))
        assert envy(v, x) <= EXACT
        assert incentive(v, x) >= 1 - EXACT
        assert (x.sum(axis=1) <= matrix.capped(seed).cap + EXACT).all()


def test_with_finite_caps_envy_free_still_leaves_no_envy_and_no_floor_missed():
    capped_keep_both(FEW)


@pytest.mark.heavy
def test_with_finite_caps_envy_free_still_leaves_no_envy_and_no_floor_missed_on_a_thousand_matrices():
    capped_keep_both(MANY)


def test_max_min_keeps_floors_and_wastes_nothing():
    for seed, matrix in enumerate(cases(range(15))):
        v, x = solved(max_min, matrix if seed % 2 else matrix.capped(seed))
        assert incentive(v, x) >= 1 - EXACT
        assert waste(v, x) <= EXACT


def test_equal_throughput_and_max_throughput_waste_nothing():
    for matrix in cases(range(12)):
        for objective in (equal_throughput, max_throughput):
            assert waste(*solved(objective, matrix)) <= EXACT


def test_fair_share_gives_slices_and_wastes_what_they_do_not_use():
    for seed, matrix in enumerate(cases(FEW)):
        v = matrix.capped(seed).values
        x = fair_share(v)
        assert value_of(v, x) == pytest.approx(v.floor)
        assert envy(v, x) <= EXACT


ALL: list[Objective] = [
    envy_free, nash, equal_throughput, max_min, max_throughput, lambda v: (fair_share(v), True),
]  # fmt: skip
NAMES = ["envy_free", "nash", "equal_throughput", "max_min", "max_throughput", "fair_share"]


@pytest.mark.parametrize("objective", ALL, ids=NAMES)
def test_groups_and_types_in_another_order_get_the_same_in_that_order(objective):
    for seed in range(12):
        matrix = drawn(seed) if seed % 2 else drawn(seed).capped(seed)
        rng = np.random.default_rng(seed)
        groups, types = rng.permutation(len(matrix.owed)), rng.permutation(len(matrix.gpus))
        one, other = matrix.values, matrix.mixed(groups, types).values
        x, y = objective(one)[0], objective(other)[0]
        if objective in (envy_free, max_throughput):  # of several best divisions another may be the nearest
            assert value_of(other, y).sum() == pytest.approx(value_of(one, x).sum(), rel=1e-6)
        else:
            assert value_of(other, y) == pytest.approx(value_of(one, x)[groups], rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("objective", ALL, ids=NAMES)
def test_a_group_with_three_shares_gets_what_three_replicas_get(objective):
    for seed in range(12):
        matrix = drawn(seed)
        owed, times = matrix.owed.copy(), np.ones(len(matrix.owed), dtype=int)
        owed[0], times[0] = 3 * owed[-1], 3
        parts = np.repeat(np.where(np.arange(len(owed)) == 0, owed / 3, owed), times)
        whole = replace(matrix, owed=owed)
        split = Matrix(np.repeat(matrix.speedup, times, axis=0), parts, np.repeat(matrix.cap, times), matrix.gpus)
        x, y = value_of(whole.values, objective(whole.values)[0]), value_of(split.values, objective(split.values)[0])
        joined = np.concatenate([[y[:3].sum()], y[3:]])
        if objective in (envy_free, max_throughput):
            assert joined.sum() == pytest.approx(x.sum(), rel=1e-6)
        else:
            assert joined == pytest.approx(x, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("objective", ALL, ids=NAMES)
def test_who_can_use_nothing_takes_nothing_from_the_others(objective):
    for seed in range(12):
        matrix = drawn(seed)
        idle = Matrix(
            np.vstack([matrix.speedup, np.zeros((1, len(matrix.gpus)))]),
            np.append(matrix.owed, 1e-9),
            np.append(matrix.cap, 5),
            matrix.gpus,
        )
        x, y = value_of(matrix.values, objective(matrix.values)[0]), value_of(idle.values, objective(idle.values)[0])
        assert y[:-1] == pytest.approx(x, rel=1e-4, abs=1e-6)
        assert y[-1] == 0.0


def inflation_does_not_pay(seeds: range) -> None:
    """Type 0 is everybody's slowest and counts 1; one group multiplies what it says of the others."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        groups, types = int(rng.integers(2, 13)), int(rng.integers(2, 6))
        truth = np.column_stack([np.ones(groups), 1 + rng.exponential(3, (groups, types - 1))])
        told = truth.copy()
        told[0, 1:] *= 1 + rng.exponential(1, types - 1)
        owed, gpus = rng.lognormal(1, 1, groups), rng.integers(1, 40, types)
        fair, skewed = (Matrix(w, owed, np.full(groups, 10**6), gpus) for w in (truth, told))
        honest = value_of(fair.values, equal_throughput(fair.values)[0])[0]
        assert float((truth[0] * equal_throughput(skewed.values)[0][0]).sum()) <= honest * (1 + EXACT)


def test_equal_throughput_rewards_no_inflation_on_a_common_slowest_type():
    inflation_does_not_pay(range(60))


@pytest.mark.heavy
def test_equal_throughput_rewards_no_inflation_on_a_common_slowest_type_in_thousands_of_draws():
    inflation_does_not_pay(range(3000))
