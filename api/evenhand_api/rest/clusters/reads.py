"""What the ledger says of a cluster, as documents: each function reads one moment of the ledger."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select

from evenhand_api.ledger.amounts import as_gpu_hours
from evenhand_api.ledger.clusters import Cluster, find_cluster, list_clusters
from evenhand_api.ledger.errors import UnknownName
from evenhand_api.ledger.explanations import explanation_of
from evenhand_api.ledger.instants import HOUR, SECOND, to_us, written
from evenhand_api.ledger.occupancy import held_hours
from evenhand_api.ledger.owed import OwedHour, owed_received
from evenhand_api.ledger.round_records import answer_of, read_round
from evenhand_api.ledger.rounds import usage_of
from evenhand_api.ledger.tables import rounds

Document = dict[str, Any]
DEFAULT_PERIOD = 168 * HOUR
"""How far back a report over a period goes if it is not said: a week."""


def clusters_document(connection: Connection) -> Document:
    """List the clusters."""
    return {"clusters": list_clusters(connection)}


def cluster_document(connection: Connection, name: str) -> Document:
    """Say how a cluster stands: its versions, its last round, the configuration in force, its nodes now."""
    cluster = find_cluster(connection, name)
    return {
        "cluster": cluster.name,
        "state_version": cluster.state_version,
        "config_version": cluster.config_version,
        "last_round": cluster.last_round,
        "last_now": None if cluster.last_now_us is None else written(cluster.last_now_us),
        "config": cluster.config.model_dump(mode="json"),
        "nodes": [node.model_dump(mode="json") for node in cluster.nodes],
    }


def round_bytes(connection: Connection, name: str, n: int) -> bytes:
    """Give a round as it was answered."""
    return answer_of(name, read_round(connection, find_cluster(connection, name), n))


def rounds_document(connection: Connection, name: str, before: int | None, most: int) -> Document:
    """List rounds, the latest first."""
    cluster = find_cluster(connection, name)
    r = rounds.c
    query = select(r.n, r.now_us, r.state_version, r.config_version, r.state_hash, r.plan_hash, r.certificate)
    query = query.where(r.cluster_id == cluster.id, r.n < (2**31 - 1 if before is None else before))
    listed = []
    for row in connection.execute(query.order_by(r.n.desc()).limit(most)):
        status = json.loads(row.certificate)["status"]
        listed.append({"round": row.n, "now": written(row.now_us), "state_version": row.state_version})
        listed[-1] |= {"config_version": row.config_version, "state_hash": row.state_hash}
        listed[-1] |= {"plan_hash": row.plan_hash, "status": status}
    return {"cluster": name, "rounds": listed}


def explanation_document(connection: Connection, name: str, job: str) -> Document:
    """Say what was last decided about a job and why, and every change before it."""
    cluster = find_cluster(connection, name)
    return {"cluster": name} | explanation_of(connection, cluster, job)


def groups_document(connection: Connection, name: str, at: datetime | None) -> Document:
    """Say for every group what it used in the window up to an instant, and how it fared in the last round."""
    cluster = find_cluster(connection, name)
    at_us = _instant(cluster, at)
    own = {use.group: use.charged_gpu_hours for use in usage_of(connection, cluster, at_us)}
    whole: dict[str, float] = dict.fromkeys((group.id for group in cluster.config.groups), 0.0)
    parents = {group.id: group.parent for group in cluster.config.groups}
    for group, used in own.items():
        above: str | None = group
        while above in parents:
            whole[above] += used
            above = parents[above]
    said = {} if cluster.last_round == 0 else json.loads(read_round(connection, cluster, cluster.last_round).groups)
    listed = [
        {
            "group": group.id,
            "parent": group.parent,
            "share": group.share,
            "own_usage_gpu_hours": own.get(group.id, 0.0),
            "usage_gpu_hours": whole[group.id],
            "last_round": said.get(group.id, {}).get("report"),
        }
        for group in sorted(cluster.config.groups, key=lambda group: group.id)
    ]
    return {"cluster": name, "at": written(at_us), "round": cluster.last_round, "groups": listed}


def owed_document(connection: Connection, name: str, start: datetime | None, end: datetime | None) -> Document:
    """Compare what groups were owed with what they received, by hour and over the period."""
    cluster = find_cluster(connection, name)
    from_us, to_us_ = _period(cluster, start, end)
    found = owed_received(connection, cluster.id, cluster.config.groups, from_us, to_us_)
    leaves = {g.id for g in cluster.config.groups} - {g.parent for g in cluster.config.groups}
    by_group: dict[str, list[OwedHour]] = {}
    for hour in found:
        by_group.setdefault(hour.group, []).append(hour)
    listed = [
        {
            "hour_at": written(hour.hour * HOUR),
            "group": hour.group,
            "demand_gpu_hours": hour.demand,
            "due_gpu_hours": hour.due,
            "owed_gpu_hours": hour.owed,
            "received_gpu_hours": hour.received,
        }
        for hour in found
    ]
    sums = [{"group": group} | _delivered(own) for group, own in sorted(by_group.items())]
    at_the_leaves = [by_group[group] for group in sorted(leaves & by_group.keys())]
    return {
        "cluster": name,
        "from_at": written(from_us),
        "to_at": written(to_us_),
        "hours": listed,
        "groups": sums,
        "all_leaves": _delivered_over(at_the_leaves),
    }


def _delivered(own: list[OwedHour]) -> Document:
    return _delivered_over([own])


def _delivered_over(groups: list[list[OwedHour]]) -> Document:
    """Two figures: paid back within the period counts in the first, each hour by itself in the second."""
    owed = sum(hour.owed for own in groups for hour in own)
    received = sum(hour.received for own in groups for hour in own)
    over = sum(min(sum(h.received for h in own), sum(h.owed for h in own)) for own in groups)
    in_hour = sum(min(hour.received, hour.owed) for own in groups for hour in own)
    return {
        "owed_gpu_hours": owed,
        "received_gpu_hours": received,
        "delivered_over_the_period": over / owed if owed else None,
        "delivered_in_the_hour": in_hour / owed if owed else None,
    }


def occupancy_document(connection: Connection, name: str, start: datetime | None, end: datetime | None) -> Document:
    """Hold what groups hold against what their jobs report to use."""
    cluster = find_cluster(connection, name)
    from_us, to_us_ = _period(cluster, start, end)
    said: Mapping[str, Any] = {"groups": [], "idle": []}
    if cluster.last_round:
        said = json.loads(read_round(connection, cluster, cluster.last_round).occupancy)
    for cell in said["groups"]:
        cell["utilization"] = cell["used_gpus"] / cell["reported_gpus"] if cell["reported_gpus"] else None
    return {
        "cluster": name,
        "round": cluster.last_round,
        "groups": said["groups"],
        "idle": said["idle"],
        "from_at": written(from_us),
        "to_at": written(to_us_),
        "held": held_hours(connection, cluster.id, from_us, to_us_),
    }


def usage_document(connection: Connection, name: str, start: datetime | None, end: datetime | None) -> Document:
    """Say what each group was charged over a period, exactly."""
    from evenhand_api.ledger.usage import window_usage

    cluster = find_cluster(connection, name)
    from_us, to_us_ = _period(cluster, start, end)
    used = window_usage(connection, cluster.id, from_us, to_us_)
    listed = [{"group": group, "charged_gpu_hours": as_gpu_hours(amount)} for group, amount in used.items()]
    return {"cluster": name, "from_at": written(from_us), "to_at": written(to_us_), "groups": listed}


Read = Callable[[Connection], Any]


def _instant(cluster: Cluster, at: datetime | None) -> int:
    if at is not None:
        return to_us(at)
    if cluster.last_now_us is None:
        raise UnknownName(f"cluster {cluster.name!r} has had no round yet: say at which instant")
    return cluster.last_now_us


def _period(cluster: Cluster, start: datetime | None, end: datetime | None) -> tuple[int, int]:
    to = _instant(cluster, end)
    begin = to_us(start) if start is not None else to - min(DEFAULT_PERIOD, cluster.policy.window_s * SECOND)
    return min(max(begin, cluster.kept_from_us), to), to
