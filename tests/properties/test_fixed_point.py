"""A plan that is applied and asked for again changes nothing more (rule A3)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from strategies import apply_plan, policies, states
from strategies.sweeps import Unfit, hold, sweep

from evenhand import allocate
from evenhand_models import ClusterState, Policy

STILL = {"keep", "wait", "infeasible"}


def fed_back_it_stays(state: ClusterState, policy: Policy) -> str:
    plan = allocate(state, policy)
    if plan.certificate.status != "optimal":
        raise Unfit("not proven")
    for answer in plan.assignments:
        if answer.action == "keep" and answer.job in _terminating(state):
            assert answer.reasons[0].code == "terminating"
    after = apply_plan(state, plan)
    again = allocate(after, policy)
    if again.certificate.status != "optimal":
        raise Unfit("not proven")
    moved = {answer.job: answer.action.value for answer in again.assignments if answer.action not in STILL}
    before = {answer.job: answer.action.value for answer in plan.assignments}
    assert not moved, f"{moved} after {before}"
    infeasible = {answer.job for answer in again.assignments if answer.action == "infeasible"}
    assert infeasible <= {job for job, action in before.items() if action in ("infeasible", "preempt")}
    return "changed, then still" if set(before.values()) - STILL else "still at once"


def _terminating(state: ClusterState) -> set[str]:
    return {job.id for job in state.jobs if job.state == "terminating"}


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(states("small"), policies())
def test_fed_back_it_stays(state: ClusterState, policy: Policy) -> None:
    hold(fed_back_it_stays, state, policy)


@pytest.mark.heavy
def test_fed_back_500_plans_stay() -> None:
    sweep(fed_back_it_stays, 500, "small", most_unfit=0.02)
