"""What each group used in a window: exact integers, from any instant, by days, hours and two hours' edges."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from sqlalchemy import BigInteger, BindParameter, ColumnElement, Connection, Select, Table, bindparam, func, select

from evenhand_api.ledger.amounts import joined
from evenhand_api.ledger.instants import HOUR, HOURS_OF_DAY, SECOND
from evenhand_api.ledger.tables import adjustments, days, holds, hours, intervals


def window_usage(connection: Connection, cluster_id: int, from_us: int, to_us: int) -> dict[str, int]:
    """Return the charge of each group over [from, to), work that goes on counted up to `to`.

    Adjustments count if their instant lies in (from, to].

    Returns
    -------
    dict
        By group the amount in thousandths of a charged GPU x microseconds, own use only; may be negative where
        adjustments took off more than was used.
    """
    used: dict[str, int] = defaultdict(int)
    _add(used, _whole_hours(connection, cluster_id, from_us // HOUR, to_us // HOUR))
    _add(used, _since_the_hour(connection, cluster_id, to_us))
    _add(used, _since_the_hour(connection, cluster_id, from_us), -1)
    for row in connection.execute(_HOLDS, {"cluster": cluster_id}):
        lasted = to_us - max(from_us, row.since_us)
        if lasted > 0:
            used[row.group_id] += row.gpus * row.rate_m * lasted
    _add(used, _summed(connection, _ADJUSTED, cluster_id, first=from_us, last=to_us))
    return {group: amount for group, amount in sorted(used.items()) if amount}


def _add(used: dict[str, int], more: Mapping[str, int], sign: int = 1) -> None:
    for group, amount in more.items():
        used[group] += sign * amount


def _summed(connection: Connection, query: Select[Any], cluster_id: int, **said: int) -> dict[str, int]:
    """Ask one of the queries below: amounts by group, given in seconds and what is left."""
    found = connection.execute(query, {"cluster": cluster_id} | said)
    return {group: joined(seconds, rest) for group, seconds, rest in found}


def _whole_hours(connection: Connection, cluster_id: int, first: int, last: int) -> dict[str, int]:
    """Charges of all hours in [first, last), whole days by their own sums."""
    first_day, last_day = -(-first // HOURS_OF_DAY), last // HOURS_OF_DAY
    parts = [(first, last)]
    used: dict[str, int] = defaultdict(int)
    if first_day < last_day:
        parts = [(first, first_day * HOURS_OF_DAY), (last_day * HOURS_OF_DAY, last)]
        _add(used, _summed(connection, _DAYS, cluster_id, first=first_day, last=last_day))
    for begin, end in parts:
        if begin < end:
            _add(used, _summed(connection, _HOURS, cluster_id, first=begin, last=end))
    return used


def _since_the_hour(connection: Connection, cluster_id: int, at_us: int) -> dict[str, int]:
    """Charges over [the full hour, at): what was held at the hour, and what began and ended since."""
    begin = at_us // HOUR * HOUR
    used: dict[str, int] = defaultdict(int)
    if at_us == begin:
        return used
    for group, slope in connection.execute(_SLOPES, {"cluster": cluster_id, "hour": begin // HOUR}):
        used[group] += int(slope) * (at_us - begin)
    _add(used, _summed(connection, _BEGUN, cluster_id, first=begin, at=at_us))
    _add(used, _summed(connection, _ENDED, cluster_id, first=begin + 1, at=at_us), -1)
    return used


def _moments(instant: ColumnElement[int]) -> Select[Any]:
    """Sum weight x (at - instant) over the intervals whose instant lies in [first, at), by group."""
    i, at = intervals.c, _said("at")
    left: Any = at - instant
    return (
        select(i.group_id, func.sum(i.weight * (left // SECOND)), func.sum(i.weight * (left % SECOND)))
        .where(i.cluster_id == _said("cluster"), instant >= _said("first"), instant < at, i.weight != 0)
        .group_by(i.group_id)
    )


def _charges(table: Table, unit: ColumnElement[int], *only: ColumnElement[bool]) -> Select[Any]:
    """Sum the charges of hours or days in [first, last), by group."""
    t = table.c
    return (
        select(t.group_id, func.sum(t.charge_s), func.sum(t.charge_rest))
        .where(t.cluster_id == _said("cluster"), unit >= _said("first"), unit < _said("last"), *only)
        .group_by(t.group_id)
    )


def _said(name: str) -> BindParameter[int]:
    return bindparam(name, type_=BigInteger)


# Written once: putting a statement together costs more than running it on a small ledger.
_DAYS = _charges(days, days.c.day)
_HOURS = _charges(hours, hours.c.hour, hours.c.charged.is_(True))
_SLOPES = (
    select(hours.c.group_id, func.sum(hours.c.slope))
    .where(hours.c.cluster_id == _said("cluster"), hours.c.hour == _said("hour"), hours.c.charged.is_(True))
    .group_by(hours.c.group_id)
)
_BEGUN, _ENDED = _moments(intervals.c.from_us), _moments(intervals.c.to_us)
_HOLDS = select(holds).where(holds.c.cluster_id == _said("cluster"), holds.c.charged.is_(True))
_ADJUSTED = (
    select(adjustments.c.group_id, func.sum(adjustments.c.charge_s), func.sum(adjustments.c.charge_rest))
    .where(
        adjustments.c.cluster_id == _said("cluster"),
        adjustments.c.at_us > _said("first"),
        adjustments.c.at_us <= _said("last"),
    )
    .group_by(adjustments.c.group_id)
)
