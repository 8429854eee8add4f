"""Rule D4 on one level: exact, monotone, and what becomes of it at both ends of the horizon."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest

from evenhand.splitting import split

WEEK = 604_800


def parts_of(*level, horizon_s: int = WEEK) -> list[float]:
    return [float(part) for part in split(*level, horizon_s=horizon_s)]


def level(rng: Random, n: int):
    """Random siblings: amount, floors, caps, weights, usage."""
    caps = [rng.choice((1, 500, 1000, 8000, 64_000, rng.randint(1, 10**6))) for _ in range(n)]
    floors = [rng.choice((0, 0, rng.randint(0, c))) for c in caps]
    weights = [rng.choice((1.0, 1.0, 3.0, 0.1, 10 ** rng.uniform(-12, 12))) for _ in range(n)]
    usage = [rng.choice((0.0, 0.0, 5.0, rng.uniform(0, 10**6), 1e-12, 1e15)) for _ in range(n)]
    amount = Fraction(rng.choice((0, rng.randint(0, sum(caps)), sum(caps), 2 * sum(caps), rng.randint(1, 999))))
    return amount, floors, caps, weights, usage


@pytest.mark.parametrize("seed", range(60))
def test_parts_sum_to_what_there_is_within_caps_and_floors(seed):
    rng = Random(seed)
    for _ in range(20):
        amount, floors, caps, weights, usage = level(rng, rng.randint(1, 12))
        parts = parts_of(amount, floors, caps, weights, usage, horizon_s=rng.choice((1, 60, WEEK, 315_360_000)))
        assert sum(parts) == pytest.approx(float(min(amount, sum(caps))), rel=1e-12, abs=1e-9)
        assert all(0 <= e <= c for e, c in zip(parts, caps, strict=True))
        if sum(floors) <= amount:
            assert all(e >= f for e, f in zip(parts, floors, strict=True))
        else:
            assert parts == pytest.approx([f * float(amount / sum(floors)) for f in floors])


@pytest.mark.parametrize("seed", range(40))
def test_parts_have_one_water_level(seed):
    rng = Random(seed)
    amount, floors, caps, weights, usage = level(rng, 8)
    usage = [min(u, 1e5) for u in usage]
    weights = [min(max(w, 0.01), 100.0) for w in weights]
    parts = parts_of(amount, floors, caps, weights, usage, horizon_s=WEEK)
    if not sum(floors) < amount < sum(caps):
        return
    marks = [(e + 1000 * u / 168) / w for e, u, w in zip(parts, usage, weights, strict=True)]
    free = [m for m, e, f, c in zip(marks, parts, floors, caps, strict=True) if f < e < c]
    assert free == pytest.approx(free[:1] * len(free), rel=1e-9)
    for m, e, f, c in zip(marks, parts, floors, caps, strict=True):
        for lam in free[:1] if f < c else []:
            assert e > f or m >= lam * (1 - 1e-9)
            assert e < c or m <= lam * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_more_usage_never_brings_more(seed):
    rng = Random(seed)
    amount, floors, caps, weights, usage = level(rng, 6)
    before = parts_of(amount, floors, caps, weights, usage, horizon_s=WEEK)
    usage[2] = usage[2] * 2 + 17
    after = parts_of(amount, floors, caps, weights, usage, horizon_s=WEEK)
    assert after[2] <= before[2] + 1e-9
    assert all(after[k] >= before[k] - 1e-9 for k in range(6) if k != 2)


@pytest.mark.parametrize("seed", range(20))
def test_a_horizon_of_nothing_serves_strictly_by_usage_over_weight(seed):
    rng = Random(seed)
    caps = [rng.randint(1000, 20_000) for _ in range(6)]
    weights = [rng.choice((1.0, 2.0, 3.0)) for _ in range(6)]
    usage = [1000.0 * w * k for k, w in zip(rng.sample(range(1, 100), 6), weights, strict=True)]
    amount = rng.randint(1, sum(caps))
    parts = parts_of(Fraction(amount), [0] * 6, caps, weights, usage, horizon_s=1)
    left = amount
    for k in sorted(range(6), key=lambda k: usage[k] / weights[k]):
        assert parts[k] == pytest.approx(min(caps[k], left))
        left -= min(caps[k], left)


def test_an_endless_horizon_is_weighted_max_min():
    parts = parts_of(
        Fraction(12_000), [0] * 3, [1000, 9000, 9000], [1.0, 1.0, 2.0], [1e-3, 0.0, 0.0], horizon_s=315_360_000
    )
    assert parts == pytest.approx([1000, 11_000 / 3, 22_000 / 3], rel=1e-6)


def test_huge_usage_against_a_tiny_horizon_loses_no_digit():
    parts = parts_of(Fraction(100_000), [0, 0], [80_000, 80_000], [1.0, 1.0], [1e15, 1e15], horizon_s=1)
    assert parts == [50_000.0, 50_000.0]
    parts = parts_of(
        Fraction(100_000), [0, 0], [80_000, 80_000], [1.0, 1.0], [1e15, 1e15 + 0.125], horizon_s=315_360_000
    )
    assert parts[0] - parts[1] == pytest.approx(0.125 * 3_600_000 / 315_360_000, rel=1e-6)


def test_two_thousand_siblings():
    n = 2_000
    parts = parts_of(
        Fraction(n * 500),
        [0] * n,
        [1000] * n,
        [1.0 + k % 7 for k in range(n)],
        [k * 0.01 for k in range(n)],
        horizon_s=WEEK,
    )
    assert sum(parts) == pytest.approx(n * 500, rel=1e-12)
