"""The ledger of a process: opened when first needed, and again after the database was away."""

from __future__ import annotations

import threading

from sqlalchemy import Engine

from evenhand_api.ledger.database import database_url, migrate, open_engine
from evenhand_api.settings import Settings


class Ledger:
    """An engine whose database has been migrated."""

    def __init__(self, settings: Settings) -> None:
        self.url = database_url(settings)
        self._engine = open_engine(self.url)
        self._ready = False
        self._lock = threading.Lock()

    def engine(self) -> Engine:
        """Return the engine; the first call migrates the database.

        Raises
        ------
        LedgerUnavailable
            If the database cannot be reached; the next call tries again.
        """
        if not self._ready:
            with self._lock:
                if not self._ready:
                    migrate(self._engine)
                    self._ready = True
        return self._engine

    def close(self) -> None:
        """Give all connections back."""
        self._engine.dispose()
