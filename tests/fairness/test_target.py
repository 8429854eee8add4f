"""The whole target of a round, on clusters by hand and drawn."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from entitlement.built import group, jobs, snapshot
from strategies.clusters import random_state

from evenhand.entitlement import entitle
from evenhand.fairness.group_value import value_of
from evenhand.fairness.swapped import envy_of
from evenhand.fairness.target import fair_target, forced_slack, iterations_within
from evenhand.snapshot import take_snapshot
from evenhand_models import Objective, Policy


def target_of(taken):
    return fair_target(taken, entitle(taken))


def test_23_groups_of_one_type_share_it_by_half():
    groups = [group("a"), group("b"), group("c")]
    work = jobs("a", 90) + jobs("b", 90, types=("a100",)) + jobs("c", 90, types=("a100",))
    found = target_of(snapshot({"h100": 30, "a100": 30}, groups, work))
    assert found.x[:, 0] == pytest.approx([0, 15, 15])
    assert found.x[:, 1] == pytest.approx([30, 0, 0])
    assert found.aim_milli.tolist() == [30_000, 15_000, 15_000]


def test_22_the_target_does_not_know_who_came_first():
    found = target_of(snapshot({"h100": 50}, [group("a"), group("b")], jobs("b", 100) + jobs("a", 100)))
    assert found.x.tolist() == [[25.0], [25.0]]
    assert found.throughput == found.upper_bound == found.equal_split == 50.0


def test_the_aim_is_of_whole_gangs():
    found = target_of(snapshot({"h100": 50}, [group("a"), group("b")], jobs("a", 9, 8) + jobs("b", 100)))
    assert found.aim_milli.tolist() == [24_000, 25_000]


@pytest.mark.parametrize("objective", list(Objective))
@pytest.mark.parametrize("seed", range(25))
def test_drawn_clusters(seed, objective):
    taken = take_snapshot(random_state(Random(seed), "medium"), Policy(objective=objective))
    found = target_of(taken)
    v = found.values
    assert found.best
    assert (found.x.sum(axis=0) <= v.capacity + 1e-7).all()
    assert (found.x.sum(axis=1) <= v.leaf_cap + 1e-7).all()
    assert (found.drawn >= found.value - 1e-6).all()
    assert (found.aim_milli <= found.drawn * 1000 + 0.01).all()
    assert found.throughput <= found.upper_bound + 1e-6
    if objective in ("envy_free", "fair_share", "max_min"):
        assert (value_of(v, found.x) >= v.floor - 1e-7).all()
    if objective in ("envy_free", "fair_share"):
        assert envy_of(v, found.x).max(initial=0.0) <= 1e-7
    assert not forced_slack(found, np.zeros(v.weights.shape)).any()


def test_nobody_is_owed_anything():
    found = target_of(snapshot({"h100": 8}, [group("a")], []))
    assert found.x.shape == (0, 1)
    assert found.throughput == 0.0
    assert forced_slack(found, np.zeros((0, 1))).shape == (0, 0)


def test_work_allowed_grows_with_time_and_falls_with_leaves():
    assert iterations_within(10, 5.0) > iterations_within(1_000, 5.0) > iterations_within(1_000, 1.0) > 1_000
