"""Why a job runs, waits or was stopped: kept after it has ended."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Connection, select

from evenhand_api.ledger.clusters import Cluster
from evenhand_api.ledger.errors import UnknownName
from evenhand_api.ledger.instants import written
from evenhand_api.ledger.packing import unpack
from evenhand_api.ledger.tables import decisions, jobs, rounds


def explanation_of(connection: Connection, cluster: Cluster, job: str) -> dict[str, Any]:
    """Return the last answer a job got, and every change decided about it, the first one first.

    Raises
    ------
    UnknownName
        If no round ever listed it.
    """
    j = jobs.c
    row = connection.execute(select(jobs).where(j.cluster_id == cluster.id, j.job == job)).one_or_none()
    if row is None or (row.last_round is None and cluster.last_round == 0):
        raise UnknownName(f"no round of cluster {cluster.name!r} has listed a job {job!r}")
    n = cluster.last_round if row.last_round is None else row.last_round
    r, d = rounds.c, decisions.c
    last = connection.execute(select(r.now_us, r.plan).where(r.cluster_id == cluster.id, r.n == n)).one_or_none()
    latest = None
    if last is not None and (assignment := assignment_in(unpack(last.plan), job)) is not None:
        latest = {"round": n, "now": written(last.now_us), "assignment": assignment}
    query = (
        select(d.n, d.assignment, r.now_us)
        .join(rounds, (r.cluster_id == d.cluster_id) & (r.n == d.n))
        .where(d.cluster_id == cluster.id, d.job == job)
        .order_by(d.n)
    )
    changes = [
        {"round": change.n, "now": written(change.now_us), "assignment": json.loads(change.assignment)}
        for change in connection.execute(query)
    ]
    return {
        "job": job,
        "group": row.group_id,
        "user": row.user_id,
        "listed": row.last_round is None,
        "latest": latest,
        "changes": changes,
    }


def assignment_in(plan: bytes, job: str) -> dict[str, Any] | None:
    """Find one assignment in a plan's JSON without reading all of it."""
    text = plan.decode()
    head = json.dumps({"job": job}, ensure_ascii=False, separators=(",", ":"))[:-1] + ',"action":'
    at = text.find(head)
    if at < 0:
        return None
    assignment: dict[str, Any] = json.JSONDecoder().raw_decode(text, at)[0]
    return assignment
