"""Every test of the ledger runs on SQLite and on a real PostgreSQL, each test on a database of its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, text

from evenhand_api.ledger.database import migrate, open_engine
from ledger.postgres import Server, running_server

_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A server with one migrated database, from which each test gets a copy."""
    with running_server() as server:
        admin = create_engine(server.url("postgres"), isolation_level="AUTOCOMMIT")
        with admin.connect() as connection:
            connection.execute(text("CREATE DATABASE migrated"))
        admin.dispose()
        engine = open_engine(server.url("migrated"))
        migrate(engine)
        engine.dispose()
        yield server


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated file, of which each test gets a copy."""
    path = tmp_path_factory.mktemp("migrated") / "ledger.sqlite3"
    engine = open_engine(f"sqlite:///{path}")
    migrate(engine)
    engine.dispose()
    return path


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a migrated, empty ledger."""
    if request.param == "sqlite":
        path = tmp_path / "ledger.sqlite3"
        path.write_bytes(request.getfixturevalue("migrated_sqlite").read_bytes())
        return f"sqlite:///{path}"
    server: Server = request.getfixturevalue("postgres")
    name = f"test{next(_numbers)}"
    admin = create_engine(server.url("postgres"), isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name} TEMPLATE migrated"))
    admin.dispose()
    return server.url(name)


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    engine = open_engine(url)
    yield engine
    engine.dispose()
