"""An independent judge of plans: from state, policy and plan alone, with no solver and none of its code.

`audit` checks every rule of docs/model.md that can be checked on one plan: how the state is read, what is
owed, the fair target, capacity, gangs, protection, preemption, limits, the order of leaving, and all numbers
of the certificate. It does not check that a plan is the best possible: that is what the bound claims.
"""

from __future__ import annotations

from collections.abc import Iterator

from evenhand.audit.answers import check_answers, names_in, telling
from evenhand.audit.certificate import check_certificate, check_groups, figures
from evenhand.audit.decisions import decisions_of
from evenhand.audit.dues import dues
from evenhand.audit.fairness import bundles_of, check_target
from evenhand.audit.reading import Reading, read
from evenhand.audit.report import AuditReport, Finding
from evenhand.audit.rules import check_reservations, check_rules
from evenhand.audit.target import aim_at, entitled_leaves
from evenhand_models import ClusterState, Plan, Policy

__all__ = ["AuditReport", "Auditor", "Finding", "audit"]


def audit(state: ClusterState, plan: Plan, policy: Policy | None = None) -> AuditReport:
    """Judge a plan.

    Parameters
    ----------
    state : ClusterState
        The state the plan answers.
    plan : Plan
        The plan; it is not changed, and its `verified` is not looked at.
    policy : Policy, optional
        The policy that was asked for; unset: the one the plan says was in force.

    Returns
    -------
    AuditReport
        All breaches found. Where assignments or group reports are missing, unknown or of the wrong kind, only
        that is reported: the rest would make no sense.
    """
    return Auditor(state, plan.policy if policy is None else policy).judge(plan)


class Auditor:
    """Reads a state once, before there is a plan, and judges any number of plans for it: see `audit`."""

    def __init__(self, state: ClusterState, policy: Policy) -> None:
        """Work out all that no plan has a say in: how the state is read, what is owed, floors and prices of leaves."""
        self._policy = policy
        self._reading = read(state, policy)
        self._names = names_in(self._reading)
        self._owed = dues(self._reading)
        self._leaves = entitled_leaves(self._reading, self._owed)

    def judge(self, plan: Plan) -> AuditReport:
        """Judge a plan made for this state and policy."""
        return AuditReport(tuple(self._findings(plan)))

    def _findings(self, plan: Plan) -> Iterator[Finding]:
        """Check step by step."""
        reading, owed = self._reading, self._owed
        if plan.policy != self._policy:
            yield Finding("A1", "the plan was made under another policy than the one asked for.")
        told = telling(reading, plan)
        broken = [*check_answers(reading, plan, told), *_check_reports(reading, plan)]
        yield from broken
        if broken:
            return
        yield from check_rules(reading, plan, told, self._names)
        given = bundles_of(reading, plan)
        target = aim_at(reading, owed, given, self._leaves)
        yield from check_target(reading, owed, target, given, proven=plan.certificate.target_proven)
        decisions = decisions_of(reading, told)
        yield from check_reservations(reading, decisions)
        seen = figures(reading, target, decisions)
        yield from check_groups(reading, owed, seen, plan)
        yield from check_certificate(reading, owed, target, decisions, seen, plan)


def _check_reports(reading: Reading, plan: Plan) -> Iterator[Finding]:
    """Check that there is one report for every group (A1)."""
    reported = [report.group for report in plan.groups]
    if sorted(reported) != sorted(reading.tree.order):
        odd = sorted(set(reported) ^ set(reading.tree.order))
        yield Finding("A1", f"there is not one report for every group: {', '.join(odd)}.", tuple(odd))
