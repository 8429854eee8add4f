"""Clusters, groups and jobs in the short form of the cases, and a round whose plan has passed the audit.

`nodes("2x8 H100, 1x4 A100")` are n0 to n2; `job("j", "A", 8, c=60, on={"n0": 8}, ran=90)` has run for 90
minutes, with a contract of 60. It is noon.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from strategies import apply_plan

from evenhand import allocate, audit
from evenhand_models import (
    Assignment,
    ClusterState,
    Contract,
    GpuType,
    Group,
    GroupReport,
    Job,
    Node,
    Placement,
    Plan,
    Policy,
    Reason,
    ReasonCode,
    Usage,
    WarningCode,
)

NOW = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)
WEEK_H = 168.0


def after(minutes: float) -> datetime:
    """So many minutes after noon; before it, if negative."""
    return NOW + timedelta(minutes=minutes)


def nodes(hardware: str, **more: Any) -> list[Node]:
    """Nodes from `2x8 H100, 1x4 A100`: count, GPUs each, type; names n0, n1 ... in that order."""
    kinds = []
    for part in hardware.split(","):
        counted, gpu_type = part.split()
        count, gpus = counted.split("x")
        kinds += [(int(gpus), gpu_type)] * int(count)
    width = len(str(len(kinds) - 1))
    return [Node(name=f"n{i:0{width}}", gpu_type=t, gpus=g, **more) for i, (g, t) in enumerate(kinds)]


def changed_node(on: Iterable[Node], name: str, **fields: Any) -> list[Node]:
    """The same nodes, fields of one of them changed."""
    return [Node.model_validate(n.model_dump() | fields) if n.name == name else n for n in on]


def job(
    id: str,
    group: str,
    gpus: int,
    *,
    c: float = 60,
    resumable: bool = True,
    on: Mapping[str, int] | None = None,
    ran: float = 0,
    now: datetime = NOW,
    **more: Any,
) -> Job:
    """A job with a contract of c minutes: pending, or running `on` nodes since `ran` minutes before `now`."""
    fields: dict[str, Any] = {"speedup": {"H100": 1.0}, "submitted_at": now - timedelta(minutes=ran or 10)}
    if on is not None:
        fields |= {
            "state": "running",
            "started_at": now - timedelta(minutes=ran),
            "placement": tuple(Placement(node=n, gpus=g) for n, g in on.items()),
        }
    contract = Contract(min_runtime_s=round(60 * c), resumable=resumable)
    return Job(id=id, group=group, gpus=gpus, contract=contract, **(fields | more))


def ones(prefix: str, group: str, count: int, **more: Any) -> list[Job]:
    """So many 1-GPU jobs that wait: prefix000, prefix001 ..."""
    return [job(f"{prefix}{i:03}", group, 1, **more) for i in range(count)]


def ones_on(on: Iterable[Node], prefix: str, group: str, count: int, **more: Any) -> list[Job]:
    """So many 1-GPU jobs that run on the first GPUs of these nodes."""
    places = [n.name for n in on for _ in range(n.gpus)]
    return [job(f"{prefix}{i:03}", group, 1, on={places[i]: 1}, **more) for i in range(count)]


def cluster(
    on: str | list[Node],
    groups: Mapping[str, float] | list[Group],
    jobs: Iterable[Job] = (),
    used: Mapping[str, float] | None = None,
    *,
    rates: Mapping[str, float] | None = None,
    now: datetime = NOW,
) -> ClusterState:
    """A state; `used` are charged GPU-hours in the window by group, `rates` charge rates by type."""
    hardware = nodes(on) if isinstance(on, str) else on
    tree = groups if isinstance(groups, list) else [Group(id=g, share=w) for g, w in groups.items()]
    kinds = sorted({n.gpu_type for n in hardware})
    return ClusterState(
        now=now,
        gpu_types=[GpuType(name=k, charge_rate=(rates or {}).get(k, 1.0)) for k in kinds],
        nodes=hardware,
        groups=tree,
        usage=[Usage(group=g, charged_gpu_hours=h) for g, h in (used or {}).items()],
        jobs=list(jobs),
    )


def solve(state: ClusterState, policy: Policy | None = None) -> Plan:
    """Decide a round; its plan has passed the audit."""
    plan = allocate(state, policy)
    report = audit(state, plan, policy or Policy())
    assert report.ok, report.findings
    assert plan.certificate.verified
    assert plan.certificate.status != "fallback", plan.warnings
    return plan


def of(plan: Plan, name: str) -> Assignment:
    """The assignment of a job."""
    return next(a for a in plan.assignments if a.job == name)


def actions(plan: Plan) -> dict[str, str]:
    """Action by job."""
    return {a.job: a.action.value for a in plan.assignments}


def who(plan: Plan, action: str) -> set[str]:
    """The jobs with an action."""
    return {a.job for a in plan.assignments if a.action == action}


def standing(plan: Plan, name: str) -> GroupReport:
    """The report of a group."""
    return next(g for g in plan.groups if g.group == name)


def places(plan: Plan, name: str) -> dict[str, int]:
    """GPUs by node of a job."""
    return {part.node: part.gpus for part in of(plan, name).placement}


def codes(plan: Plan, name: str) -> list[str]:
    """Codes of a job's reasons, in order."""
    return [r.code.value for r in of(plan, name).reasons]


def why(plan: Plan, name: str, code: str) -> Reason:
    """The one reason of a job with this code."""
    (found,) = [r for r in of(plan, name).reasons if r.code is ReasonCode(code)]
    return found


def warned(plan: Plan, code: str) -> bool:
    """Whether the plan has a warning of this code."""
    return any(w.code is WarningCode(code) for w in plan.warnings)


def later(state: ClusterState, plan: Plan, seconds: float) -> ClusterState:
    """The state so much later: the plan done, nothing else happened, what ran was charged to its group."""
    rates = {t.name: t.charge_rate for t in state.gpu_types}
    used = {u.group: u.charged_gpu_hours for u in state.usage or ()}
    group = {j.id: j.group for j in state.jobs}
    for a in plan.assignments:
        if a.gpus and a.gpu_type and a.action in ("start", "keep", "migrate", "resize") and not a.unallocated:
            hours = a.gpus * rates[a.gpu_type] * seconds / 3600
            used[group[a.job]] = used.get(group[a.job], 0.0) + hours
    done = apply_plan(state, plan)
    usage = tuple(Usage(group=g, charged_gpu_hours=h) for g, h in used.items())
    return done.model_copy(update={"now": state.now + timedelta(seconds=seconds), "usage": usage})
