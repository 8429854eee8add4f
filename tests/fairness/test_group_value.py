"""Rules T1 to T3 by hand and by law."""

from __future__ import annotations

import numpy as np
import pytest
from fairness.drawn_values import values

from evenhand.fairness.group_value import used_of, value_of, values_of
from evenhand.fairness.swapped import envy_of


def one(weights: list[float], cap: int, capacity: list[int], entitled: float = 1.0, others: float = 1.0):
    """A leaf beside another that is owed `others`."""
    table = np.array([weights, weights])
    return values_of(np.arange(2), np.array([entitled, others]), table, np.array([cap, 10**6]), np.array(capacity))


def test_best_types_first_up_to_the_cap():
    used = used_of(np.array([[0.5, 1.0, 0.0]]), np.array([5]), np.array([[4.0, 3.0, 9.0]]))
    assert used.tolist() == [[2.0, 3.0, 0.0]]


def test_floor_and_price_of_a_cap_that_binds():
    v = one([0.5, 1.0], 6, [8, 8])
    assert v.slices[0].tolist() == [4.0, 4.0]
    assert v.floor[0] == 5.0
    assert v.pi[0] == 0.5


def test_a_slice_that_just_fits_the_cap_has_no_price():
    assert one([0.5, 1.0], 8, [8, 8]).pi[0] == 0.0
    thirds = values_of(np.arange(3), np.full(3, 10 / 3), np.ones((3, 1)), np.array([3, 4, 4]), np.array([9]))
    assert thirds.pi.tolist() == [0.0, 0.0, 0.0]


def test_a_slice_whose_best_type_fills_the_cap_has_its_price():
    assert one([0.5, 1.0], 4, [8, 8]).pi[0] == 1.0


@pytest.mark.parametrize("seed", range(20))
def test_the_line_lies_above_the_value_and_meets_it_at_the_slice(seed):
    v = values(seed, 8, 4, caps=("none", "some", "tight")[seed % 3])
    rng = np.random.default_rng(seed)
    line = lambda y: v.pi * v.cap + (v.lever * y).sum(axis=1)  # noqa: E731
    assert line(v.slices) == pytest.approx(v.floor)
    for _ in range(20):
        y = v.slices * rng.uniform(0, 4, v.slices.shape)
        assert (line(y) >= value_of(v, y) - 1e-9).all()


def test_envy_scales_the_bundle_not_the_value():
    v = values_of(np.arange(2), np.array([1.0, 3.0]), np.ones((2, 1)), np.array([10**6] * 2), np.array([8]))
    assert envy_of(v, np.array([[1.0], [6.0]])).tolist() == [[0.0, 1.0], [0.0, 0.0]]
