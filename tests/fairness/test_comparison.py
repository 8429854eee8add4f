"""compare_objectives: one state, every objective, the same entitlements."""

from __future__ import annotations

from random import Random

import pytest
from entitlement.built import group, jobs, snapshot
from instances import instance
from strategies.clusters import random_state

from evenhand import allocate, compare_objectives
from evenhand_models import Objective, Policy


def two_tastes():
    """A gains nothing from the fast type, B four times as much."""
    work = jobs("a", 8, speedup={"h100": 1, "k80": 1}) + jobs("b", 8, speedup={"h100": 1, "k80": 0.25})
    return snapshot({"h100": 4, "k80": 4}, [group("a"), group("b")], work).state


def test_two_groups_by_hand():
    found = compare_objectives(two_tastes())
    assert [o.objective for o in found.objectives] == list(Objective)
    assert {o.group: o.floor for o in found.owed} == {"a": 4.0, "b": 2.5}
    assert found.equal_split == pytest.approx(6.5)
    assert found.upper_bound == pytest.approx(8.0)
    split = found.outcome(Objective.FAIR_SHARE)
    assert split.throughput == pytest.approx(6.5)
    assert split.pareto_gap == pytest.approx(8 / 6.5 - 1)
    fair = found.outcome(Objective.ENVY_FREE)
    assert fair.throughput == pytest.approx(8.0)
    assert fair.over_equal_split == pytest.approx(8 / 6.5)
    assert (fair.max_envy, fair.idle_gpus) == (0.0, 0.0)
    assert fair.pareto_gap == pytest.approx(0.0, abs=1e-9)
    assert fair.least_sharing_incentive == pytest.approx(1.0)
    level = found.outcome(Objective.MAX_MIN)
    assert [g.sharing_incentive for g in level.groups] == pytest.approx([16 / 13, 16 / 13])
    bundles = {g.group: dict(g.gpus) for g in level.groups}
    assert bundles["a"] == pytest.approx({"h100": 12 / 13, "k80": 4.0})
    assert bundles["b"] == pytest.approx({"h100": 40 / 13})


def test_envy_is_what_the_other_bundle_is_worth_to_oneself_over_the_own_slice():
    work = jobs("a", 8, speedup={"h100": 1, "k80": 0.9}) + jobs("b", 8, speedup={"p100": 1, "h100": 0.5, "k80": 0.1})
    found = compare_objectives(snapshot({"h100": 4, "k80": 4, "p100": 1}, [group("a"), group("b")], work).state)
    most = found.outcome(Objective.MAX_THROUGHPUT)
    assert most.throughput == pytest.approx(8.6)
    assert {g.group: dict(g.gpus) for g in most.groups} == {"a": {"h100": 4.0, "k80": 4.0}, "b": {"p100": 1.0}}
    assert {o.group: o.floor for o in found.owed} == pytest.approx({"a": 3.8, "b": 1.7})
    assert {g.group: g.max_envy for g in most.groups} == pytest.approx({"a": 0.0, "b": (2.4 - 1) / 1.7})
    assert most.least_served == "b"
    assert most.least_sharing_incentive == pytest.approx(1 / 1.7)


@pytest.mark.parametrize("seed", range(12))
def test_drawn_clusters_stand_as_the_objectives_promise(seed):
    found = compare_objectives(random_state(Random(seed), "medium"))
    value = {o.objective: o.value for o in found.objectives}
    for outcome in found.objectives:
        assert outcome.proven
        assert outcome.value <= value[Objective.MAX_THROUGHPUT] + 1e-6
        assert outcome.throughput <= found.upper_bound + 1e-6
        assert sum(g.throughput for g in outcome.groups) == pytest.approx(outcome.throughput)
    for objective in (Objective.ENVY_FREE, Objective.MAX_MIN, Objective.FAIR_SHARE):
        least = found.outcome(objective).least_sharing_incentive
        assert least is None or least >= 1 - 1e-6
    for objective in (Objective.ENVY_FREE, Objective.FAIR_SHARE):
        assert found.outcome(objective).max_envy <= 1e-6
    for objective in (Objective.NASH, Objective.MAX_MIN, Objective.EQUAL_THROUGHPUT, Objective.MAX_THROUGHPUT):
        assert found.outcome(objective).pareto_gap <= 1e-6
    assert value[Objective.FAIR_SHARE] == pytest.approx(found.equal_split)


@pytest.mark.parametrize("objective", list(Objective))
def test_the_figures_are_those_of_the_certificate(objective):
    seen = instance("small")
    policy = Policy(objective=objective)
    one, proof = compare_objectives(seen, policy).outcome(objective), allocate(seen, policy).certificate
    assert one.throughput == pytest.approx(proof.target_throughput)
    assert one.pareto_gap == pytest.approx(proof.pareto_gap, abs=1e-9)


def test_the_objective_of_the_policy_does_not_matter_and_equal_input_gives_equal_bytes():
    seen = instance("small")
    said = {compare_objectives(seen, Policy(objective=o)).model_dump_json() for o in Objective}
    assert len(said) == 1


def test_nobody_is_owed_anything():
    found = compare_objectives(snapshot({"h100": 8}, [group("a")], []).state)
    assert found.owed == ()
    assert {o.throughput for o in found.objectives} == {0.0}
    assert {o.least_sharing_incentive for o in found.objectives} == {None}
    assert {o.idle_gpus for o in found.objectives} == {8.0}
