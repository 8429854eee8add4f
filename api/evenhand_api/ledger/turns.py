"""Rounds of one cluster take turns, over all processes that share the ledger.

A turn lasts as long as the solver needs, and no row is locked meanwhile: events and reads go on. It ends with the
process that holds it, whatever kills that: PostgreSQL gives up the lock of a connection that is gone, the
operating system that of a file.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Engine, text

from evenhand_api.ledger.database import writing
from evenhand_api.ledger.file_lock import locked

ROUNDS = 0x726F756E
"""First half of the advisory locks' key ("roun"); the second is made from the cluster's number."""


@contextmanager
def turn(engine: Engine, cluster_id: int) -> Iterator[None]:
    """Wait for the cluster's turn and hold it.

    Raises
    ------
    LedgerUnavailable
        If the database cannot be reached.
    """
    if engine.dialect.name == "postgresql":
        key = zlib.crc32(str(cluster_id).encode()) & 0x7FFFFFFF
        with writing(engine) as connection:  # a lock of the transaction works through connection poolers too
            connection.execute(text("SELECT pg_advisory_xact_lock(:kind, :key)"), {"kind": ROUNDS, "key": key})
            yield
        return
    path = Path(engine.url.database or "")
    with locked(path.with_name(f"{path.name}.turn-{cluster_id}.lock")):
        yield
