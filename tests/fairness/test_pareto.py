"""Rule T6: how much more there is with nobody worse off, proven by prices."""

from __future__ import annotations

import numpy as np
import pytest
from fairness.drawn_values import plain, values
from fairness.test_nash import most_with_nobody_worse

from evenhand.fairness.envy_free import envy_free
from evenhand.fairness.equal_throughput import equal_throughput
from evenhand.fairness.fair_share import fair_share
from evenhand.fairness.group_value import value_of
from evenhand.fairness.max_min import max_min
from evenhand.fairness.max_throughput import max_throughput
from evenhand.fairness.nash import nash
from evenhand.fairness.pareto import gap_proven_by, pareto_gap

CAPS = ["none", "some", "tight"]


def gap(v, x):
    found = pareto_gap(v, x)
    assert found is not None
    return found.gap


@pytest.mark.parametrize("caps", CAPS)
@pytest.mark.parametrize("seed", range(20))
def test_the_prices_prove_what_a_plain_program_finds(seed, caps):
    v = values(seed, 2 + seed % 17, 1 + seed % 4, caps=caps)
    for x in (fair_share(v), envy_free(v)[0]):
        most = most_with_nobody_worse(v, x)
        assert gap(v, x) == pytest.approx(most / value_of(v, x).sum() - 1, abs=1e-6)


@pytest.mark.parametrize("caps", CAPS)
@pytest.mark.parametrize("seed", range(20))
def test_no_prices_prove_less_than_what_can_be_gained(seed, caps):
    v = values(seed, 2 + seed % 9, 1 + seed % 4, caps=caps)
    x = fair_share(v)
    value, rng = value_of(v, x), np.random.default_rng(seed)
    true = most_with_nobody_worse(v, x) / value.sum() - 1
    for _ in range(30):
        prices = rng.exponential(rng.choice([0.1, 1.0]), len(v.capacity))
        assert gap_proven_by(v, value, prices) >= true - 1e-6


@pytest.mark.parametrize("objective", [nash, max_min, equal_throughput, max_throughput])
@pytest.mark.parametrize("seed", range(10))
def test_objectives_that_raise_leave_nothing(objective, seed):
    v = values(seed, 3 + seed, 1 + seed % 4, caps=CAPS[seed % 3])
    assert gap(v, objective(v)[0]) <= 1e-6


def test_envy_freeness_has_a_price_in_the_published_counter_example():
    """The best envy-free total of 30.75 is dominated by a division that brings 32."""
    v = plain([[1, 8, 9], [1, 1, 4], [1, 6, 8]], [2, 2, 2])
    x, _ = envy_free(v)
    assert value_of(v, x).sum() == pytest.approx(30.75)
    assert gap(v, x) * 30.75 == pytest.approx(32 - 30.75)


@pytest.mark.parametrize("seed", range(30))
def test_two_groups_without_caps_waste_nothing_by_being_envy_free(seed):
    v = values(seed, 2, 1 + seed % 5, caps="none")
    assert gap(v, envy_free(v)[0]) <= 1e-6


def test_nothing_to_gain_where_there_is_nothing():
    for v in (plain([[1.0]], [0]), values(1, 0, 2), plain([[0.0, 0.0]], [3, 3])):
        found = pareto_gap(v, fair_share(v))
        assert found is not None
        assert found.gap == 0.0


def test_where_the_iterations_do_not_do_nothing_is_claimed():
    assert pareto_gap(values(2, 150, 3), fair_share(values(2, 150, 3)), iterations=5) is None
