"""The independent audit accepts every plan (rules C, G, P, R, U, L, A)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from strategies import policies, states
from strategies.sweeps import sweep

from evenhand import allocate, audit
from evenhand_models import ClusterState, Policy


def the_audit_accepts(state: ClusterState, policy: Policy) -> str:
    plan = allocate(state, policy)
    report = audit(state, plan)
    assert report.ok, report.findings
    assert [answer.job for answer in plan.assignments] == sorted(job.id for job in state.jobs)
    assert [row.group for row in plan.groups] == sorted(group.id for group in state.groups)
    assert plan.certificate.status != "fallback", plan.warnings
    return str(plan.certificate.status)


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(states("small"), policies())
def test_the_audit_accepts(state: ClusterState, policy: Policy) -> None:
    the_audit_accepts(state, policy)


@pytest.mark.heavy
def test_the_audit_accepts_5000_plans() -> None:
    sweep(the_audit_accepts, 4_500, "small")
    sweep(the_audit_accepts, 500, "medium")
