"""Forgetting: what lies far enough back leaves the ledger, exactly and in one transaction."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, delete, func, select, update

from evenhand_api.ledger.clusters import Cluster
from evenhand_api.ledger.instants import HOUR, HOURS_OF_DAY, SECOND
from evenhand_api.ledger.tables import (
    adjustments,
    clusters,
    days,
    decisions,
    facts,
    hours,
    incarnations,
    intervals,
    jobs,
    observations,
    owed_hours,
    rounds,
)
from evenhand_models import FieldError, InvalidInput


@dataclass(frozen=True, slots=True)
class Forgotten:
    """How many rows left."""

    intervals: int
    rounds: int
    jobs: int


def least_kept_us(cluster: Cluster) -> int:
    """Return how far back the ledger must reach for the policy in force: its window, or 64 half-lives."""
    policy = cluster.policy
    return (policy.window_s if policy.half_life_s is None else 64 * policy.half_life_s) * SECOND


def forget_before(connection: Connection, cluster: Cluster, before_us: int) -> Forgotten:
    """Delete what ended before an instant: starts of jobs with their intervals, rounds, hours, adjustments.

    The instant is moved back to a full hour. Jobs that still run, or ended since, keep all their lines.

    Parameters
    ----------
    connection : in a transaction that writes, the cluster's row locked.

    Raises
    ------
    InvalidInput
        If the policy's window reaches back beyond the instant.
    """
    before_us = before_us // HOUR * HOUR
    if cluster.last_now_us is None or before_us > cluster.last_now_us - least_kept_us(cluster):
        raise InvalidInput(
            [FieldError("", "the policy's memory reaches back further than that: nothing is forgotten.")]
        )
    i, n = incarnations.c, intervals.c
    old = select(i.job, i.started_us).where(i.cluster_id == cluster.id, i.present.is_(False), i.end_us < before_us)
    gone = set(map(tuple, connection.execute(old)))
    # A start is settled with all others of its job: a job goes whole, or stays whole.
    stays = set(connection.execute(select(i.job).where(i.cluster_id == cluster.id, _not_old(before_us))).scalars())
    names = sorted({job for job, _ in gone} - stays)
    count = 0
    for at in range(0, len(names), 400):
        chunk = names[at : at + 400]
        count += connection.execute(
            select(func.count()).select_from(intervals).where(n.cluster_id == cluster.id, n.job.in_(chunk))
        ).scalar_one()
        for table in (intervals, facts, incarnations, decisions, observations):
            connection.execute(delete(table).where(table.c.cluster_id == cluster.id, table.c.job.in_(chunk)))
        j = jobs.c
        connection.execute(delete(jobs).where(j.cluster_id == cluster.id, j.job.in_(chunk), j.last_round.is_not(None)))
    r = rounds.c
    rounds_gone = connection.execute(
        delete(rounds).where(r.cluster_id == cluster.id, r.now_us < before_us, r.n < cluster.last_round)
    ).rowcount
    for table in (hours, owed_hours):
        connection.execute(delete(table).where(table.c.cluster_id == cluster.id, table.c.hour < before_us // HOUR))
    # A day of which some hours stay keeps its sum: no window begins before the instant, none reads that day whole.
    connection.execute(
        delete(days).where(days.c.cluster_id == cluster.id, days.c.day < before_us // HOUR // HOURS_OF_DAY)
    )
    a = adjustments.c
    connection.execute(delete(adjustments).where(a.cluster_id == cluster.id, a.at_us < before_us))
    connection.execute(update(clusters).where(clusters.c.id == cluster.id).values(kept_from_us=before_us))
    return Forgotten(count, rounds_gone, len(names))


def _not_old(before_us: int) -> ColumnElement[bool]:
    i = incarnations.c
    return i.present.is_(True) | i.end_us.is_(None) | (i.end_us >= before_us)
