"""The largest sum of whole gangs, against all subsets, and fast where sums are many."""

from __future__ import annotations

import time

import numpy as np
import pytest

from evenhand import subset_sums
from evenhand.subset_sums import largest_sum_not_above, limit_milli


def by_all(values: list[int], limit: int) -> int:
    sums = {0}
    for v in values:
        sums |= {s + v for s in sums if s + v <= limit}
    return max(sums)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("ways", ["plain", "windows and parts"])
def test_against_all_subsets(seed, ways, monkeypatch):
    if ways != "plain":
        monkeypatch.setattr(subset_sums, "_SMALL", 0)
        monkeypatch.setattr(subset_sums, "_WINDOWS", (4, 64))
    rng = np.random.default_rng(seed)
    for _ in range(20):
        values = rng.integers(0, rng.choice([5, 60, 5_000]), rng.integers(0, 11)) * rng.choice([1, 64, 1000])
        values = np.concatenate([values, rng.integers(0, 3_000, rng.integers(0, 3))])
        limit = int(rng.integers(0, max(2, values.sum() + 3)))
        assert largest_sum_not_above(values, limit) == by_all([int(v) for v in values if v > 0], limit)


def test_nothing_fits_below_nothing():
    assert largest_sum_not_above(np.array([3, 5]), 0) == 0
    assert largest_sum_not_above(np.array([3, 5]), -1) == 0
    assert largest_sum_not_above(np.array([], dtype=np.int64), 9) == 0


def test_a_limit_allows_a_millionth():
    assert limit_milli(3.9999995) == 4000
    assert limit_milli(3.999) == 3999


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_thousands_of_jobs_take_milliseconds(share):
    rng = np.random.default_rng(1)
    values = rng.choice([1, 2, 4, 8, 16, 64], 5_000) * rng.choice([1000, 1665, 1879], 5_000)
    odd = np.concatenate([rng.choice([1, 2, 4, 8], 1_000) * 1000, [8 * 1879] * 3])
    began = time.process_time()
    for v in (values, odd):
        limit = int(v.sum() * share) + 1
        assert 0 <= limit - largest_sum_not_above(v, limit) < 1000
    assert time.process_time() - began < 0.25
