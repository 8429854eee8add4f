"""The part of a cluster that a token limited to groups may see."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sqlalchemy import Connection, select

from evenhand_api.access.grants import Grant, below, nearest
from evenhand_api.access.veil import Veil
from evenhand_api.ledger.clusters import Cluster, find_cluster
from evenhand_api.ledger.errors import UnknownName
from evenhand_api.ledger.packing import unpack
from evenhand_api.ledger.round_records import read_round
from evenhand_api.ledger.tables import holds, intervals, jobs

Document = dict[str, Any]


@dataclass(frozen=True)
class View:
    """A cluster at one moment of the ledger, and whose part of it is shown."""

    connection: Connection
    cluster: Cluster
    grant: Grant

    @cached_property
    def own(self) -> frozenset[str]:
        """The groups the token covers, those of the tree in force."""
        return below(self.grant.groups or (), self.cluster.config.groups)

    @cached_property
    def tree(self) -> frozenset[str]:
        """All groups of the tree in force."""
        return frozenset(group.id for group in self.cluster.config.groups)

    def covers(self, group: str | None) -> bool:
        """Tell whether a group is the token's; one that left the tree belongs to the ancestor its id names."""
        return self.grant.whole_tree or nearest(group, self.tree) in self.own

    def groups_of_job(self, job: str) -> set[str | None]:
        """Return the groups that a job was ever listed or charged under; empty: nothing is known of it."""
        found: set[str | None] = set()
        for table in (jobs, holds, intervals):
            c = table.c
            query = select(c.group_id).where(c.cluster_id == self.cluster.id, c.job == job).distinct()
            found |= set(self.connection.execute(query).scalars())
        return found

    def veil(self, n: int) -> Veil:
        """Return what hides the names of strangers in what round `n` said."""
        state = json.loads(unpack(read_round(self.connection, self.cluster, n).state))
        listed = state["jobs"]
        groups = {group["id"] for group in state["groups"]} | self.tree | {job["group"] for job in listed}
        shown = {group for group in groups if self.covers(group)}
        mine = [job for job in listed if job["group"] in shown]
        own_jobs = frozenset(job["id"] for job in mine)
        users = _users(listed) - _users(mine)
        others = {job["id"] for job in listed} - own_jobs
        return Veil(own_jobs, frozenset(shown), frozenset((groups - shown) | others | users))


def view_of(connection: Connection, name: str, grant: Grant) -> View | None:
    """Return what a token may see of a cluster; None if there is nothing, or no such cluster."""
    if not grant.reaches(name):
        return None
    try:
        view = View(connection, find_cluster(connection, name), grant)
    except UnknownName:
        return None
    return view if grant.whole_tree or view.own else None


def _users(listed: Iterable[Document]) -> set[str]:
    return {user for job in listed if (user := job.get("user")) is not None}
