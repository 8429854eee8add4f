"""Rule T5: what split jobs could draw, against the transport program."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.fairness import drawn as room
from evenhand.fairness.drawn import Drawers, drawers_of, drawn_throughput


def case(seed: int, leaves: int, types: int, top: int = 1000) -> tuple[Drawers, np.ndarray]:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    speed = rng.integers(1, top + 1, (n, types))
    speed[rng.random((n, types)) < 0.2] = 0
    if seed % 3 == 0:
        speed = speed // 250 * 250
    jobs = drawers_of(rng.integers(0, leaves, n), rng.integers(1, 65, n), speed)
    bundles = rng.uniform(0, 60, (leaves, types)) * (rng.random((leaves, types)) < 0.8)
    return jobs, bundles


@pytest.mark.parametrize("types", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("seed", range(12))
def test_prices_find_what_the_program_finds(seed, types):
    jobs, bundles = case(seed, 4, types, 1000 if seed % 2 else 23_000)
    found = drawn_throughput(jobs, bundles)
    assert found == pytest.approx(room._by_program(jobs, bundles), abs=1e-8)


def test_many_types_go_to_the_program():
    jobs, bundles = case(4, 3, 8)
    assert drawn_throughput(jobs, bundles) == pytest.approx(room._by_program(jobs, bundles))


def test_by_hand():
    jobs = drawers_of(np.array([0, 0]), np.array([4, 4]), np.array([[1000, 900], [1000, 100]]))
    assert drawn_throughput(jobs, np.array([[4.0, 4.0]])) == pytest.approx([7.6])


def test_nobody_draws_from_nothing():
    none = drawers_of(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros((0, 2), dtype=np.int64))
    assert drawn_throughput(none, np.zeros((3, 2))).tolist() == [0, 0, 0]
    jobs, _ = case(1, 2, 2)
    assert drawn_throughput(jobs, np.full((2, 2), -1e-12)).tolist() == [0, 0]
