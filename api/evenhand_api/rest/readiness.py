"""Whether the service can do its work: processes that solve, a database that answers and has this version's tables."""

from __future__ import annotations

import asyncio
from functools import cache
from pathlib import Path

from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from evenhand_api.ledger import migrations
from evenhand_api.ledger.database import reading
from evenhand_api.ledger.errors import LedgerUnavailable
from evenhand_api.ledger.opening import Ledger

PATIENCE_S = 5.0
"""Seconds the database has to answer."""


class LedgerCheck:
    """Asks the database whether it is there and migrated; one question at a time, however many want to know."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._asked: asyncio.Task[str | None] | None = None

    async def complaint(self) -> str | None:
        """Say what is wrong with the ledger's database; None: it answers and has the tables of this version."""
        if self._asked is None or self._asked.done():
            self._asked = asyncio.create_task(asyncio.to_thread(_complaint, self._ledger))
        asked = self._asked
        await asyncio.wait({asked}, timeout=PATIENCE_S)
        return asked.result() if asked.done() else f"The ledger's database did not answer within {PATIENCE_S:g} s."


def _complaint(ledger: Ledger) -> str | None:
    try:
        with reading(ledger.engine()) as connection:
            found = MigrationContext.configure(connection).get_current_revision()
    except LedgerUnavailable as away:
        return f"{str(away)[:1].upper()}{str(away)[1:]}."
    if found == _newest():
        return None
    return f"The ledger's database has the tables of revision {found}; this version needs {_newest()}."


@cache
def _newest() -> str | None:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__path__[0])))
    return ScriptDirectory.from_config(config).get_current_head()
