"""What the ledger refuses, and what it cannot do. All hang under `EvenhandError`::

EvenhandError
├── LedgerUnavailable   the database is away, full or locked: nothing was written, try again
├── UnknownName         no such cluster, round, job or group
└── Conflict            the request rests on something that is no longer so
    ├── StaleState      another round or configuration came first
    ├── ClockWentBack   `now` lies before the last round's
    └── KeyReused       the idempotency key was used with another body
"""

from __future__ import annotations

from evenhand_models import EvenhandError


class LedgerUnavailable(EvenhandError):
    """The database does not answer or cannot be written; nothing was changed."""


class UnknownName(EvenhandError):
    """There is no cluster, round, job or group of that name."""


class Conflict(EvenhandError):
    """The request rests on something that is no longer so; nothing was changed."""


class StaleState(Conflict):
    """`state_version` is not the cluster's any more."""


class ClockWentBack(Conflict):
    """`now` lies before the last round's."""


class KeyReused(Conflict):
    """The idempotency key came before, with another body."""
