"""A cluster of two departments that are strangers to each other, on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from ledger.conftest import engine, migrated_sqlite, postgres, url  # noqa: F401 - fixtures
from starlette.testclient import TestClient

from evenhand_api.access.grants import Scope
from evenhand_api.access.tokens import create_token
from evenhand_api.ledger.database import open_engine, writing
from evenhand_api.settings import Settings, Tokens
from service.departments import seed
from service.inline import inline_client

_numbers = itertools.count()


@dataclass(frozen=True)
class Office:
    """A service without its processes over a ledger with three rounds, and a way to get tokens."""

    url: str
    client: TestClient

    def token(self, *scopes: Scope, **limits: object) -> dict[str, str]:
        """The header of a new token."""
        ledger = open_engine(self.url)
        with writing(ledger) as connection:
            secret, _ = create_token(connection, "test", scopes, **limits)  # type: ignore[arg-type]
        ledger.dispose()
        return {"Authorization": f"Bearer {secret.written()}"}


@pytest.fixture(scope="session", params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def office_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a ledger in which both departments have run jobs."""
    if request.param == "sqlite":
        path = tmp_path_factory.mktemp("office") / "ledger.sqlite3"
        path.write_bytes(Path(request.getfixturevalue("migrated_sqlite")).read_bytes())
        address = f"sqlite:///{path}"
    else:
        address = request.getfixturevalue("postgres").new_database(f"office{next(_numbers)}")
    ledger = open_engine(address)
    seed(ledger)
    ledger.dispose()
    return address


@pytest.fixture
def office(office_url: str) -> Iterator[Office]:
    """The service over that ledger; every caller needs a token."""
    client = inline_client(Settings(database_url=office_url, tokens=Tokens.REQUIRED, max_body_mb=0.1))
    yield Office(office_url, client)
    client.close()
    client.app.state.ledger.close()  # type: ignore[attr-defined]
