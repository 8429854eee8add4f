"""Rule T4's equal_throughput: level where nobody is held back, and what a misreport gains."""

from __future__ import annotations

import numpy as np
import pytest
from fairness.drawn_values import plain, values
from fairness.test_max_min_objective import by_plain_programs
from fairness.test_nash import fits, most_with_nobody_worse

from evenhand.fairness.equal_throughput import equal_throughput
from evenhand.fairness.group_value import value_of, values_of

CAPS = ["none", "some", "tight"]


@pytest.mark.parametrize("seed", range(40))
def test_all_are_level_where_all_can_use_all_types(seed):
    rng = np.random.default_rng(seed)
    leaves, types = int(rng.integers(2, 25)), int(rng.integers(1, 5))
    v = plain(
        rng.uniform(0.1, 1, (leaves, types)).tolist(),
        rng.integers(1, 40, types).tolist(),
        rng.lognormal(1, 1, leaves).tolist(),
    )
    x, best = equal_throughput(v)
    fits(v, x)
    assert best
    level = value_of(v, x) / v.entitled
    assert level == pytest.approx(np.full(leaves, level[0]), rel=1e-6)
    assert most_with_nobody_worse(v, x) == pytest.approx(value_of(v, x).sum(), abs=1e-5)


@pytest.mark.parametrize("caps", CAPS)
@pytest.mark.parametrize("seed", range(12))
def test_levels_are_those_of_plain_programs(seed, caps):
    v = values(seed, 2 + seed % 7, 1 + seed % 4, caps=caps)
    x, best = equal_throughput(v)
    fits(v, x)
    assert best
    assert value_of(v, x) == pytest.approx(by_plain_programs(v, v.entitled), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("caps", CAPS)
@pytest.mark.parametrize("seed", range(20))
def test_who_is_below_its_cap_is_level_with_whoever_holds_what_it_could_use(seed, caps):
    v = values(seed, 2 + seed % 20, 1 + seed % 5, caps=caps, twins=seed % 4 == 0)
    x, _ = equal_throughput(v)
    fits(v, x)
    level = value_of(v, x) / v.entitled
    for i in np.flatnonzero(x.sum(axis=1) < v.cap - 1e-6):
        for kind in np.flatnonzero(v.weights[i] > 0):
            assert x[:, kind].sum() == pytest.approx(v.capacity[kind], abs=1e-6)
            assert (level[x[:, kind] > 1e-6] <= level[i] * (1 + 1e-6)).all()


def test_two_with_one_scarce_type_do_not_hold_the_others_back():
    v = plain([[1.0, 0.0], [1.0, 0.0], [1.0, 1.0]], [2, 60])
    x, _ = equal_throughput(v)
    assert value_of(v, x) == pytest.approx([1.0, 1.0, 60.0])


def test_a_floor_can_be_lost():
    v = plain([[1.0, 1.0], [1.0, 10.0]], [5, 5])
    assert (value_of(v, equal_throughput(v)[0]) < v.floor - 1).any()


@pytest.mark.parametrize("seed", range(60))
def test_declaring_too_much_on_a_common_slowest_type_does_not_pay(seed):
    """Unit slowest: type 0 counts 1 for all; one leaf multiplies what it says of the others."""
    rng = np.random.default_rng(seed)
    leaves, types = int(rng.integers(2, 12)), int(rng.integers(2, 5))
    truth = np.column_stack([np.ones(leaves), rng.uniform(1, 10, (leaves, types - 1))])
    owed, capacity = rng.lognormal(1, 1, leaves), rng.integers(1, 30, types).tolist()
    told = truth.copy()
    told[0, 1:] *= rng.uniform(1, 3, types - 1)
    fair, skewed = (plain(w.tolist(), capacity, owed.tolist()) for w in (truth, told))
    honest = value_of(fair, equal_throughput(fair)[0])[0]
    declared = float((truth[0] * equal_throughput(skewed)[0][0]).sum())
    assert declared <= honest * (1 + 1e-6)


def test_declaring_too_little_pays():
    """W = (1,2), (1,4), m = (1,1): the second has 2 if it says 4, and 2.4 if it says 3."""
    fair, skewed = plain([[1, 2], [1, 4]], [1, 1]), plain([[1, 2], [1, 3]], [1, 1])
    assert value_of(fair, equal_throughput(fair)[0]) == pytest.approx([2.0, 2.0])
    x, _ = equal_throughput(skewed)
    assert value_of(skewed, x) == pytest.approx([1.8, 1.8])
    assert float((np.array([1, 4]) * x[1]).sum()) == pytest.approx(2.4)


@pytest.mark.parametrize("seed", range(8))
def test_order_changes_nothing(seed):
    v = values(seed, 9, 3, caps=CAPS[seed % 3])
    rng = np.random.default_rng(seed)
    rows, kinds = rng.permutation(9), rng.permutation(3)
    mixed = values_of(v.leaves, v.entitled[rows], v.weights[rows][:, kinds], v.cap[rows], v.capacity[kinds])
    found = value_of(v, equal_throughput(v)[0])
    assert value_of(mixed, equal_throughput(mixed)[0]) == pytest.approx(found[rows], rel=1e-6, abs=1e-7)


def test_nothing_to_divide():
    for v in (plain([[1.0]], [0]), values(1, 0, 2), plain([[0.0, 0.0]], [3, 3])):
        x, best = equal_throughput(v)
        assert x.shape == v.weights.shape
        assert best
        assert x.sum() == 0
