"""Rounds as they are kept: what went in, what came out, what was decided about each job."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from evenhand_api.ledger.clusters import Cluster, nodes_text
from evenhand_api.ledger.errors import KeyReused, UnknownName
from evenhand_api.ledger.fading import keep_faded
from evenhand_api.ledger.instants import to_us, wall_clock_us
from evenhand_api.ledger.occupancy import occupancy_of
from evenhand_api.ledger.owed import add_owed, due_of
from evenhand_api.ledger.packing import pack, unpack
from evenhand_api.ledger.tables import clusters, decisions, jobs, rounds
from evenhand_models import Action, ClusterState, Plan
from evenhand_models.hashing import canonical_state_bytes

CHANGES = frozenset({Action.START, Action.MIGRATE, Action.RESIZE, Action.PREEMPT})
"""What is kept of every round job by job; `infeasible` is kept when it is first said."""


def stored_answer(connection: Connection, cluster: Cluster, key: str, body_hash: str) -> bytes | None:
    """Return the answer an idempotency key got before, None if it is new.

    Raises
    ------
    KeyReused
        If it came with another body.
    """
    r = rounds.c
    row = connection.execute(select(rounds).where(r.cluster_id == cluster.id, r.idempotency_key == key)).one_or_none()
    if row is None:
        return None
    if row.body_hash != body_hash:
        raise KeyReused(f"the idempotency key was used for round {row.n} with another body")
    return answer_of(cluster.name, row)


def read_round(connection: Connection, cluster: Cluster, n: int) -> Row[Any]:
    """Read a round.

    Raises
    ------
    UnknownName
        If there is none of that number.
    """
    r = rounds.c
    row = connection.execute(select(rounds).where(r.cluster_id == cluster.id, r.n == n)).one_or_none()
    if row is None:
        raise UnknownName(f"cluster {cluster.name!r} has no round {n}")
    return row


def answer_of(name: str, row: Row[Any]) -> bytes:
    """Write a round as the service answers it: its number, the state_version it made, the plan."""
    return written_answer(name, row.n, row.state_version, unpack(row.plan))


def written_answer(name: str, n: int, state_version: int, plan: bytes) -> bytes:
    """Write an answer around a plan that is written already."""
    head = json.dumps({"cluster": name, "round": n, "state_version": state_version})
    return head[:-1].encode() + b',"plan":' + plan + b"}"


def store_round(
    connection: Connection,
    cluster: Cluster,
    state: ClusterState,
    plan: Plan,
    down: Mapping[str, int],
    key: str | None,
    body_hash: str,
) -> bytes:
    """Write a round and everything that follows from it; returns the answer.

    Parameters
    ----------
    connection : in a transaction that writes, the cluster's row locked, the state observed.
    cluster : the cluster before the round.
    state : what was decided on, usage included.
    down : nodes that are down, from `observe`.
    key, body_hash : the idempotency key if there is one, and SHA-256 of the request's body.
    """
    n, version, now_us = cluster.last_round + 1, cluster.state_version + 1, to_us(state.now)
    plan_bytes = plan.to_json_bytes()
    if cluster.last_now_us is not None:
        before = read_round(connection, cluster, cluster.last_round)
        add_owed(connection, cluster.id, json.loads(before.groups), cluster.last_now_us, now_us)
    values = {
        "cluster_id": cluster.id,
        "n": n,
        "now_us": now_us,
        "state_version": version,
        "config_version": cluster.config_version,
        "idempotency_key": key,
        "body_hash": body_hash,
        "state_hash": plan.solver.state_hash,
        "plan_hash": plan.solver.plan_hash,
        "engine_version": plan.solver.engine_version,
        "policy": plan.policy.model_dump_json(),
        "certificate": plan.certificate.model_dump_json(),
        "groups": json.dumps(due_of(cluster.terms, state, plan)),
        "occupancy": json.dumps(occupancy_of(state)),
        "state": pack(canonical_state_bytes(state)),
        "plan": pack(plan_bytes),
        "recorded_us": wall_clock_us(),
    }
    connection.execute(insert(rounds).values(values))
    _store_decisions(connection, cluster.id, n, plan)
    keep_faded(connection, cluster.id, now_us, cluster.policy.half_life_s)
    mine = clusters.c.id == cluster.id
    moved = {"state_version": version, "last_round": n, "last_now_us": now_us}
    kept = {"nodes": nodes_text(state.nodes), "down": json.dumps(down)}
    connection.execute(update(clusters).where(mine).values(moved | kept))
    return written_answer(cluster.name, n, version, plan_bytes)


def _store_decisions(connection: Connection, cluster_id: int, n: int, plan: Plan) -> None:
    j = jobs.c
    query = select(j.job).where(j.cluster_id == cluster_id, j.first_round == n)
    new = set(connection.execute(query).scalars())
    told = [a for a in plan.assignments if a.action in CHANGES or (a.action is Action.INFEASIBLE and a.job in new)]
    rows = [
        {
            "cluster_id": cluster_id,
            "job": a.job,
            "n": n,
            "action": a.action.value,
            "assignment": a.model_dump_json(exclude_defaults=True),
        }
        for a in told
    ]
    if rows:
        connection.execute(insert(decisions), rows)
