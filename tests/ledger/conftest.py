"""Every test of the ledger runs on SQLite and on a real PostgreSQL, each test on a database of its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine
from starlette.testclient import TestClient

from evenhand_api.ledger.database import migrate, open_engine
from evenhand_api.rest import create_app
from evenhand_api.settings import Settings
from ledger.clusters import Cluster
from ledger.postgres import Server, running_server

_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A server with one migrated database, from which each test gets a copy."""
    with running_server() as server:
        engine = open_engine(server.new_database("migrated", "template1"))
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
    return server.new_database(f"test{next(_numbers)}")


@pytest.fixture(scope="session", params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def house(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A whole service in this process, its rounds in one of their own, on either database; one cluster a test."""
    if request.param == "sqlite":
        settings = Settings(max_concurrent=1, data_dir=str(tmp_path_factory.mktemp("house")))
    else:
        server: Server = request.getfixturevalue("postgres")
        settings = Settings(max_concurrent=1, database_url=server.new_database(f"house{next(_numbers)}"))
    with TestClient(create_app(settings), raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def cluster(house: TestClient) -> Cluster:
    """A cluster of a test's own, not configured yet."""
    return Cluster(house, f"c{next(_numbers)}")


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    engine = open_engine(url)
    yield engine
    engine.dispose()
