"""Owed against received, by hour and group: what a group was due, and the charged GPUs its work held.

Owed in an hour is the lesser of its jobs' demand and its product of shares times the capacity, both averaged over
the hour; nothing is redistributed. Received is the charge of the group and all below it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, func, select
from sqlalchemy.dialects import postgresql, sqlite

from evenhand_api.ledger.amounts import joined
from evenhand_api.ledger.instants import HOUR, SECOND
from evenhand_api.ledger.tables import holds, hours, owed_hours
from evenhand_api.ledger.terms import Terms
from evenhand_models import ClusterState, Group, NodeStatus, Plan

LONGEST_GAP = 24 * HOUR
"""How long a round's demand is taken to last if no other round follows: beyond it nothing is known, nothing owed."""


@dataclass(frozen=True, slots=True)
class OwedHour:
    """One group in one hour, in charged GPU-hours; inner groups with all below them."""

    hour: int
    group: str
    demand: float
    due: float
    received: float

    @property
    def owed(self) -> float:
        """What it was owed: no more than it could use."""
        return min(self.demand, self.due)


def due_of(terms: Terms, state: ClusterState, plan: Plan) -> dict[str, dict[str, object]]:
    """Say by group what a round found: its report, and demand and due in thousandths of a charged GPU."""
    open_nodes = (
        node
        for node in state.nodes
        if node.status is NodeStatus.UP and (node.available_until_at is None or node.available_until_at > state.now)
    )
    capacity_m = sum(max(0, node.usable_gpus) * terms.rate_m(node.gpu_type) for node in open_nodes)
    return {
        report.group: {
            "report": report.model_dump(mode="json"),
            "demand_m": round(report.demand_gpus * 1_000),
            "due_m": round(terms.shares.get(report.group, 0.0) * capacity_m),
        }
        for report in plan.groups
    }


def add_owed(
    connection: Connection, cluster_id: int, groups: Mapping[str, Mapping[str, int]], from_us: int, to_us: int
) -> None:
    """Add what a round's groups wanted and were due from that round to the next one, hour by hour."""
    to_us = min(to_us, from_us + LONGEST_GAP)
    if to_us <= from_us or not groups:
        return
    rows = []
    for hour in range(from_us // HOUR, (to_us - 1) // HOUR + 1):
        lasted_s = min(to_us, (hour + 1) * HOUR) // SECOND - max(from_us, hour * HOUR) // SECOND
        rows += [
            {
                "cluster_id": cluster_id,
                "hour": hour,
                "group_id": group,
                "demand": said["demand_m"] * lasted_s,
                "due": said["due_m"] * lasted_s,
            }
            for group, said in groups.items()
        ]
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    statement = dialect.insert(owed_hours)
    statement = statement.on_conflict_do_update(
        index_elements=["cluster_id", "hour", "group_id"],
        set_={name: owed_hours.c[name] + statement.excluded[name] for name in ("demand", "due")},
    )
    connection.execute(statement, rows)


def owed_received(
    connection: Connection, cluster_id: int, groups: tuple[Group, ...], from_us: int, to_us: int
) -> list[OwedHour]:
    """Return every group's hours from that of `from_us` up to `to_us`, what goes on counted up to `to_us`.

    Parameters
    ----------
    groups : the tree by which parents sum.
    """
    first, last = from_us // HOUR, (to_us - 1) // HOUR
    own = _received(connection, cluster_id, first, last, to_us)
    parents = {group.id: group.parent for group in groups}
    received: dict[tuple[int, str], int] = defaultdict(int)
    for (hour, group), amount in own.items():
        at: str | None = group
        while at is not None:
            received[hour, at] += amount
            at = parents.get(at)
    o = owed_hours.c
    query = select(owed_hours).where(o.cluster_id == cluster_id, o.hour >= first, o.hour <= last)
    wanted = {(row.hour, row.group_id): row for row in connection.execute(query)}
    found = []
    for hour, group in sorted(wanted.keys() | received.keys()):
        row = wanted.get((hour, group))
        demand, due = (0, 0) if row is None else (row.demand, row.due)
        hours_received = received[hour, group] / SECOND / 3_600_000
        found.append(OwedHour(hour, group, demand / 3_600_000, due / 3_600_000, hours_received))
    return found


def _received(connection: Connection, cluster_id: int, first: int, last: int, to_us: int) -> dict[tuple[int, str], int]:
    """Own charge by hour and group, in thousandths of a charged GPU x microseconds."""
    h = hours.c
    query = (
        select(h.hour, h.group_id, func.sum(h.charge_s), func.sum(h.charge_rest))
        .where(h.cluster_id == cluster_id, h.hour >= first, h.hour <= last, h.charged.is_(True))
        .group_by(h.hour, h.group_id)
    )
    own: dict[tuple[int, str], int] = defaultdict(int)
    for hour, group, seconds, rest in connection.execute(query):
        own[hour, group] += joined(seconds, rest)
    open_holds = select(holds).where(holds.c.cluster_id == cluster_id, holds.c.charged.is_(True))
    for row in connection.execute(open_holds):
        for hour in range(max(first, row.since_us // HOUR), last + 1):
            lasted = min(to_us, (hour + 1) * HOUR) - max(row.since_us, hour * HOUR)
            if lasted > 0:
                own[hour, row.group_id] += row.gpus * row.rate_m * lasted
    return own
