"""What a misreport gains: case 25, and what must hold of the figure (V8)."""

from __future__ import annotations

import pytest
from cases.states import cluster, ones
from speedups.simulated import world

from evenhand.speedups import (
    audit_speedups,
    gains_of_flagged,
    misreport_gain,
    misreport_gains,
    with_factors,
)
from evenhand_models import InvalidInput, Objective, Policy

A, B = {"slow": 1.0, "fast": 2.0}, {"slow": 1.0, "fast": 3.0}


def two_groups():
    """A and B with more work than the 16 slow and 16 fast GPUs can hold."""
    return cluster(
        "2x8 slow, 2x8 fast", {"A": 1, "B": 1}, ones("a", "A", 40, speedup=A) + ones("b", "B", 40, speedup=B)
    )


def under(objective, unit="best"):
    return Policy(objective=Objective(objective), throughput_unit=unit)


def gain(group, factor, policy):
    return misreport_gain(two_groups(), policy, group, factors={"fast": factor})


def test_case_25_what_b_gains_by_ten_times_is_a_figure_under_every_objective():
    found = {g.objective.value: g for g in misreport_gains(two_groups(), Policy(), "B", factors={"fast": 10.0})}
    assert {"envy_free", "max_throughput", "fair_share"} <= set(found)
    assert found["envy_free"].gain < 0
    assert found["fair_share"].gain == 0.0
    assert found["fair_share"].others == 0.0


def test_case_25_equal_throughput_does_not_reward_declaring_too_much_on_a_common_slowest_type():
    told = {"fast": 10.0}
    found = misreport_gains(two_groups(), under("envy_free", "slowest"), "B", factors=told)
    assert all(g.gain <= 1e-6 for g in found if g.objective is Objective.EQUAL_THROUGHPUT)


def test_in_the_unit_slowest_declaring_too_much_pays_and_in_best_declaring_too_little():
    assert gain("A", 1.3, under("envy_free", "slowest")).gain == pytest.approx(0.0769, abs=1e-3)
    assert gain("A", 10.0, under("max_throughput", "slowest")).gain == pytest.approx(4.0)
    assert gain("B", 1.3, under("envy_free")).gain < 0
    assert gain("B", 1 / 1.3, under("envy_free")).gain == pytest.approx(0.075, abs=1e-3)


@pytest.mark.parametrize("factor", [1 / 1.3, 1.0, 1.3])
def test_the_truth_may_be_given_either_way(factor):
    state, policy = two_groups(), under("envy_free")
    told = with_factors(state, "B", {"fast": factor})
    truth = {j.id: dict(j.speedup) for j in state.jobs}
    assert misreport_gain(told, policy, "B", honest=truth) == misreport_gain(
        state, policy, "B", factors={"fast": factor}
    )


def test_the_truth_gains_nothing_and_neither_does_a_common_factor():
    for objective in ("envy_free", "max_throughput", "fair_share"):
        same = misreport_gain(two_groups(), under(objective), "B", factors={"fast": 8.0, "slow": 8.0})
        assert (same.gain, same.others) == (0.0, 0.0)
        assert misreport_gain(two_groups(), under(objective), "B", factors={}).gain == 0.0


def test_a_group_counts_all_below_it():
    tree = [{"id": "x", "share": 1}, {"id": "A", "share": 1, "parent": "x"}, {"id": "B", "share": 1}]
    state = two_groups()
    nested = type(state).model_validate(state.model_dump() | {"groups": tree})
    policy = under("envy_free")
    of = [misreport_gain(nested, policy, name, factors={"fast": 0.8}) for name in ("x", "A")]
    assert of[0].model_copy(update={"group": "A"}) == of[1]


def test_flagged_groups_come_with_what_they_gain():
    request = world(2, groups=("A", "B"), jobs=(2, 2), each=(9, 9), factors={"B": {"H100": 10.0}})
    report = audit_speedups(request)
    found = gains_of_flagged(request.state, report, Policy())
    assert {g.group for g in found} == {"B"}
    assert len({g.objective for g in found}) == len(found) >= 3
    assert report.model_copy(update={"gains": found}).gains == found


def test_what_cannot_be_asked_is_refused():
    with pytest.raises(InvalidInput, match="no group 'Z'"):
        misreport_gain(two_groups(), Policy(), "Z", factors={})
    with pytest.raises(ValueError, match="either"):
        misreport_gain(two_groups(), Policy(), "A")
    with pytest.raises(ValueError, match="speedup"):
        misreport_gain(two_groups(), Policy(), "A", factors={"fast": -1.0})
