"""What is proven about a plan, for people."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from evenhand_api.report.text import heading, number, percent, table
from evenhand_models import Certificate, CertificateStatus, Plan


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
    yield Text(
        f"objective {number(proof.objective, 3)}, bound {number(proof.bound, 3)}; "
        f"throughput {number(proof.throughput, 2)} of {number(proof.target_throughput, 2)} in the fair target"
        + _against("at most", proof.upper_bound)
        + _against("equal split", proof.equal_split)
        + _against("max-min", proof.max_min)
    )
    yield from _envy(proof)
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


def _envy(proof: Certificate) -> Iterator[RenderableType]:
    slack = proof.floor_slack + proof.target_envy_slack
    yield Text(
        f"largest envy {percent(proof.max_envy)}; in the fair target "
        + ("no envy, and every group has at least its own slice" if slack <= 1e-6 else f"slack {number(slack, 6)}")
    )
    if proof.envy:
        pairs = table("envies", "whom", ("envy", "right"), ("forced by protection", "right"), ("ours", "right"))
        for pair in sorted(proof.envy, key=lambda p: (-p.envy, p.group, p.envied))[:10]:
            parts = (percent(pair.envy), percent(pair.forced_by_pins), percent(pair.ours))
            pairs.add_row(Text(pair.group), Text(pair.envied), *parts)
        yield pairs
        if len(proof.envy) > 10:
            yield Text(f"and {len(proof.envy) - 10:,} more pairs", style="dim")


def _against(name: str, value: float | None) -> str:
    return "" if value is None else f", {name} {number(value, 2)}"


def _hash(plan: Plan) -> str:
    return "" if plan.solver.plan_hash is None else f", plan {plan.solver.plan_hash[:16]}"
