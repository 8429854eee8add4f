"""Intervals summed by hour and by day: a window is a few range scans. Exact, and checked against the intervals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from sqlalchemy import Connection, Table, select
from sqlalchemy.dialects import postgresql, sqlite

from evenhand_api.ledger.amounts import joined, split
from evenhand_api.ledger.instants import HOUR, HOURS_OF_DAY
from evenhand_api.ledger.tables import days, hours, intervals

Cell: TypeAlias = tuple[int, str, str, bool]
"""Hour since 1970, group (empty: counted nowhere), type, whether it is charged."""
Day: TypeAlias = tuple[int, str]
"""Day since 1970, group."""


@dataclass(slots=True)
class Sum:
    """What one cell holds: the charge, the slope at the start of the hour, GPUs x microseconds."""

    charge: int = 0
    slope: int = 0
    held_us: int = 0


@dataclass(frozen=True, slots=True)
class Line:
    """One interval, as far as roll-ups care."""

    group: str | None
    gpu_type: str
    charged: bool
    gpus: int
    rate_m: int
    from_us: int
    to_us: int


def cells_of(lines: Iterable[Line]) -> dict[Cell, Sum]:
    """Sum intervals by hour."""
    cells: dict[Cell, Sum] = {}
    for line in lines:
        weight = line.gpus * line.rate_m if line.charged else 0
        for hour in range(line.from_us // HOUR, (line.to_us - 1) // HOUR + 1):
            begin = hour * HOUR
            cell = cells.setdefault((hour, line.group or "", line.gpu_type, line.charged), Sum())
            lasted = min(line.to_us, begin + HOUR) - max(line.from_us, begin)
            cell.charge += weight * lasted
            cell.held_us += line.gpus * lasted
            if line.from_us < begin:
                cell.slope += weight
    return cells


def add_cells(connection: Connection, cluster_id: int, cells: Mapping[Cell, Sum]) -> None:
    """Add sums to the tables of hours and days."""
    if not cells:
        return
    rows = []
    for (hour, group, gpu_type, charged), total in sorted(cells.items()):
        seconds, rest = split(total.charge)
        key = {"cluster_id": cluster_id, "hour": hour, "group_id": group, "gpu_type": gpu_type, "charged": charged}
        values = {"charge_s": seconds, "charge_rest": rest, "slope": total.slope, "held_us": total.held_us}
        rows.append(key | values)
    _add(connection, hours, ("charge_s", "charge_rest", "slope", "held_us"), rows)
    by_day = [
        {"cluster_id": cluster_id, "day": day, "group_id": group, "charge_s": split(amount)[0]}
        | {"charge_rest": split(amount)[1]}
        for (day, group), amount in sorted(days_of(cells).items())
    ]
    if by_day:
        _add(connection, days, ("charge_s", "charge_rest"), by_day)


def days_of(cells: Mapping[Cell, Sum]) -> dict[Day, int]:
    """Sum charges by day; days without any are left out."""
    found: dict[Day, int] = defaultdict(int)
    for (hour, group, _, _), total in cells.items():
        found[hour // HOURS_OF_DAY, group] += total.charge
    return {day: amount for day, amount in found.items() if amount}


def _add(connection: Connection, table: Table, added: tuple[str, ...], rows: list[dict[str, object]]) -> None:
    """Insert rows, adding to those that are there."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    statement = dialect.insert(table)
    statement = statement.on_conflict_do_update(
        index_elements=[column.name for column in table.primary_key],
        set_={name: table.c[name] + statement.excluded[name] for name in added},
    )
    connection.execute(statement, rows)


def differences(connection: Connection, cluster_id: int, from_hour: int = 0) -> list[Cell]:
    """Name every cell from an hour on that is not what its intervals make it; empty if all agree.

    A whole day that is off is named by its first hour, with no type.
    """
    wanted = {cell: total for cell, total in cells_of(_lines(connection, cluster_id)).items() if cell[0] >= from_hour}
    query = select(hours).where(hours.c.cluster_id == cluster_id, hours.c.hour >= from_hour)
    kept = {
        (row.hour, row.group_id, row.gpu_type, row.charged): Sum(
            joined(row.charge_s, row.charge_rest), row.slope, row.held_us
        )
        for row in connection.execute(query)
    }
    off = {cell for cell in wanted.keys() | kept.keys() if wanted.get(cell, Sum()) != kept.get(cell, Sum())}
    first_day = -(-from_hour // HOURS_OF_DAY)
    by_day = {day: amount for day, amount in days_of(wanted).items() if day[0] >= first_day}
    query = select(days).where(days.c.cluster_id == cluster_id, days.c.day >= first_day)
    kept_days = {(row.day, row.group_id): joined(row.charge_s, row.charge_rest) for row in connection.execute(query)}
    wrong = {day for day in by_day.keys() | kept_days.keys() if by_day.get(day, 0) != kept_days.get(day, 0)}
    return sorted(off | {(day * HOURS_OF_DAY, group, "", True) for day, group in wrong})


def rebuild(connection: Connection, cluster_id: int) -> None:
    """Make the tables of hours and days anew from the intervals."""
    for table in (hours, days):
        connection.execute(table.delete().where(table.c.cluster_id == cluster_id))
    add_cells(connection, cluster_id, cells_of(_lines(connection, cluster_id)))


def _lines(connection: Connection, cluster_id: int) -> Iterable[Line]:
    columns = [intervals.c[name] for name in ("group_id", "gpu_type", "charged", "gpus", "rate_m", "from_us", "to_us")]
    query = select(*columns).where(intervals.c.cluster_id == cluster_id).execution_options(yield_per=10_000)
    for row in connection.execute(query):
        yield Line(*row)
