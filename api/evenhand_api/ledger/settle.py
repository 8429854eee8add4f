"""Bringing the ledger of some jobs in line with the facts: what differs is appended, nothing is changed in place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import Any

from sqlalchemy import Connection, Row, Table, bindparam, delete, insert, select, update

from evenhand_api.ledger.fading import add_faded
from evenhand_api.ledger.holding import read_holding
from evenhand_api.ledger.instants import wall_clock_us
from evenhand_api.ledger.kinds import FactKind, Source
from evenhand_api.ledger.rollups import Line, add_cells, cells_of
from evenhand_api.ledger.tables import facts, holds, incarnations, intervals, node_facts
from evenhand_api.ledger.timeline import Downs, Incarnation, Key, Piece, Report, down_periods, ends, pieces

CHUNK = 400
"""Jobs looked at in one query."""


@dataclass(slots=True)
class _Job:
    """All that is recorded about one job."""

    name: str
    starts: dict[int, Any] = field(default_factory=dict)
    reports: dict[int, list[Report]] = field(default_factory=lambda: defaultdict(list))
    told: list[tuple[int | None, int]] = field(default_factory=list)
    recorded: list[Piece] = field(default_factory=list)
    holds: dict[tuple[Key, int, int], int] = field(default_factory=dict)


@dataclass(slots=True)
class _Writes:
    """What has to be written."""

    intervals: list[dict[str, Any]] = field(default_factory=list)
    holds: list[dict[str, Any]] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)
    ends: list[tuple[int, int | None]] = field(default_factory=list)


def settle(connection: Connection, cluster_id: int, names: Collection[str], last_now_us: int | None) -> None:
    """Make intervals, holds and roll-ups of these jobs say what the facts say.

    Parameters
    ----------
    connection : in a transaction that writes.
    names : the jobs; all others stay as they are.
    last_now_us : instant of the latest round, this one included.
    """
    waiting = iter(sorted(names))
    while chunk := list(islice(waiting, CHUNK)):
        found = _load(connection, cluster_id, chunk)
        downs = _load_downs(connection, cluster_id, found)
        writes = _Writes()
        for job in found:
            _compare(job, downs, last_now_us, writes)
        _write(connection, cluster_id, writes)


def _compare(job: _Job, downs: Downs, last_now_us: int | None, writes: _Writes) -> None:
    known = [
        Incarnation(start, tuple(job.reports[start]), bool(row.present), row.seen_us)
        for start, row in job.starts.items()
    ]
    found_ends = ends(known, job.told, last_now_us)
    wanted = [piece for one in known for piece in pieces(one, found_ends[one.started_us], downs)]
    writes.ends += [(job.starts[start].id, end) for start, end in found_ends.items() if job.starts[start].end_us != end]
    closed, still = _missing(wanted, job.recorded)
    writes.intervals += [_row(job.name, piece) for piece in closed]
    kept = set()
    for piece in still:
        same = (piece.key, piece.gpus, piece.from_us)
        kept.add(same)
        if same not in job.holds:
            writes.holds.append(_row(job.name, piece))
    writes.dropped += [number for same, number in job.holds.items() if same not in kept]


def _missing(wanted: Iterable[Piece], recorded: Iterable[Piece]) -> tuple[list[Piece], list[Piece]]:
    """Return what has to be appended to the intervals, and what goes on."""
    by_key: dict[Key, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for sign, listed in ((1, wanted), (-1, recorded)):
        for piece in listed:
            steps = by_key[piece.key]
            steps[piece.from_us] += sign * piece.gpus
            if piece.to_us is not None:
                steps[piece.to_us] -= sign * piece.gpus
    closed: list[Piece] = []
    still: list[Piece] = []
    for key, steps in by_key.items():
        gpus = 0
        cuts = [at for at in sorted(steps) if steps[at]]
        for begin, finish in pairwise([*cuts, None]):
            assert begin is not None
            gpus += steps[begin]
            if gpus:
                (still if finish is None else closed).append(Piece(key, gpus, begin, finish))
    return closed, still


def _row(job: str, piece: Piece) -> dict[str, Any]:
    key = piece.key
    row = {"job": job, "started_us": key.started_us, "group_id": key.group, "user_id": key.user}
    row |= {"gpu_type": key.gpu_type, "gpus": piece.gpus, "charged": key.charged, "rate_m": key.rate_m}
    if piece.to_us is None:
        return row | {"since_us": piece.from_us}
    weight = piece.gpus * key.rate_m if key.charged else 0
    return row | {"weight": weight, "from_us": piece.from_us, "to_us": piece.to_us}


def _load(connection: Connection, cluster_id: int, names: Sequence[str]) -> list[_Job]:
    jobs = {name: _Job(name) for name in names}

    def rows(table: Table) -> Iterator[Row[Any]]:
        yield from connection.execute(select(table).where(table.c.cluster_id == cluster_id, table.c.job.in_(names)))

    for row in rows(incarnations):
        jobs[row.job].starts[row.started_us] = row
    for row in rows(facts):
        if row.kind == FactKind.ENDED:
            jobs[row.job].told.append((row.started_us, row.at_us))
        else:
            report = Report(row.at_us, row.source == Source.EVENT, read_holding(row.payload))
            jobs[row.job].reports[row.started_us].append(report)
    for row in rows(intervals):
        jobs[row.job].recorded.append(Piece(_key(row), row.gpus, row.from_us, row.to_us))
    for row in rows(holds):
        jobs[row.job].holds[_key(row), row.gpus, row.since_us] = row.id
    return list(jobs.values())


def _key(row: Row[Any]) -> Key:
    return Key(row.started_us, row.group_id, row.user_id, row.gpu_type, bool(row.charged), row.rate_m)


def _load_downs(connection: Connection, cluster_id: int, jobs: Iterable[_Job]) -> Downs:
    nodes = {
        node for job in jobs for reports in job.reports.values() for report in reports for node, _ in report.holding.on
    }
    known: dict[str, list[tuple[int, bool]]] = defaultdict(list)
    waiting = iter(sorted(nodes))
    while chunk := list(islice(waiting, CHUNK)):
        query = select(node_facts).where(node_facts.c.cluster_id == cluster_id, node_facts.c.node.in_(chunk))
        for row in connection.execute(query):
            known[row.node].append((row.at_us, bool(row.up)))
    return {node: down_periods(said) for node, said in known.items()}


def _write(connection: Connection, cluster_id: int, writes: _Writes) -> None:
    stamp = {"cluster_id": cluster_id, "recorded_us": wall_clock_us()}
    if writes.intervals:
        connection.execute(insert(intervals), [row | stamp for row in writes.intervals])
        lines = [
            Line(r["group_id"], r["gpu_type"], r["charged"], r["gpus"], r["rate_m"], r["from_us"], r["to_us"])
            for r in writes.intervals
        ]
        add_cells(connection, cluster_id, cells_of(lines))
        add_faded(connection, cluster_id, writes.intervals)
    if writes.dropped:
        connection.execute(
            delete(holds).where(holds.c.id == bindparam("of_id")), [{"of_id": n} for n in writes.dropped]
        )
    if writes.holds:
        connection.execute(insert(holds), [row | {"cluster_id": cluster_id} for row in writes.holds])
    if writes.ends:
        ending = update(incarnations).where(incarnations.c.id == bindparam("of_id")).values(end_us=bindparam("end"))
        connection.execute(ending, [{"of_id": number, "end": end} for number, end in writes.ends])
