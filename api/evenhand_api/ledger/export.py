"""The ledger's lines for other programs: intervals, what goes on, adjustments, in one order."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Row, select

from evenhand_api.ledger.amounts import as_gpu_hours, joined
from evenhand_api.ledger.instants import HOUR, written
from evenhand_api.ledger.tables import adjustments, holds, intervals


class Kind(StrEnum):
    """What a line is."""

    OCCUPANCY = "occupancy"
    """GPUs held over a period that has ended; below 0: a correction of another line."""
    GOING_ON = "going_on"
    """GPUs held since then."""
    ADJUSTMENT = "adjustment"
    """Charge added or taken off by hand."""


FIELDS = (
    "kind",
    "id",
    "job",
    "started_at",
    "group",
    "user",
    "gpu_type",
    "gpus",
    "charged",
    "charge_rate",
    "from_at",
    "to_at",
    "gpu_hours",
    "charged_gpu_hours",
    "reason",
    "author",
    "recorded_at",
)
"""Columns of every line, in order; what a kind has not is empty."""


def lines(connection: Connection, cluster_id: int, from_us: int | None, to_us: int | None) -> Iterator[dict[str, Any]]:
    """Yield every line that touches [from, to), whole: intervals by number, then what goes on, then adjustments."""
    i, h, a = intervals.c, holds.c, adjustments.c
    ended = select(intervals).where(i.cluster_id == cluster_id).order_by(i.id).execution_options(yield_per=5_000)
    if from_us is not None:
        ended = ended.where(i.to_us > from_us)
    if to_us is not None:
        ended = ended.where(i.from_us < to_us)
    for row in connection.execute(ended):
        held = row.gpus * (row.to_us - row.from_us)
        period = {"from_at": written(row.from_us), "to_at": written(row.to_us), "gpu_hours": held / HOUR}
        charge = as_gpu_hours(row.weight * (row.to_us - row.from_us))
        more = period | {"charged_gpu_hours": charge, "recorded_at": written(row.recorded_us)}
        yield _line(Kind.OCCUPANCY, _held(row) | more)
    for row in connection.execute(select(holds).where(h.cluster_id == cluster_id).order_by(h.id)):
        if to_us is None or row.since_us < to_us:
            yield _line(Kind.GOING_ON, _held(row) | {"from_at": written(row.since_us)})
    for row in connection.execute(select(adjustments).where(a.cluster_id == cluster_id).order_by(a.id)):
        if (from_us is None or row.at_us > from_us) and (to_us is None or row.at_us <= to_us):
            said = {"id": row.id, "group": row.group_id, "from_at": written(row.at_us), "reason": row.reason}
            charge = as_gpu_hours(joined(row.charge_s, row.charge_rest))
            said |= {"author": row.author, "charged_gpu_hours": charge, "recorded_at": written(row.recorded_us)}
            yield _line(Kind.ADJUSTMENT, said)


def _held(row: Row[Any]) -> dict[str, Any]:
    return {
        "id": row.id,
        "job": row.job,
        "started_at": written(row.started_us),
        "group": row.group_id,
        "user": row.user_id,
        "gpu_type": row.gpu_type,
        "gpus": row.gpus,
        "charged": bool(row.charged),
        "charge_rate": row.rate_m / 1_000,
    }


def _line(kind: Kind, said: dict[str, Any]) -> dict[str, Any]:
    return dict.fromkeys(FIELDS) | {"kind": kind.value} | said
