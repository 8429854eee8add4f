"""Held against used: how many GPUs groups hold, how much of them their jobs report to use, who holds them idle.

Reported only: nothing is decided by it, and no job is stopped for it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from sqlalchemy import Connection, func, select

from evenhand_api.ledger.instants import HOUR, to_us, written
from evenhand_api.ledger.tables import holds, hours
from evenhand_models import ClusterState

IDLE = 0.05
"""A job that reports to use no more than this part of its GPUs holds them idle."""
MOST_IDLE = 1_000
"""Most idle jobs listed, those that hold most first."""


def occupancy_of(state: ClusterState) -> dict[str, Any]:
    """Say what the jobs of a state hold and what they report to use, by group and type.

    Returns
    -------
    dict
        ``groups``: held GPUs, those of them whose jobs report a utilization, and the GPUs in use by that report;
        ``idle``: the jobs that hold GPUs idle.
    """
    types = {node.name: node.gpu_type for node in state.nodes}
    sums: dict[tuple[str, str], dict[str, float]] = {}
    idle: list[dict[str, Any]] = []
    for job in state.jobs:
        if not job.holds_gpus:
            continue
        for part in job.placement:
            cell = sums.setdefault(
                (job.group, types.get(part.node, "")), {"held_gpus": 0, "reported_gpus": 0, "used_gpus": 0.0}
            )
            cell["held_gpus"] += part.gpus
            if job.utilization is not None:
                cell["reported_gpus"] += part.gpus
                cell["used_gpus"] += part.gpus * job.utilization
        if job.utilization is not None and job.utilization <= IDLE and job.started_at is not None:
            since = written(to_us(job.started_at))
            idle.append({"job": job.id, "group": job.group, "user": job.user, "gpus": job.placed_gpus})
            idle[-1] |= {"utilization": job.utilization, "since_at": since}
    idle.sort(key=lambda one: (-one["gpus"], one["job"]))
    groups = [{"group": group, "gpu_type": kind} | cell for (group, kind), cell in sorted(sums.items())]
    return {"groups": groups, "idle": idle[:MOST_IDLE]}


def held_hours(connection: Connection, cluster_id: int, from_us: int, to_us: int) -> list[dict[str, Any]]:
    """Return GPU-hours held by group and type: whole hours of [from, to), what goes on up to `to`."""
    h = hours.c
    first, last = from_us // HOUR, -(-to_us // HOUR)
    query = (
        select(h.group_id, h.gpu_type, h.charged, func.sum(h.held_us))
        .where(h.cluster_id == cluster_id, h.hour >= first, h.hour < last)
        .group_by(h.group_id, h.gpu_type, h.charged)
    )
    held: dict[tuple[str, str, bool], int] = defaultdict(int)
    for group, kind, charged, amount in connection.execute(query):
        held[group, kind, bool(charged)] += int(amount)
    for row in connection.execute(select(holds).where(holds.c.cluster_id == cluster_id)):
        lasted = to_us - max(first * HOUR, row.since_us)
        if lasted > 0:
            held[row.group_id or "", row.gpu_type, bool(row.charged)] += row.gpus * lasted
    return [
        {"group": group, "gpu_type": kind, "charged": charged, "gpu_hours": amount / HOUR}
        for (group, kind, charged), amount in sorted(held.items())
        if amount
    ]
