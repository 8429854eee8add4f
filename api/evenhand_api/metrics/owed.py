"""Owed against received by group, read from the ledger for metrics; at most once a minute."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from evenhand_api.ledger.clusters import find_cluster, list_clusters
from evenhand_api.ledger.database import reading
from evenhand_api.ledger.errors import LedgerUnavailable
from evenhand_api.ledger.instants import HOUR
from evenhand_api.ledger.opening import Ledger
from evenhand_api.ledger.owed import owed_received

FRESH_S = 60.0
"""Seconds for which a reading is given out again."""


@dataclass(frozen=True, slots=True)
class OwedRow:
    """One group of one cluster over the period, in charged GPU-hours; inner groups with all below them."""

    cluster: str
    group: str
    owed: float
    received: float


class OwedGauge:
    """The last reading, and whether the ledger answered."""

    def __init__(self, ledger: Ledger, hours: int) -> None:
        self._ledger = ledger
        self._hours = hours
        self._read_at: float | None = None
        self.rows: Sequence[OwedRow] = ()
        self.up = False

    def refresh(self) -> None:
        """Read the ledger anew if the last reading is old. Blocks; where the ledger is away, `up` says so."""
        if self.up and self._read_at is not None and time.monotonic() - self._read_at < FRESH_S:
            return
        try:
            with reading(self._ledger.engine()) as connection:
                self.rows = [row for name in list_clusters(connection) for row in _rows(connection, name, self._hours)]
            self.up = True
        except LedgerUnavailable:
            self.up = False
        self._read_at = time.monotonic()


def _rows(connection: Connection, name: str, hours: int) -> list[OwedRow]:
    cluster = find_cluster(connection, name)
    if cluster.last_now_us is None:
        return []
    tree = cluster.config.groups
    start = cluster.last_now_us - hours * HOUR
    owed: dict[str, float] = defaultdict(float)
    received: dict[str, float] = defaultdict(float)
    for hour in owed_received(connection, cluster.id, tree, start, cluster.last_now_us):
        owed[hour.group] += hour.owed
        received[hour.group] += hour.received
    return [OwedRow(name, group.id, owed[group.id], received[group.id]) for group in tree]
