"""What is served when the better plan cannot be: the greedy one, audited, said so; never a plan that fails."""

from __future__ import annotations

import pytest
from instances import instance

import evenhand.rounds as rounds
from evenhand import AuditFailed, AuditReport, Finding, Policy, allocate, audit
from evenhand.errors import PlacementError, SolverError
from evenhand.program import solve
from evenhand.program.budget import Budget
from evenhand.program.points import Points
from evenhand_models import CertificateStatus, WarningCode


def fails(error: Exception) -> object:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize("error", [PlacementError(0, 8), SolverError("out of its mind")], ids=["placement", "solver"])
def test_a_defect_in_the_solver_is_answered_with_the_greedy_plan(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    state = instance("small")
    monkeypatch.setattr(rounds, "solve", fails(error))
    plan = allocate(state)
    assert plan.certificate.status is CertificateStatus.FALLBACK
    assert plan.certificate.bound is None
    assert plan.certificate.gap is None
    said = [w.message for w in plan.warnings if w.code is WarningCode.FALLBACK_SERVED]
    assert len(said) == 1
    assert str(error) in said[0]
    assert audit(state, plan).ok


def test_a_plan_that_fails_its_audit_is_not_served(monkeypatch: pytest.MonkeyPatch) -> None:
    state = instance("small")
    verdicts = [AuditReport((Finding("C1", "a node is over its room", ()),))]

    def once(*args: object) -> AuditReport:
        return verdicts.pop() if verdicts else AuditReport(())

    monkeypatch.setattr(rounds.Auditor, "judge", once)
    plan = allocate(state)
    assert plan.certificate.status is CertificateStatus.FALLBACK
    assert "C1: a node is over its room" in plan.warnings[-1].message or any(
        "C1: a node is over its room" in w.message for w in plan.warnings
    )


def test_nothing_is_served_if_no_plan_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds.Auditor, "judge", lambda *_: AuditReport((Finding("G1", "half a gang", ()),)))
    with pytest.raises(AuditFailed, match="half a gang") as caught:
        allocate(instance("small"))
    assert caught.value.rule == "G1"


def test_with_hardly_any_time_the_answer_keeps_every_rule() -> None:
    state = instance("small")
    policy = Policy(time_limit_s=0.05)
    plan = allocate(state, policy)
    assert audit(state, plan, policy).ok
    assert plan.certificate.bound is None or plan.certificate.bound >= plan.certificate.objective


def test_there_is_a_bound_however_little_time_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Budget, "wall_s", property(lambda _: 1e-9))
    proof = allocate(instance("small")).certificate
    assert proof.bound is not None
    assert proof.bound >= proof.objective


def test_there_is_a_bound_where_no_time_was_left_for_a_first_point(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Points, "completed", lambda *_: None)
    monkeypatch.setattr(solve, "WHOLE_MOVES", 0)
    monkeypatch.setattr(solve, "SURE_MOVES", 0)
    proof = allocate(instance("medium"), Policy(time_limit_s=3.0)).certificate
    assert proof.bound is not None
    assert proof.bound >= proof.objective
