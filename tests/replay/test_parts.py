"""Window, ground, entitlements between rounds: each against a slow way to the same answer."""

from __future__ import annotations

from math import exp, log
from random import Random

import numpy as np
import pytest
from strategies import random_state

from evenhand import Policy
from evenhand.claims import claims
from evenhand.entitlement import entitle
from evenhand.replay.facts import Shape
from evenhand.replay.ground import Ground
from evenhand.replay.metrics.integrals import by_hour
from evenhand.replay.schedulers.engine.owed import level
from evenhand.replay.usage import UsageWindow
from evenhand.shapes import Sites
from evenhand.snapshot import take_snapshot
from evenhand_models import Node


def history(seed: int) -> list[tuple[int, int, int, int]]:
    """Random holdings: group, from, to, thousandths of a GPU."""
    rng = Random(seed)
    return [(rng.randrange(3), at, at + rng.randrange(1, 500), 1000 * rng.randrange(1, 9)) for at in range(0, 3_000, 7)]


def fed(window: UsageWindow, holdings: list[tuple[int, int, int, int]], until: int) -> None:
    changes = sorted([(a, g, m) for g, a, b, m in holdings] + [(b, g, -m) for g, a, b, m in holdings])
    for at, g, milli in changes:
        if at <= until:
            window.change(g, at, milli)


@pytest.mark.parametrize("now", [900, 2_000, 3_333])
def test_a_sliding_window_is_the_exact_integral(now: int) -> None:
    holdings = history(1)
    window = UsageWindow(3, 1_000, None)
    window.seed(0, -5_000, -10, 3.0, 0)
    window.seed(1, -400, -100, 2.0, 0)
    fed(window, holdings, now)
    exact = [0] * 3
    for g, a, b, milli in [*holdings, (0, -5_000, -10, 3_000), (1, -400, -100, 2_000)]:
        exact[g] += milli * max(0, min(b, now) - max(a, now - 1_000))
    assert (window.gpu_hours(now) * 3_600_000).round().astype(int).tolist() == exact


def test_with_a_half_life_use_decays_smoothly() -> None:
    window = UsageWindow(1, 1_000, 500)
    window.change(0, 100, 2_000)
    window.change(0, 600, -2_000)
    k = log(2) / 500
    exact = 2_000 / k * (exp(-k * (1_000 - 600)) - exp(-k * (1_000 - 100)))
    assert window.gpu_hours(1_000)[0] * 3_600_000 == pytest.approx(exact, rel=1e-12)


def test_a_window_moves_to_another_tree_with_its_past() -> None:
    old, new = UsageWindow(3, 1_000, None), UsageWindow(2, 1_000, None)
    old.change(0, 0, 1_000)
    old.change(1, 0, 1_000)
    old.change(2, 0, 1_000)
    new.inherit(old, [1, None, 1], 400)
    assert new.gpu_hours(400).tolist() == [0.0, 800 / 3_600]
    assert new.gpu_hours(1_200)[1] == pytest.approx(400 / 3_600)
    assert new.gpu_hours(1_500)[1] == 0.0


@pytest.mark.parametrize("seed", range(5))
def test_a_gang_stands_where_looking_at_every_node_would_put_it(seed: int) -> None:
    rng = Random(seed)
    nodes = [Node(name=f"n{i:02}", gpu_type="t", gpus=8) for i in range(12)]
    sites = Sites(nodes, np.zeros(12, dtype=np.int64))
    ground = Ground(nodes, ("t",), [None] * 12, 0)
    for n in range(12):
        ground.hold(((n, rng.randrange(9)),))
    for gpus in (1, 3, 8, 12, 16, 24):
        need = -(-gpus // 8)
        found = ground.place(Shape(gpus, None, None, (1000,), (0,)), 0, sites)
        if need == 1:
            fit = [(f, n) for n, f in enumerate(ground.free) if f >= gpus]
            assert found == (((min(fit)[1], gpus),) if fit else None)
        else:
            most = sorted(ground.free, reverse=True)[:need]
            assert (found is not None) == (sum(most) >= gpus and min(most) > 0)
        if found is not None:
            assert sum(g for _, g in found) == gpus
            assert len(found) == need
            assert all(g <= ground.free[n] for n, g in found)


def test_workers_and_even_splits_keep_their_shape() -> None:
    nodes = [Node(name=f"n{i}", gpu_type="t", gpus=8) for i in range(3)]
    sites = Sites(nodes, np.zeros(3, dtype=np.int64))
    ground = Ground(nodes, ("t",), [None] * 3, 0)
    ground.hold(((0, 3), (1, 5)))
    assert ground.place(Shape(12, 4, None, (1000,), (0,)), 0, sites) == ((0, 4), (2, 8))
    assert ground.place(Shape(6, None, 3, (1000,), (0,)), 0, sites) == ((0, 3), (1, 3))
    assert ground.place(Shape(12, None, 4, (1000,), (0,)), 0, sites) is None


def test_an_amount_is_divided_as_rule_d4_says() -> None:
    parts = level(10.0, [1.0, 1.0, 2.0], [0.0, 4.0, 0.0], [0.0, 0.0, 1.0], [3.0, 9.0, 9.0])
    assert parts == pytest.approx([3.0, 0.0, 7.0])
    assert level(5.0, [1.0, 1.0], [0.0, 0.0], [4.0, 4.0], [9.0, 9.0]) == pytest.approx([2.5, 2.5])
    assert level(5.0, [1.0], [0.0], [0.0], [2.0]) == [2.0]


@pytest.mark.parametrize("seed", range(40))
def test_entitlements_between_rounds_are_those_of_a_round(seed: int) -> None:
    from evenhand.replay.schedulers.engine.owed import owed_now
    from replay.standing import world_of

    state = random_state(Random(seed), "small")
    policy = Policy()
    snapshot = take_snapshot(state, policy)
    exact, quick = entitle(snapshot), owed_now(world_of(snapshot))
    assert quick.group == pytest.approx(exact.entitled.tolist(), abs=1e-6)
    inner = [g for g in range(len(exact.entitled)) if exact.own_jobs[g]]
    assert [quick.leaf[g] for g in inner] == pytest.approx([float(exact.leaf_entitled[g]) for g in inner], abs=1e-6)
    weighed = claims(snapshot, exact)
    assert quick.claims.inner == weighed.inner
    assert [quick.claims.leaf[g] for g in inner] == [weighed.leaf[g] for g in inner]


def test_integrals_by_hour_cut_at_hours_and_at_the_end() -> None:
    found = by_hour(*(np.array(x) for x in ([1_800, 0], [9_000, 3_600], [2, 5], [0, 1])), 2, 8_000)
    assert found.tolist() == [[3_600, 7_200, 1_600], [18_000, 0, 0]]
