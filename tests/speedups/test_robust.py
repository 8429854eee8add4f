"""Small-sample statistics against tables and plain cases."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.speedups.robust import locations, medians, spread, student


@pytest.mark.parametrize(
    ("confidence", "freedom", "table"),
    [
        (0.95, 2, 4.3027), (0.98, 2, 6.9646), (0.95, 5, 2.5706), (0.98, 5, 3.3649), (0.99, 3, 5.8409),
        (0.95, 10, 2.2281), (0.99, 10, 3.1693), (0.98, 30, 2.4573), (0.95, 1e9, 1.9600), (0.5, 4, 0.7407),
    ],
)  # fmt: skip
def test_quantiles_of_students_t_are_those_of_the_tables(confidence, freedom, table):
    assert student(confidence, freedom) == pytest.approx(table, rel=6e-4)


def test_medians_are_taken_by_owner():
    found = medians(np.array([5.0, 1, 3, 10, 20]), np.array([0, 0, 0, 1, 1]), 2)
    assert found.tolist() == [3.0, 15.0]


def test_without_outliers_the_location_is_the_mean_and_an_outlier_moves_it_little():
    owner = np.zeros(9, dtype=np.int64)
    values = np.linspace(-0.1, 0.1, 9)
    variance = np.full(9, 0.01)
    assert locations(values, owner, 1, variance)[0][0] == pytest.approx(0.0, abs=1e-9)
    values[0] = -5.0
    assert abs(locations(values, owner, 1, variance)[0][0]) < 0.04


def test_the_spread_is_that_of_normal_noise_and_outliers_do_not_carry_it_off():
    values = np.random.default_rng(1).normal(0, 0.2, 4000)
    assert spread(values, 3999) == pytest.approx(0.2, rel=0.05)
    values[:200] += 9.0
    assert spread(values, 3999) < 0.25
    assert spread(np.zeros(5), 4) == 0.0
