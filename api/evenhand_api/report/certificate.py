"""What is proven about a plan, for people."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from evenhand_api.report.text import heading, number, percent, table
from evenhand_models import Certificate, CertificateStatus, Objective, Plan


def certificate_report(plan: Plan) -> Iterator[RenderableType]:
    """Yield status, goals, envy, throughput and timings."""
    proof = plan.certificate
    yield heading("Certificate")
    yield _status(proof)
    goals = table("goal", ("value", "right"), ("bound", "right"), "unit", ("weight", "right"))
    for goal in proof.goals:
        goals.add_row(
            Text(goal.name),
            number(goal.value, 3),
            number(goal.bound, 3),
            Text(goal.unit),
            f"{goal.weight:.6g}",
        )
    yield goals
    yield Text(f"objective {number(proof.objective, 3)}, bound {number(proof.bound, 3)}")
    yield _divisions(proof)
    yield from _fairness(plan)
    yield Text(f"engine {plan.solver.engine_version}, state {plan.solver.state_hash[:16]}{_hash(plan)}")
    if plan.solver.stages_ms:
        stages = ", ".join(f"{name} {number(ms)}" for name, ms in plan.solver.stages_ms.items())
        yield Text(f"milliseconds: {stages}")


def _status(proof: Certificate) -> Text:
    style = "green" if proof.verified and proof.status is not CertificateStatus.FALLBACK else "bold red"
    rules = {"capacity": proof.capacity_ok, "protection": proof.protection_ok, "gangs": proof.gangs_ok}
    broken = [name for name, holds in rules.items() if not holds]
    return Text.assemble(
        (str(proof.status), style),
        f", gap {percent(proof.gap)}",
        ", cut by time" if proof.cut_by_time else "",
        ", verified" if proof.verified else ", NOT VERIFIED",
        f", broken: {', '.join(broken)}" if broken else ", capacity, protection and gangs hold",
    )


def _divisions(proof: Certificate) -> RenderableType:
    """Throughput of the plan against that of other divisions of the same GPUs: the price of fairness."""
    listed = table("throughput", ("GPUs", "right"), ("of the target", "right"))
    figures = (
        ("this plan", proof.throughput),
        ("fair target", proof.target_throughput),
        ("equal split", proof.equal_split),
        ("max-min", proof.max_min),
        ("at most", proof.upper_bound),
    )
    for name, value in figures:
        if value is not None:
            part = value / proof.target_throughput if proof.target_throughput > 0 else None
            listed.add_row(Text(name), number(value, 2), percent(part))
    return listed


def _fairness(plan: Plan) -> Iterator[RenderableType]:
    """What the fair target misses, and whom the plan leaves envious."""
    proof = plan.certificate
    promised = plan.policy.objective is Objective.ENVY_FREE
    envy = number(proof.target_envy_slack, 6) if promised else f"not bounded by {plan.policy.objective}"
    yield Text(f"in the fair target: floors missed by {number(proof.floor_slack, 6)}, envy {envy}, {_pareto(proof)}")
    yield Text(f"largest envy under the plan {percent(proof.max_envy)} of the envier's slice")
    if proof.envy:
        pairs = table("envies", "whom", ("envy", "right"), ("forced by protection", "right"), ("ours", "right"))
        for pair in sorted(proof.envy, key=lambda p: (-p.envy, p.group, p.envied))[:10]:
            parts = (percent(pair.envy), percent(pair.forced_by_pins), percent(pair.ours))
            pairs.add_row(Text(pair.group), Text(pair.envied), *parts)
        yield pairs
        if len(proof.envy) > 10:
            yield Text(f"and {len(proof.envy) - 10:,} more pairs", style="dim")


def _pareto(proof: Certificate) -> str:
    if proof.pareto_gap is None:
        return "Pareto gap not computed"
    return f"at most {percent(proof.pareto_gap)} more with no group worse off"


def _hash(plan: Plan) -> str:
    return "" if plan.solver.plan_hash is None else f", plan {plan.solver.plan_hash[:16]}"
