"""What a round's state tells the ledger: which jobs hold what, which are gone, which nodes are down.

Only what differs from the round before becomes a fact: a round of jobs that go on writes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Row, Table, bindparam, or_, select, update

from evenhand_api.ledger.clusters import Cluster
from evenhand_api.ledger.facts import Fact, NodeFact, add_new, in_chunks, record, record_nodes
from evenhand_api.ledger.holding import Holding, read_holding
from evenhand_api.ledger.instants import to_us
from evenhand_api.ledger.kinds import Source
from evenhand_api.ledger.settle import settle
from evenhand_api.ledger.tables import incarnations, jobs
from evenhand_models import ClusterState, Job, Node, NodeStatus


def observe(connection: Connection, cluster: Cluster, state: ClusterState) -> dict[str, int]:
    """Record what a round's state shows, and settle every job it concerns.

    Parameters
    ----------
    connection : in a transaction that writes, the cluster's row locked.
    cluster : the cluster before this round.
    state : the whole state of this round, nodes as they are now.

    Returns
    -------
    dict
        The nodes that are down or gone, with since when: what the next round is compared with.
    """
    now_us = to_us(state.now)
    nodes = {node.name: node for node in state.nodes}
    holding = [job for job in state.jobs if job.holds_gpus]
    _register(connection, cluster, state)
    down = _down(cluster, nodes, holding, now_us)
    concerned = record_nodes(connection, cluster.id, _node_facts(cluster.down, down, now_us))
    concerned |= _sight(connection, cluster, nodes, holding, now_us)
    settle(connection, cluster.id, concerned, now_us)
    return down


def holding_of(cluster: Cluster, nodes: Mapping[str, Node], job: Job, before: Holding | None) -> Holding:
    """Say what a running job holds and on which terms."""
    types = {nodes[part.node].gpu_type for part in job.placement if part.node in nodes}
    gpu_type = min(types) if types else ("" if before is None else before.gpu_type)
    return Holding(
        gpu_type=gpu_type,
        on=tuple((part.node, part.gpus) for part in job.placement),
        group=cluster.terms.charged_to(job.group),
        user=job.user,
        charged=cluster.terms.is_charged(job.group, job.contract.min_runtime_s),
        rate_m=cluster.terms.rate_m(gpu_type),
    )


def _down(cluster: Cluster, nodes: Mapping[str, Node], holding: list[Job], now_us: int) -> dict[str, int]:
    """Nodes that are down, and those jobs hold that are not listed, with since when."""
    since: dict[str, int] = {}
    for name, node in nodes.items():
        if node.status is NodeStatus.DOWN:
            said = None if node.down_since_at is None else min(now_us, to_us(node.down_since_at))
            since[name] = cluster.down.get(name, now_us) if said is None else said
    held = {part.node for job in holding for part in job.placement}
    for name in held - nodes.keys():
        since[name] = cluster.down.get(name, now_us)
    return dict(sorted(since.items()))


def _node_facts(before: Mapping[str, int], after: Mapping[str, int], now_us: int) -> list[NodeFact]:
    """What changed about nodes since the round before."""
    changed = [(name, since) for name, since in after.items() if before.get(name) != since]
    found = [NodeFact(name, since, False) for name, since in changed]
    found += [NodeFact(name, now_us, False) for name, since in changed if since < now_us]
    return found + [NodeFact(name, now_us, True) for name in before if name not in after]


def _sight(
    connection: Connection, cluster: Cluster, nodes: Mapping[str, Node], holding: list[Job], now_us: int
) -> set[str]:
    """Record what is new about jobs that hold GPUs, and who no longer does; returns the jobs concerned."""
    known = _known(connection, cluster.id, holding)
    concerned: set[str] = set()
    seen: set[tuple[str, int]] = set()
    new_facts, sighted = [], []
    for job in holding:
        assert job.started_at is not None
        start = job.id, to_us(job.started_at)
        seen.add(start)
        row = known.get(start)
        before = None if row is None or row.sighted is None else row.sighted
        now_held = holding_of(cluster, nodes, job, None if before is None else read_holding(before))
        text = now_held.written()
        if row is not None and row.present and before == text:
            continue
        concerned.add(job.id)
        sighted.append((start, text))
        if before != text:
            new_facts.append(Fact(job.id, Source.ROUND, now_us, start[1], now_held))
    record(connection, cluster.id, new_facts)
    now_here = {"present": True, "seen_us": None}
    here = [{"job": name, "started_us": started, "sighted": text} | now_here for (name, started), text in sighted]
    _update(connection, incarnations, cluster.id, here)
    gone = [start for start, row in known.items() if start not in seen and row.present]
    no_more = {"present": False, "seen_us": cluster.last_now_us}
    _update(connection, incarnations, cluster.id, [{"job": n, "started_us": s} | no_more for n, s in gone])
    return concerned | {start[0] for start, row in known.items() if start not in seen and _may_go_on(row)}


def _may_go_on(row: Row[Any]) -> bool:
    return row.present or row.end_us is None


def _known(connection: Connection, cluster_id: int, holding: list[Job]) -> dict[tuple[str, int], Any]:
    """The starts that the last round showed or that go on, and all starts of jobs that are not among them."""
    i = incarnations.c
    going = select(incarnations).where(i.cluster_id == cluster_id, or_(i.present.is_(True), i.end_us.is_(None)))
    known = {(row.job, row.started_us): row for row in connection.execute(going)}
    missing = [j.id for j in holding if j.started_at is not None and (j.id, to_us(j.started_at)) not in known]
    for chunk in in_chunks(missing):
        query = select(incarnations).where(i.cluster_id == cluster_id, i.job.in_(chunk))
        known |= {(row.job, row.started_us): row for row in connection.execute(query)}
    return known


def _update(connection: Connection, table: Table, cluster_id: int, rows: list[dict[str, Any]]) -> None:
    """Set the columns of rows that are known by their job, and their start if the table has it."""
    if not rows:
        return
    keys = [name for name in ("job", "started_us") if name in rows[0]]
    mine = (table.c[name] == bindparam(f"of_{name}") for name in keys)
    statement = update(table).where(table.c.cluster_id == cluster_id, *mine)
    named = [{f"of_{k}" if k in keys else k: value for k, value in row.items()} for row in rows]
    connection.execute(statement.values({k: bindparam(k) for k in rows[0] if k not in keys}), named)


def _register(connection: Connection, cluster: Cluster, state: ClusterState) -> None:
    """Keep the list of jobs: who came, what changed about them, who is no longer listed."""
    j = jobs.c
    query = select(jobs).where(j.cluster_id == cluster.id, j.last_round.is_(None))
    present = {row.job: row for row in connection.execute(query)}
    listed = {job.id for job in state.jobs}
    said = {job.id: _told(job) for job in state.jobs}
    this_round = cluster.last_round + 1
    coming = [name for name in said if name not in present]
    base = {"cluster_id": cluster.id, "first_round": this_round, "last_round": None}
    add_new(connection, jobs, (base | {"job": name} | _columns(said[name]) for name in coming))
    changed = [name for name, row in present.items() if name in said and _said(row) != said[name]]
    for chunk in in_chunks(coming):
        back = select(j.job).where(j.cluster_id == cluster.id, j.job.in_(chunk), j.first_round < this_round)
        changed += connection.execute(back).scalars()
    _update(connection, jobs, cluster.id, [{"job": n} | _columns(said[n]) | {"last_round": None} for n in changed])
    for chunk in in_chunks(name for name in present if name not in listed):
        gone = update(jobs).where(j.cluster_id == cluster.id, j.job.in_(chunk))
        connection.execute(gone.values(last_round=cluster.last_round))


def _told(job: Job) -> tuple[str, str | None, int, str]:
    """What the list keeps of a job, in the order of `_KEPT`."""
    declared = json.dumps({"speedup": dict(job.speedup), "resumable": job.contract.resumable})
    return job.group, job.user, job.contract.min_runtime_s, declared


_KEPT = ("group_id", "user_id", "min_runtime_s", "declared")


def _said(row: Row[Any]) -> tuple[Any, ...]:
    return tuple(getattr(row, name) for name in _KEPT)


def _columns(said: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(_KEPT, said, strict=True))
