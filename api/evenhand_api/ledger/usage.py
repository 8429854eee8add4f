"""What each group used in a window: exact integers, from any instant, by days, hours and two hours' edges."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, select

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
    for row in _charged_holds(connection, cluster_id):
        lasted = to_us - max(from_us, row.since_us)
        if lasted > 0:
            used[row.group_id] += row.gpus * row.rate_m * lasted
    _add(used, _adjusted(connection, cluster_id, from_us, to_us))
    return {group: amount for group, amount in sorted(used.items()) if amount}


def _add(used: dict[str, int], more: Mapping[str, int], sign: int = 1) -> None:
    for group, amount in more.items():
        used[group] += sign * amount


def _whole_hours(connection: Connection, cluster_id: int, first: int, last: int) -> dict[str, int]:
    """Charges of all hours in [first, last), whole days by their own sums."""
    first_day, last_day = -(-first // HOURS_OF_DAY), last // HOURS_OF_DAY
    if first_day >= last_day:
        return _hours(connection, cluster_id, first, last)
    used: dict[str, int] = defaultdict(int)
    _add(used, _hours(connection, cluster_id, first, first_day * HOURS_OF_DAY))
    _add(used, _hours(connection, cluster_id, last_day * HOURS_OF_DAY, last))
    d = days.c
    query = (
        select(d.group_id, func.sum(d.charge_s), func.sum(d.charge_rest))
        .where(d.cluster_id == cluster_id, d.day >= first_day, d.day < last_day)
        .group_by(d.group_id)
    )
    _add(used, {group: joined(seconds, rest) for group, seconds, rest in connection.execute(query)})
    return used


def _hours(connection: Connection, cluster_id: int, first: int, last: int) -> dict[str, int]:
    """Charges of all hours in [first, last), hour by hour."""
    if first >= last:
        return {}
    h = hours.c
    query = (
        select(h.group_id, func.sum(h.charge_s), func.sum(h.charge_rest))
        .where(h.cluster_id == cluster_id, h.hour >= first, h.hour < last, h.charged.is_(True))
        .group_by(h.group_id)
    )
    return {group: joined(seconds, rest) for group, seconds, rest in connection.execute(query)}


def _since_the_hour(connection: Connection, cluster_id: int, at_us: int) -> dict[str, int]:
    """Charges over [the full hour, at): what was held at the hour, and what began and ended since."""
    begin = at_us // HOUR * HOUR
    used: dict[str, int] = defaultdict(int)
    if at_us == begin:
        return used
    h, i = hours.c, intervals.c
    sloped = (
        select(h.group_id, func.sum(h.slope))
        .where(h.cluster_id == cluster_id, h.hour == begin // HOUR, h.charged.is_(True))
        .group_by(h.group_id)
    )
    for group, slope in connection.execute(sloped):
        used[group] += int(slope) * (at_us - begin)
    _add(used, _moments(connection, cluster_id, i.from_us, begin, at_us))
    _add(used, _moments(connection, cluster_id, i.to_us, begin + 1, at_us), -1)
    return used


def _moments(
    connection: Connection, cluster_id: int, instant: ColumnElement[int], first_us: int, at_us: int
) -> dict[str, int]:
    """Sum weight x (at - instant) over the intervals whose instant lies in [first, at), by group."""
    i = intervals.c
    left: Any = at_us - instant
    query = (
        select(i.group_id, func.sum(i.weight * (left // SECOND)), func.sum(i.weight * (left % SECOND)))
        .where(i.cluster_id == cluster_id, instant >= first_us, instant < at_us, i.weight != 0)
        .group_by(i.group_id)
    )
    return {group: joined(seconds, rest) for group, seconds, rest in connection.execute(query)}


def _charged_holds(connection: Connection, cluster_id: int) -> list[Any]:
    h = holds.c
    return list(connection.execute(select(holds).where(h.cluster_id == cluster_id, h.charged.is_(True))))


def _adjusted(connection: Connection, cluster_id: int, from_us: int, to_us: int) -> dict[str, int]:
    a = adjustments.c
    query = (
        select(a.group_id, func.sum(a.charge_s), func.sum(a.charge_rest))
        .where(a.cluster_id == cluster_id, a.at_us > from_us, a.at_us <= to_us)
        .group_by(a.group_id)
    )
    return {group: joined(seconds, rest) for group, seconds, rest in connection.execute(query)}
