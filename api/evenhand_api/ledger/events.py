"""What events tell the ledger. Recording one twice, or a batch in another order, leaves the same ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, select

from evenhand_api.ledger.clusters import Cluster
from evenhand_api.ledger.facts import Fact, NodeFact, in_chunks, record, record_nodes
from evenhand_api.ledger.holding import Holding
from evenhand_api.ledger.instants import HOUR, to_us, wall_clock_us, written
from evenhand_api.ledger.kinds import EventKind, Source
from evenhand_api.ledger.settle import settle
from evenhand_api.ledger.tables import jobs
from evenhand_api.ledger.words import Event, event_errors
from evenhand_models import FieldError, InvalidInput

AHEAD = 24 * HOUR
"""How far an event may lie after the last round and the service's own clock, whichever is later."""
BEHIND = 366 * 24 * HOUR
"""How far it may lie before the last round, or before the service's clock if there was none."""


def record_events(connection: Connection, cluster: Cluster, events: Sequence[Event]) -> None:
    """Record events and settle every job they concern.

    Parameters
    ----------
    connection : in a transaction that writes, the cluster's row locked.

    Raises
    ------
    InvalidInput
        If one of them makes no sense; pointers are relative to the request, nothing is recorded.
    """
    known = _known_jobs(connection, cluster.id, {event.job for event in events if event.job is not None})
    errors: list[FieldError] = []
    reported: list[Fact] = []
    for index, event in enumerate(events):
        found = [*event_errors(event), *_clock_errors(cluster, event)]
        if not found and event.job is not None:
            holding, found = _holding(cluster, event, known.get(event.job))
            started = event.at if event.kind is EventKind.STARTED else event.started_at
            started_us = None if started is None else to_us(started)
            reported.append(Fact(event.job, Source.EVENT, to_us(event.at), started_us, holding))
        errors += [error.under(f"/events/{index}") for error in found]
    if errors:
        raise InvalidInput(errors)
    node_facts = [
        NodeFact(event.node, to_us(event.at), event.kind is EventKind.NODE_UP) for event in events if event.node
    ]
    record(connection, cluster.id, reported)
    concerned = record_nodes(connection, cluster.id, node_facts) | {fact.job for fact in reported}
    settle(connection, cluster.id, concerned, cluster.last_now_us)


def _holding(cluster: Cluster, event: Event, known: Row[Any] | None) -> tuple[Holding | None, list[FieldError]]:
    """Say what a started or resized job holds; None for one that ended."""
    if event.kind is EventKind.ENDED:
        return None, []
    group = event.group or (None if known is None else known.group_id)
    if group is None:
        return None, [
            FieldError("/group", f"no round has listed job {event.job!r} yet: the event must name its group.")
        ]
    nodes = cluster.nodes_by_name
    types = {nodes[part.node].gpu_type for part in event.placement if part.node in nodes}
    if not types:
        return None, [FieldError("/placement", f"none of the nodes of job {event.job!r} is in the cluster.")]
    if len(types) > 1:
        mixed = ", ".join(map(repr, sorted(types)))
        return None, [FieldError("/placement", f"job {event.job!r} stands on the types {mixed}; a gang has one.")]
    said = event.min_runtime_s
    min_runtime_s = said if said is not None else (0 if known is None else known.min_runtime_s)
    (gpu_type,) = types
    terms = cluster.terms
    return Holding(
        gpu_type=gpu_type,
        on=tuple((part.node, part.gpus) for part in event.placement),
        group=terms.charged_to(group),
        user=event.user or (None if known is None else known.user_id),
        charged=terms.is_charged(group, min_runtime_s),
        rate_m=terms.rate_m(gpu_type),
    ), []


def _clock_errors(cluster: Cluster, event: Event) -> list[FieldError]:
    """Refuse instants that can only be slips."""
    clock = wall_clock_us()
    latest = max(clock, cluster.last_now_us or 0) + AHEAD
    earliest = min(clock, cluster.last_now_us or clock) - BEHIND
    instants = {"at": event.at} | ({} if event.started_at is None else {"started_at": event.started_at})
    return [
        FieldError(f"/{name}", f"{written(to_us(instant))} is not between {written(earliest)} and {written(latest)}.")
        for name, instant in instants.items()
        if not earliest <= to_us(instant) <= latest
    ]


def _known_jobs(connection: Connection, cluster_id: int, names: set[str]) -> Mapping[str, Row[Any]]:
    found: dict[str, Row[Any]] = {}
    for chunk in in_chunks(sorted(names)):
        query = select(jobs).where(jobs.c.cluster_id == cluster_id, jobs.c.job.in_(chunk))
        found |= {row.job: row for row in connection.execute(query)}
    return found
