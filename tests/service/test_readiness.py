"""/readyz means it: processes that solve, a database that answers, tables of this version."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Engine, text
from starlette.testclient import TestClient

from evenhand_api.ledger.database import migrate, open_engine, writing
from evenhand_api.rest.workers import Workers
from evenhand_api.settings import Settings
from service.inline import inline_client


def ready_client(url: str, monkeypatch: object) -> TestClient:
    """A service whose processes are said to be ready, so that only the database decides."""
    monkeypatch.setattr(Workers, "complaint", None)  # type: ignore[attr-defined]
    return inline_client(Settings(database_url=url))


def test_it_is_ready_once_the_database_is_there_and_migrated(url: str, monkeypatch: object) -> None:
    answer = ready_client(url, monkeypatch).get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (200, "ready")


def test_it_is_not_ready_with_tables_of_another_version(url: str, engine: Engine, monkeypatch: object) -> None:
    client = ready_client(url, monkeypatch)
    assert client.get("/readyz").status_code == 200
    with writing(engine) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert "9999" in answer.json()["detail"]
    assert int(answer.headers["retry-after"]) > 0


def test_an_older_version_says_that_it_cannot_open_newer_tables(url: str, engine: Engine, monkeypatch: object) -> None:
    with writing(engine) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    client = ready_client(url, monkeypatch)
    for path in ("/readyz", "/v1/clusters"):
        answer = client.get(path)
        assert answer.status_code == 503
        assert "9999" in answer.json()["detail"]


def test_it_is_not_ready_while_the_database_is_away_and_ready_when_it_is_back(
    tmp_path: Path, monkeypatch: object
) -> None:
    blocked = tmp_path / "data"
    blocked.write_text("a file where the directory should be")
    client = ready_client(f"sqlite:///{blocked}/ledger.sqlite3", monkeypatch)
    answer = client.get("/readyz")
    assert (answer.status_code, answer.headers["content-type"]) == (503, "application/problem+json")
    assert client.get("/healthz").status_code == 200
    blocked.unlink()
    engine = open_engine(f"sqlite:///{blocked}/ledger.sqlite3")
    migrate(engine)
    engine.dispose()
    assert client.get("/readyz").status_code == 200


def test_it_is_not_ready_without_a_process_that_solves(tmp_path: Path) -> None:
    answer = inline_client(Settings(data_dir=str(tmp_path))).get("/readyz")
    assert answer.status_code == 503
    assert "process" in answer.json()["detail"]
