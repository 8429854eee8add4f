"""One bar for leaves of one taste says what all their pairs say, and no more (rule T4)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fairness.test_envy_free import by_all_rows, holds

from evenhand.fairness import envy_free as room
from evenhand.fairness.bars import no_bars, shared_bars
from evenhand.fairness.envy_free import envy_free
from evenhand.fairness.group_value import GroupValues, value_of, values_of
from evenhand.fairness.rows import grid_of


def few_tastes(seed: int, leaves: int, tastes: int, types: int) -> GroupValues:
    """Leaves that share tastes and differ in what they are owed and in caps, some of which bind at the slice."""
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.2, 1.0, (tastes, types))[rng.integers(tastes, size=leaves)]
    entitled = rng.uniform(0.3, 20.0, leaves)
    gpus = rng.integers(20, 90, types)
    cap = np.ceil(entitled / entitled.sum() * gpus.sum() * rng.uniform(0.6, 3.0, leaves)).astype(np.int64)
    return values_of(np.arange(leaves), entitled, weights, cap, gpus)


def several_classes(seed: int, leaves: int, tastes: int) -> GroupValues:
    """The same with two job classes in every leaf."""
    rng = np.random.default_rng(seed)
    pairs = rng.uniform(0.2, 1.0, (tastes, 2, 3))[rng.integers(tastes, size=leaves)]
    of = np.repeat(np.arange(leaves), 2)
    entitled = rng.uniform(0.3, 20.0, leaves)
    gpus = rng.integers(20, 90, 3)
    cap = np.ceil(entitled[of] / entitled.sum() * gpus.sum() * rng.uniform(0.3, 2.0, 2 * leaves)).astype(np.int64)
    return values_of(np.arange(leaves), entitled, pairs.reshape(-1, 3), cap, gpus, of)


@pytest.mark.parametrize("seed", range(12))
def test_as_much_throughput_as_with_a_row_for_every_pair(seed, monkeypatch):
    monkeypatch.setattr(room, "MOST_REPEATS", 0)
    v = few_tastes(seed, 36 + seed, 2 + seed % 6, 1 + seed % 4)
    x, best = envy_free(v)
    assert best
    holds(v, x)
    assert value_of(v, x).sum() == pytest.approx(by_all_rows(v), rel=1e-7)


@pytest.mark.parametrize("seed", range(12))
def test_the_same_division_with_bars_and_without(seed, monkeypatch):
    monkeypatch.setattr(room, "MOST_REPEATS", 0)
    v = several_classes(seed, 34 + seed, 2 + seed % 5)
    x, best = envy_free(v)
    monkeypatch.setattr(room, "shared_bars", lambda values, *_: no_bars(values))
    pairs, also = envy_free(v)
    assert best
    assert also
    assert value_of(v, x).sum() == pytest.approx(value_of(v, pairs).sum(), rel=1e-8)


def test_repeats_start_from_pairs_that_the_bars_stand_for():
    v = several_classes(3, 60, 4)
    x, best = envy_free(v)
    assert best
    with_lines, _ = _once(v)
    assert value_of(v, x).sum() >= value_of(v, with_lines).sum() * (1 - 1e-12)


def _once(v: GroupValues) -> tuple[np.ndarray, bool]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "MOST_REPEATS", 0)
        return envy_free(v)


def test_only_shared_slopes_have_a_bar():
    v = few_tastes(1, 40, 3, 3)
    odd = replace(v, weights=np.vstack([[[0.11, 0.22, 0.33]], v.weights[1:]]))
    bars = shared_bars(odd, grid_of(odd).unit, np.zeros(40, dtype=bool))
    assert bars.taste[0] == -1
    assert not bars.pays[0].any()
    assert len(bars.leaves)
    assert (bars.slope[bars.taste[bars.leaves]] == odd.lever[bars.leaves]).all()
    alone = np.delete(odd.lever, bars.leaves, axis=0)
    assert len(np.unique(alone, axis=0)) == len(alone)


def test_prices_of_a_bar_are_dealt_out_to_pairs_of_its_own_leaves():
    v = few_tastes(2, 40, 1, 2)
    bars = shared_bars(v, grid_of(v).unit, np.zeros(40, dtype=bool))
    one, other = bars.leaves[bars.taste[bars.leaves] == 0][:2]
    price = np.zeros(len(bars.leaves))
    price[bars.leaves == one], price[bars.leaves == other] = 1.0 / bars.own[one], 3.0 / bars.own[other]
    found = bars.pairs(price, np.array([0, 0]), np.array([5, 7]), np.array([2.0, 2.0]))
    assert sorted(zip(*np.nonzero(found), strict=True)) == [(one, 5), (other, 5), (other, 7)]
