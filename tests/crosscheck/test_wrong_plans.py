"""The second formulation finds out plans that are not what they claim to be."""

from typing import Any

from audit.build import answer, finish, group, job, node, running, state

from evenhand import Plan, Policy, allocate
from evenhand.crosscheck import CrossCheck, cross_check
from evenhand_models import ClusterState

TWO = state([node("n1", 4)], [group("a"), group("b")], [job("a1", "a", 2), job("b1", "b", 2)])
FULL = state([node("n1", 4)], [group("a"), group("b")], [running("a1", "a", {"n1": 4}), job("b1", "b", 2, c=0)])


def claiming(plan: Plan, **claims: Any) -> Plan:
    """The plan with another certificate."""
    return plan.model_copy(update={"certificate": plan.certificate.model_copy(update=claims)})


def called_optimal(given: ClusterState, answers: list[dict[str, Any]]) -> Plan:
    """A plan that claims to be the best."""
    plan = finish(given, answers)
    return claiming(plan, status="optimal", bound=plan.certificate.objective, gap=0.0)


def verdict(given: ClusterState, plan: Plan) -> CrossCheck:
    return cross_check(given, Policy(), plan)


def test_a_plan_that_leaves_work_waiting_is_not_the_best() -> None:
    plan = called_optimal(TWO, [answer("a1", "start", {"n1": 2}), answer("b1", "wait")])
    found = verdict(TWO, plan)
    assert not found.agrees
    assert "none is said to pass" in found.message


def test_the_same_plan_called_feasible_is_honest_within_its_bound() -> None:
    plan = finish(TWO, [answer("a1", "start", {"n1": 2}), answer("b1", "wait")])
    assert not verdict(TWO, plan).agrees  # its bound is 1 above, too low
    assert verdict(TWO, claiming(plan, bound=1000.0)).agrees


def test_a_plan_that_claims_more_than_it_is_worth_is_found_out() -> None:
    plan = allocate(TWO)
    high = claiming(plan, objective=plan.certificate.objective + 1)
    found = verdict(TWO, high)
    assert not found.agrees
    assert "is worth" in found.message
    assert "no plan can pass" in found.message


def test_a_node_over_its_room_breaks_its_row() -> None:
    given = state([node("n1", 3), node("n2", 3)], [group("a")], [job("a1", "a", 2), job("a2", "a", 2)])
    plan = called_optimal(given, [answer("a1", "start", {"n1": 2}), answer("a2", "start", {"n1": 2})])
    assert "C1_node_n1" in verdict(given, plan).message


def test_a_budgeted_job_preempted_for_unallocated_work_breaks_its_row() -> None:
    plan = called_optimal(FULL, [answer("a1", "preempt", why="preempted_for"), answer("b1", "start", {"n1": 2})])
    assert "R1_job_a1" in verdict(FULL, plan).message


def test_a_protected_job_has_no_way_but_to_stay() -> None:
    pinned = running("a1", "a", {"n1": 4}, started_at="2026-11-01T11:59:00Z")
    given = state([node("n1", 4), node("n2", 4)], [group("a")], [pinned])
    plan = called_optimal(given, [answer("a1", "migrate", {"n2": 4})])
    assert "migrate of 4 GPUs of h100 is not possible" in verdict(given, plan).message
