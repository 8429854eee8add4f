"""Rounds small enough for a pencil: what the second formulation calls best is what the rules say."""

from typing import Any

import pytest
from audit.build import at, group, job, node, running, state

from evenhand import Plan, Policy, allocate
from evenhand.crosscheck import CrossCheck, Proof, cross_check
from evenhand_models import ClusterState

HOUR_OLD = 2 / 224
"""O4 of a GPU that waited an hour: past 300 and 1,800 s."""
TWO_HOURS_OLD = 3 / 224
START = 11 / 12
"""O5 of a GPU that starts: an hour less a restart of 300 s."""


def checked(given: ClusterState, policy: Policy | None = None) -> CrossCheck:
    policy = policy or Policy()
    found = cross_check(given, policy, allocate(given, policy))
    assert found.agrees, found.message
    assert found.status is Proof.OPTIMAL
    return found


def test_two_groups_that_both_fit_both_start() -> None:
    given = state([node("n1", 4)], [group("a"), group("b")], [job("a1", "a", 2), job("b1", "b", 2)])
    assert checked(given).objective == pytest.approx(4 * (1 / 16 + 1 / 2 + HOUR_OLD + START))


def test_of_two_owed_gangs_only_the_first_can_run_and_the_other_costs_nothing() -> None:
    given = state([node("n1", 4)], [group("a"), group("b")], [job("a1", "a", 4), job("b1", "b", 4)])
    assert checked(given).objective == pytest.approx(4 * (1 / 16 + 1 / 2 + HOUR_OLD + START))


def test_a_shortfall_of_who_had_nothing_weighs_three_hundred_a_gpu() -> None:
    pinned = running("b1", "b", {"n1": 4}, started_at=at(-1), submitted_at=at(-1), checkpointed_at=at(0))
    given = state([node("n1", 4)], [group("a"), group("b")], [job("a1", "a", 2), pinned])
    found = checked(given)
    assert found.goals["leaves"] == pytest.approx(-600.0)
    assert found.goals["order"] + found.goals["work"] == pytest.approx(4 * (1 / 16 + 1 / 2 + 1))
    assert found.objective == pytest.approx(sum(found.goals.values()))


def test_one_unallocated_gpu_of_128_is_not_lost_in_tolerances() -> None:
    nodes = [node(f"n{place:02d}", 8) for place in range(16)]
    given = state(nodes, [group("a"), group("b")], [job("a1", "a", 1, c=0), job("b1", "b", 120)])
    found = checked(given)
    each = 1 / 16 + 1 / 2 + HOUR_OLD + START
    assert found.goals["unallocated_use"] == pytest.approx(each / (64 * 128), rel=1e-9)
    assert found.objective == pytest.approx(120 * each + each / (64 * 128), rel=1e-12)


@pytest.mark.parametrize(
    ("saved_at", "kept"),
    [
        (None, True),  # an hour of work would be lost on each GPU
        (at(0), False),
    ],
)
def test_a_higher_priority_takes_over_where_no_work_is_lost(saved_at: str | None, kept: bool) -> None:
    low = running("low", "a", {"n1": 4}, checkpointed_at=saved_at)
    given = state([node("n1", 4)], [group("a")], [low, job("high", "a", 4, priority=1)])
    found = checked(given)
    keep = 4 * (1 / 16 + TWO_HOURS_OLD + 1)
    lost = 0 if saved_at else 4
    swap = 4 * (1 / 16 + 1 / 2 + HOUR_OLD + START) + 4 / 2 - lost - 4 * (1 / 16 + 1 / 2)
    assert (keep > swap) is kept
    assert found.objective == pytest.approx(max(keep, swap))


def test_a_dead_node_is_replaced_and_the_others_stay() -> None:
    nodes = [node("n1", 4, status="down"), node("n2", 4), node("n3", 4)]
    given = state(nodes, [group("a")], [running("a1", "a", {"n1": 4, "n2": 4})])
    found = checked(given)
    assert found.objective == pytest.approx(8 * (1 / 16 + 1 / 2 + TWO_HOURS_OLD + START) - 4 / 16)


def test_an_elastic_job_grows_by_whole_workers() -> None:
    given = state([node("n1", 7)], [group("a")], [running("a1", "a", {"n1": 2}, gpus=8, min_gpus=2, worker_gpus=2)])
    found = checked(given)
    assert found.objective == pytest.approx(6 * (1 / 16 + 1 / 2 + TWO_HOURS_OLD + 1) - 4 / 256)


def test_gpus_that_end_soon_are_reserved_instead_of_taken() -> None:
    given = state(
        [node("n1", 4)],
        [group("a"), group("b")],
        [running("b1", "b", {"n1": 4}, expected_end_at=at(2)), job("a1", "a", 2)],
    )
    found = checked(given)
    assert found.goals.get("leaves", 0.0) == 0.0
    assert found.goals["work"] == pytest.approx(4 * 120 / 3600)


def test_nobody_is_preempted_who_is_not_in_the_way() -> None:
    """U1: a budgeted job may not go for unallocated work, however much of that there is."""
    jobs: list[dict[str, Any]] = [running("b1", "b", {"n1": 4}, checkpointed_at=at(0))]
    jobs += [job(f"u{place}", "a", 1, c=0) for place in range(4)]
    found = checked(state([node("n1", 4)], [group("a"), group("b")], jobs))
    assert found.goals["least_change"] == 0.0


def test_gangs_counted_together_stand_on_different_nodes_each() -> None:
    """Two gangs of 2 x 2 on nodes of 4, 2 and 2: both fit, as each has one half on the large node."""
    nodes = [node("n1", 4), node("n2", 2), node("n3", 2)]
    jobs = [job(f"a{place}", "a", 4, gpus_per_node=2) for place in range(3)]
    found = checked(state(nodes, [group("a")], jobs))
    assert found.objective == pytest.approx(8 * (1 / 16 + 1 / 2 + HOUR_OLD + START))


def test_a_limit_holds_for_all_below_it() -> None:
    groups = [group("a", max_gpus=2), group("a/x", parent="a"), group("a/y", parent="a")]
    given = state([node("n1", 8)], groups, [job("x1", "a/x", 2), job("y1", "a/y", 2, c=0)])
    assert checked(given).objective == pytest.approx(2 * (1 / 16 + 1 / 2 + HOUR_OLD + START))


def test_a_plan_is_a_solution_of_its_own_program() -> None:
    given = state([node("n1", 4)], [group("a"), group("b")], [job("a1", "a", 2), job("b1", "b", 2)])
    plan: Plan = allocate(given)
    found = cross_check(given, plan.policy, plan)
    assert found.plan_goals == pytest.approx(dict.fromkeys(found.plan_goals, 0.0) | dict(found.goals))
