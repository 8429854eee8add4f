"""What is counted of a round: taken from the plan where it was made, carried to the service beside the answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from evenhand_models import Plan
from evenhand_models.reasons import WarningCode


@dataclass(frozen=True, slots=True)
class Figures:
    """One round in numbers.

    Attributes
    ----------
    cluster, round : of a stateful round; empty and None where nothing is kept.
    again : whether it is the stored answer of an idempotency key: nothing was decided.
    status : optimal, feasible or fallback.
    gap : share of the target's throughput, 0 or more; None: unknown.
    stages_ms : milliseconds by stage.
    actions : jobs by action.
    audit_failed : whether the better plan failed its audit, so that the fallback was served.
    """

    cluster: str
    round: int | None
    again: bool
    status: str
    cut_by_time: bool
    gap: float | None
    stages_ms: Mapping[str, float]
    actions: Mapping[str, int]
    audit_failed: bool
    state_hash: str
    plan_hash: str | None

    def of_round(self, cluster: str, number: int) -> Figures:
        """Return the same as those of a round that was kept."""
        return replace(self, cluster=cluster, round=number)


def figures_of(plan: Plan) -> Figures:
    """Count a plan."""
    proof = plan.certificate
    said = [warning.message for warning in plan.warnings if warning.code is WarningCode.FALLBACK_SERVED]
    return Figures(
        cluster="",
        round=None,
        again=False,
        status=proof.status.value,
        cut_by_time=proof.cut_by_time,
        gap=proof.gap,
        stages_ms=dict(plan.solver.stages_ms),
        actions=Counter(assignment.action.value for assignment in plan.assignments),
        audit_failed=any("its audit found" in message for message in said),
        state_hash=plan.solver.state_hash,
        plan_hash=plan.solver.plan_hash,
    )
