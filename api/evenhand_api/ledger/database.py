"""Opening the ledger's database: SQLite in WAL mode or PostgreSQL, migrated to this version's tables."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import QueuePool

from evenhand_api.ledger.errors import LedgerUnavailable
from evenhand_api.ledger.file_lock import locked
from evenhand_api.settings import Settings
from evenhand_models import FieldError, InvalidInput

BUSY_S = 30.0
"""Seconds a writer waits for another one (SQLite) or for a connection."""
MIGRATION_LOCK = 0x6576656E68616E64
"""Key of the advisory lock under which PostgreSQL is migrated ("evenhand")."""


_alembic = threading.Lock()
"""Alembic keeps its context in globals: one migration at a time in a process, whatever the database."""


def database_url(settings: Settings) -> str:
    """Return the address of the ledger's database: the one set, else a file in the data directory."""
    if settings.database_url:
        return settings.database_url
    return f"sqlite:///{Path(settings.data_dir).expanduser().absolute() / 'ledger.sqlite3'}"


def open_engine(url: str) -> Engine:
    """Make an engine; nothing is connected yet.

    Raises
    ------
    InvalidInput
        If the address is none, or names a database other than SQLite and PostgreSQL.
    """
    try:
        parsed = make_url(url)
        backend = parsed.get_backend_name()
        if backend == "sqlite":
            return _open_sqlite(url)
        if backend == "postgresql":
            return create_engine(
                parsed,
                pool_size=8,
                max_overflow=8,
                pool_timeout=BUSY_S,
                pool_pre_ping=True,
                pool_recycle=1_800,
                connect_args={"connect_timeout": 10},
            )
    except (ArgumentError, NoSuchModuleError, ImportError) as reason:
        raise InvalidInput([FieldError("/EVENHAND_DATABASE_URL", f"the address cannot be used: {reason}.")]) from None
    message = f"{backend} is no database the ledger can live in; sqlite and postgresql are."
    raise InvalidInput([FieldError("/EVENHAND_DATABASE_URL", message)])


def migrate(engine: Engine) -> None:
    """Bring the database to this version's tables; harmless if it is there, safe if several processes do it.

    Raises
    ------
    LedgerUnavailable
        If the database cannot be reached or written.
    """
    from alembic import command  # late: a short command line program needs no migrations to say --help
    from alembic.config import Config
    from alembic.util import CommandError

    try:
        with _alembic, _alone(engine), engine.begin() as connection:
            config = Config()
            config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
    except (SQLAlchemyError, OSError, CommandError) as reason:  # the last: tables of a version that is not known here
        raise LedgerUnavailable(f"the ledger cannot be opened: {first_line(reason)}") from reason


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """Give a connection whose reads all see one moment.

    Raises
    ------
    LedgerUnavailable
        If the database cannot be reached.
    """
    with _mapped(), engine.connect() as connection:
        if connection.dialect.name == "postgresql":
            connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        else:
            connection.execution_options(evenhand_reads=True)
        with connection.begin():
            yield connection


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """Give a connection in a transaction that is written whole at the end, or not at all.

    Raises
    ------
    LedgerUnavailable
        If the database cannot be reached or written.
    """
    with _mapped(), engine.begin() as connection:
        yield connection


@contextmanager
def rehearsing(engine: Engine) -> Iterator[Connection]:
    """Give a connection whose transaction is taken back at the end: what would the ledger say if this were written.

    Raises
    ------
    LedgerUnavailable
        If the database cannot be reached or written.
    """
    with _mapped(), engine.connect() as connection:
        transaction = connection.begin()
        try:
            yield connection
        finally:
            transaction.rollback()


def first_line(reason: BaseException) -> str:
    """Say what a database complained of, in its first line, without the statement."""
    original = getattr(reason, "orig", None) or reason
    return (str(original).strip().splitlines() or [type(original).__name__])[0]


@contextmanager
def _mapped() -> Iterator[None]:
    try:
        yield
    except SQLAlchemyError as reason:
        if _is_away(reason):
            raise LedgerUnavailable(f"the ledger's database does not answer: {first_line(reason)}") from reason
        raise


def _is_away(reason: SQLAlchemyError) -> bool:
    """Tell a database that is away, full or locked from a defect of ours."""
    return isinstance(reason, OperationalError | PoolTimeout) or bool(getattr(reason, "connection_invalidated", False))


def _open_sqlite(url: str) -> Engine:
    # A file pool that keeps connections; autocommit off in the driver, so that BEGIN is ours to write.
    engine = create_engine(
        url,
        poolclass=QueuePool,
        pool_size=8,
        max_overflow=8,
        pool_timeout=BUSY_S,
        connect_args={"timeout": BUSY_S, "check_same_thread": False, "isolation_level": None},
    )
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: sqlite3.Connection, _: object) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")


def _begin_sqlite(connection: Connection) -> None:
    """Begin as a writer at once: a reader that turns writer may find that it cannot."""
    reads = connection.get_execution_options().get("evenhand_reads", False)
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")


@contextmanager
def _alone(engine: Engine) -> Iterator[None]:
    """Keep other processes from migrating meanwhile."""
    if engine.dialect.name == "postgresql":
        with engine.connect() as connection:
            connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": MIGRATION_LOCK})
            try:
                yield
            finally:
                connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": MIGRATION_LOCK})
        return
    path = Path(engine.url.database or "")
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path.with_name(f"{path.name}.migrate.lock")):
        yield
