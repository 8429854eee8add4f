"""Writing facts down, each once, whoever repeats it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Table, or_, select
from sqlalchemy.dialects import postgresql, sqlite

from evenhand_api.ledger.holding import Holding, read_holding
from evenhand_api.ledger.instants import wall_clock_us
from evenhand_api.ledger.kinds import FactKind, Source
from evenhand_api.ledger.tables import facts, incarnations, node_facts

CHUNK = 400
"""Rows or names in one statement."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing reported about a job: that it held something, or that it ended."""

    job: str
    source: Source
    at_us: int
    started_us: int | None
    holding: Holding | None
    """None: it ended."""

    def row(self) -> dict[str, Any]:
        """Lay it out for its table."""
        kind = FactKind.ENDED if self.holding is None else FactKind.HELD
        payload = "" if self.holding is None else self.holding.written()
        parts = [kind, self.source, self.job, str(self.started_us), str(self.at_us), payload]
        return {
            "job": self.job,
            "kind": kind.value,
            "source": self.source.value,
            "started_us": self.started_us,
            "at_us": self.at_us,
            "payload": payload,
            "digest": sha256("\n".join(parts).encode()).hexdigest(),
        }


@dataclass(frozen=True, slots=True)
class NodeFact:
    """A node was down, or up, from an instant on."""

    node: str
    at_us: int
    up: bool


def add_new(connection: Connection, table: Table, rows: Iterable[Mapping[str, Any]]) -> None:
    """Insert rows, leaving out those whose key is there already."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    statement = dialect.insert(table).on_conflict_do_nothing()
    if listed := list(rows):
        connection.execute(statement, listed)


def record(connection: Connection, cluster_id: int, reported: Iterable[Fact]) -> None:
    """Write facts about jobs, and a row for every start they name."""
    listed = list(reported)
    stamp = {"cluster_id": cluster_id, "recorded_us": wall_clock_us()}
    add_new(connection, facts, (fact.row() | stamp for fact in listed))
    starts = {(fact.job, fact.started_us) for fact in listed if fact.holding is not None}
    fresh = {"cluster_id": cluster_id, "present": False, "seen_us": None, "sighted": None, "end_us": None}
    add_new(connection, incarnations, (fresh | {"job": j, "started_us": s} for j, s in sorted(starts)))


def record_nodes(connection: Connection, cluster_id: int, reported: Iterable[NodeFact]) -> set[str]:
    """Write facts about nodes; returns the jobs that held GPUs of those nodes then or later."""
    listed = sorted(set(reported), key=lambda fact: (fact.node, fact.at_us, fact.up))
    if not listed:
        return set()
    stamp = {"cluster_id": cluster_id, "recorded_us": wall_clock_us()}
    add_new(connection, node_facts, ({"node": f.node, "at_us": f.at_us, "up": f.up} | stamp for f in listed))
    nodes = {fact.node for fact in listed}
    since = min(fact.at_us for fact in listed)
    i, f = incarnations.c, facts.c
    query = (
        select(f.job, f.payload)
        .join(incarnations, (i.cluster_id == f.cluster_id) & (i.job == f.job) & (i.started_us == f.started_us))
        .where(f.cluster_id == cluster_id, f.kind == FactKind.HELD.value, or_(i.end_us.is_(None), i.end_us > since))
    )
    return {job for job, payload in connection.execute(query) if any(n in nodes for n, _ in read_holding(payload).on)}


def in_chunks(names: Iterable[Any]) -> Iterable[list[Any]]:
    """Cut a sequence into lists that fit one statement."""
    waiting = iter(names)
    while chunk := list(islice(waiting, CHUNK)):
        yield chunk
