"""Small clusters by hand: nodes of one size by type, groups, usage, jobs in short form."""

from __future__ import annotations

from typing import Any

from strategies.clock import NOW, stamp
from strategies.clusters import state_of

from evenhand.entitlement import Entitlement, entitle
from evenhand.snapshot import Snapshot, take_snapshot
from evenhand_models import Policy


def group(name: str, share: float = 1.0, **more: Any) -> dict[str, Any]:
    return {"id": name, "share": share, **more}


def jobs(
    owner: str, count: int, gpus: int = 1, types: tuple[str, ...] = ("h100",), **more: Any
) -> list[dict[str, Any]]:
    """So many equal jobs with a contract of an hour, waiting for an hour."""
    return [
        {
            "id": f"{owner}-{'-'.join(types)}-{gpus}-{i:05}", "group": owner, "gpus": gpus,
            "speedup": dict.fromkeys(types, 1.0), "submitted_at": stamp(NOW - 3600),
            "contract": {"min_runtime_s": 3600}, **more,
        }
        for i in range(count)
    ]  # fmt: skip


def snapshot(
    gpus: dict[str, int],
    groups: list[dict[str, Any]],
    work: list[dict[str, Any]],
    *,
    usage: dict[str, float] | None = None,
    rates: dict[str, float] | None = None,
    node: int | None = None,
    **policy: Any,
) -> Snapshot:
    """One node for each type, or nodes of `node` GPUs."""
    nodes = []
    for name, count in gpus.items():
        each = node or count
        nodes += [{"name": f"{name}-{i:03}", "gpu_type": name, "gpus": each} for i in range(count // max(each, 1))]
    wire: dict[str, Any] = {
        "now": stamp(NOW),
        "gpu_types": [{"name": name, "charge_rate": (rates or {}).get(name, 1.0)} for name in gpus],
        "nodes": nodes,
        "groups": groups,
        "jobs": work,
    }
    if usage is not None:
        wire["usage"] = [{"group": g, "charged_gpu_hours": u} for g, u in usage.items()]
    return take_snapshot(state_of(wire), Policy.model_validate(policy))


def entitled(taken: Snapshot) -> dict[str, float]:
    """What each group is owed, by id."""
    found: Entitlement = entitle(taken)
    return dict(zip(taken.tree.ids, found.entitled.tolist(), strict=True))
