"""What was measured of jobs, kept by cluster, and put beside what they declared for the audit of speedups."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, select

from evenhand_api.ledger.clusters import Cluster
from evenhand_api.ledger.errors import UnknownName
from evenhand_api.ledger.facts import add_new, in_chunks
from evenhand_api.ledger.instants import to_us, wall_clock_us
from evenhand_api.ledger.packing import unpack
from evenhand_api.ledger.round_records import read_round
from evenhand_api.ledger.tables import jobs, observations
from evenhand_models import ClusterState, FieldError, InvalidInput
from evenhand_models.observations import DeclaredJob, Observation, SpeedupAuditRequest
from evenhand_models.quantities import CLOCK_TOLERANCE

MOST_READ = 100_000
"""Most observations one audit looks at, the latest ones."""


def add_observations(connection: Connection, cluster: Cluster, measured: tuple[Observation, ...]) -> None:
    """Keep observations; one that repeats another to the letter is kept once if it says when it ended.

    Raises
    ------
    InvalidInput
        If a job was never listed by a round; pointers are relative to the request.
    """
    known: set[str] = set()
    for chunk in in_chunks(sorted({one.job for one in measured})):
        query = select(jobs.c.job).where(jobs.c.cluster_id == cluster.id, jobs.c.job.in_(chunk))
        known |= set(connection.execute(query).scalars())
    errors = [
        FieldError(f"/observations/{i}/job", f"no round has listed job {one.job!r} yet.")
        for i, one in enumerate(measured)
        if one.job not in known
    ]
    if errors:
        raise InvalidInput(errors)
    stamp: dict[str, Any] = {"cluster_id": cluster.id, "recorded_us": wall_clock_us()}
    rows = []
    for place, one in enumerate(measured):
        text = one.model_dump_json(exclude_defaults=True)
        unique = text if one.ended_at is not None else f"{text} {stamp['recorded_us']} {place}"
        digest = sha256(unique.encode()).hexdigest()
        ended_us = None if one.ended_at is None else to_us(one.ended_at)
        rows.append(stamp | {"job": one.job, "ended_us": ended_us, "payload": text, "digest": digest})
    add_new(connection, observations, rows)


def audit_request(connection: Connection, cluster: Cluster) -> SpeedupAuditRequest:
    """Put the last round's jobs, those that have ended, and what was measured together.

    Raises
    ------
    UnknownName
        If there has been no round yet.
    """
    if cluster.last_round == 0:
        raise UnknownName(f"cluster {cluster.name!r} has had no round yet")
    state = ClusterState.model_validate_json(unpack(read_round(connection, cluster, cluster.last_round).state))
    o = observations.c
    query = select(o.payload).where(o.cluster_id == cluster.id).order_by(o.id.desc()).limit(MOST_READ)
    found = [Observation.model_validate_json(text) for text in connection.execute(query).scalars()]
    latest = state.now + CLOCK_TOLERANCE
    measured = tuple(one for one in reversed(found) if one.ended_at is None or one.ended_at <= latest)
    listed = {job.id for job in state.jobs}
    gone = sorted({one.job for one in measured} - listed)
    return SpeedupAuditRequest(
        state=state,
        ended_jobs=tuple(_declared(connection, cluster.id, gone)),
        observations=measured,
        round_policy=cluster.policy,
    )


def _declared(connection: Connection, cluster_id: int, names: list[str]) -> list[DeclaredJob]:
    found = []
    for chunk in in_chunks(names):
        query = select(jobs).where(jobs.c.cluster_id == cluster_id, jobs.c.job.in_(chunk)).order_by(jobs.c.job)
        for row in connection.execute(query):
            said = json.loads(row.declared)
            found.append(DeclaredJob(id=row.job, group=row.group_id, **said))
    return found
