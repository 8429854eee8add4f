"""Short ways to write states and plans, and to finish a plan whose assignments are written by hand."""

from __future__ import annotations

from typing import Any

from evenhand.audit.certificate import figures
from evenhand.audit.decisions import decisions_of
from evenhand.audit.dues import dues
from evenhand.audit.envy import PairEnvy
from evenhand.audit.reading import read
from evenhand.audit.target import aim_at, entitled_leaves
from evenhand.audit.worth import tally, worth
from evenhand_models import ClusterState, Plan, Policy

Wire = dict[str, Any]
NOW = "2026-11-01T12:00:00Z"


def at(minutes: float) -> str:
    """An instant, in minutes after noon (before it, if negative)."""
    seconds = round(43_200 + 60 * minutes)
    day, seconds = 1 + seconds // 86_400, seconds % 86_400
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}Z"
    return f"2026-11-{day:02d}T{clock}" if day > 0 else f"2026-10-{31 + day:02d}T{clock}"


def node(name: str, gpus: int, kind: str = "h100", **more: Any) -> Wire:
    """A node."""
    return {"name": name, "gpu_type": kind, "gpus": gpus, **more}


def group(name: str, share: float = 1.0, parent: str | None = None, **more: Any) -> Wire:
    """A group."""
    return {"id": name, "parent": parent, "share": share, **more}


def job(name: str, owner: str, gpus: int, **more: Any) -> Wire:
    """A pending job that came an hour ago, with a contract of an hour; `c=0` makes it unallocated."""
    contract = {"min_runtime_s": more.pop("c", 3600), "resumable": more.pop("resumable", True)}
    speedup = more.pop("speedup", {"h100": 1.0})
    return {
        "id": name,
        "group": owner,
        "gpus": gpus,
        "speedup": speedup,
        "submitted_at": at(-60),
        "contract": contract,
        **more,
    }


def running(name: str, owner: str, where: dict[str, int], **more: Any) -> Wire:
    """A job that runs since two hours, past its contract of an hour unless told otherwise."""
    placed = [{"node": place, "gpus": gpus} for place, gpus in where.items()]
    times = {"state": "running", "started_at": at(-120), "submitted_at": at(-120), "placement": placed}
    size = more.pop("gpus", sum(where.values()))
    return job(name, owner, size, **{**times, **more})


def state(
    nodes: list[Wire],
    groups: list[Wire],
    jobs: list[Wire],
    usage: dict[str, float] | None = None,
    charges: dict[str, float] | None = None,
) -> ClusterState:
    """A state at noon."""
    kinds = sorted({one["gpu_type"] for one in nodes} | set(charges or {}))
    return ClusterState.model_validate(
        {
            "now": NOW,
            "gpu_types": [{"name": kind, "charge_rate": (charges or {}).get(kind, 1.0)} for kind in kinds],
            "nodes": nodes,
            "groups": groups,
            "usage": [{"group": name, "charged_gpu_hours": hours} for name, hours in (usage or {}).items()],
            "jobs": jobs,
        }
    )


def answer(name: str, action: str, where: dict[str, int] | None = None, **more: Any) -> Wire:
    """An assignment; `why` is the code of its one reason, the type that of the cluster's h100 unless told."""
    why = more.pop("why", "capacity" if action == "wait" else "best_use")
    placed = [{"node": place, "gpus": gpus} for place, gpus in (where or {}).items()]
    base: Wire = {"job": name, "action": action, "reasons": [{"code": why, "message": "Because."}]}
    if where:
        base |= {"gpus": sum(where.values()), "gpu_type": "h100", "placement": placed}
    return base | more


def finish(given: ClusterState, answers: list[Wire], policy: Policy | None = None) -> Plan:
    """Make a plan of assignments: proportional targets, and every number as the audit works it out."""
    policy = policy or Policy()
    reading = read(given, policy)
    owed = dues(reading)
    own = {leaf.group: leaf.used(leaf.slice) for leaf in entitled_leaves(reading, owed)}
    target = aim_at(reading, owed, own)
    draft = Plan.model_validate(_plan(given, policy, answers, [], _certificate()))
    decisions = decisions_of(reading, draft.assignments)
    valued = worth(reading, owed, target, decisions)
    seen = figures(reading, target, decisions)
    below = {name: dict(own.get(name, {})) for name in reading.tree.order}
    for name in reversed(reading.tree.order):
        above = reading.tree.parent[name]
        for kind, gpus in below[name].items() if above is not None else ():
            below[above][kind] = below[above].get(kind, 0.0) + gpus
    shares = {one.id: one.share for one in given.groups}
    reports = [
        {
            "group": name,
            "share": shares[name],
            "usage_gpu_hours": owed.usage[name],
            "demand_gpus": owed.demand[name] / 1000,
            "entitled_gpus": owed.entitled[name],
            "target": below[name],
            "floor": seen.floor[name],
            "allocated": dict(seen.allocated[name]),
            "unallocated_use": dict(seen.unallocated[name]),
            "throughput": seen.throughput[name],
            "throughput_target": seen.target[name],
            "sharing_incentive": seen.throughput[name] / seen.floor[name] if seen.floor[name] else None,
            "standing": owed.standing[name],
        }
        for name in reading.tree.order
    ]
    total = sum(target.value.values())
    most, row, column = PairEnvy.of_plan(reading, target, tally(reading, decisions)).largest()
    names = [leaf.group for leaf in target.leaves]
    pair = {"group": names[row], "envied": names[column], "envy": most} if most else {}
    seal = _certificate(
        goals=[
            {"name": name, "value": value, "unit": "GPUs", "weight": valued.weights[name]}
            for name, value in valued.goals.items()
        ],
        objective=valued.total,
        bound=valued.total + 1,
        gap=1 / total if total else None,
        target_throughput=total,
        throughput=sum(seen.throughput[name] for name in reading.tree.below(None)),
        max_envy=most,
        envy=[{**pair, "forced_by_pins": 0.0, "ours": most}] if pair else [],
    )
    return Plan.model_validate(_plan(given, policy, answers, reports, seal))


def _plan(given: ClusterState, policy: Policy, answers: list[Wire], reports: list[Wire], seal: Wire) -> Wire:
    return {
        "now": given.now,
        "policy": policy.model_dump(),
        "assignments": answers,
        "groups": reports,
        "certificate": seal,
        "solver": {"engine_version": "0", "state_hash": "0"},
    }


def _certificate(**more: Any) -> Wire:
    numbers = ("objective", "target_throughput", "max_envy", "floor_slack", "target_envy_slack", "throughput")
    flags = ("capacity_ok", "protection_ok", "gangs_ok", "verified")
    return {
        "status": "feasible",
        "cut_by_time": False,
        "goals": [],
        **dict.fromkeys(numbers, 0.0),
        **dict.fromkeys(flags, True),
        "target_proven": False,
        **more,
    }


def changed(plan: Plan, path: str, value: Any) -> Plan:
    """The plan with one thing changed, at a path like ``assignments|b1|placement``."""
    wire = plan.model_dump()
    *way, last = path.split("|")
    spot: Any = wire
    for step in way:
        if isinstance(spot, list | tuple):
            spot = next(one for one in spot if step in (one.get("job"), one.get("group"), one.get("name")))
        else:
            spot = spot[step]
    spot[last] = value
    return Plan.model_validate(wire)
