"""evenhand token, settings and serve: what is asked of whoever runs the service."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from evenhand_api.access.secrets import Secret, read_secret
from evenhand_api.access.tokens import grant_of
from evenhand_api.cli import app
from evenhand_api.ledger.database import open_engine, reading
from evenhand_api.settings import Settings
from evenhand_models import InvalidInput

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command line on a ledger of its own."""
    monkeypatch.setenv("EVENHAND_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    return lambda *arguments: CliRunner().invoke(app, list(arguments))


def test_a_token_is_shown_once_works_and_can_be_revoked(run: Run, tmp_path: Path) -> None:
    made = run("token", "create", "slurm", "--scope", "submit", "--scope", "read", "--cluster", "sky")
    assert made.exit_code == 0
    secret = read_secret(made.stdout.strip())
    assert secret is not None
    assert secret.written() == made.stdout.strip()
    listed = json.loads(run("token", "list", "--json").stdout)
    assert [(one["id"], one["name"], one["scopes"]) for one in listed] == [(secret.id, "slurm", ["read", "submit"])]
    assert secret.value not in run("token", "list").stdout
    assert grants(tmp_path, secret) == {"read", "submit"}
    assert run("token", "revoke", secret.id).exit_code == 0
    assert grants(tmp_path, secret) is None
    assert "revoked" in run("token", "list").stdout
    again = json.loads(run("token", "list", "--json").stdout)[0]["revoked_at"]
    assert run("token", "revoke", secret.id).exit_code == 0
    assert json.loads(run("token", "list", "--json").stdout)[0]["revoked_at"] == again


def grants(folder: Path, secret: Secret) -> set[str] | None:
    engine = open_engine(f"sqlite:///{folder}/ledger.sqlite3")
    with reading(engine) as connection:
        grant = grant_of(connection, secret)
    engine.dispose()
    return None if grant is None else set(grant.scopes)


def test_two_tokens_are_never_the_same(run: Run) -> None:
    assert len({run("token", "create", "twin").stdout for _ in range(5)}) == 5


def test_a_token_that_would_administer_a_part_of_a_tree_is_refused(run: Run) -> None:
    refused = run("token", "create", "x", "--scope", "administer", "--group", "a")
    assert refused.exit_code == 3
    assert "/scopes" in refused.stderr
    assert json.loads(run("token", "list", "--json").stdout) == []


def test_revoking_what_is_not_there_says_so(run: Run) -> None:
    refused = run("token", "revoke", "0123456789ab")
    assert refused.exit_code == 4
    assert "no token" in refused.stderr


@pytest.mark.parametrize("arguments", [["token", "list"], ["token", "create", "x"], ["serve", "--host", "0.0.0.0"]])
def test_a_ledger_that_cannot_be_opened_is_one_line(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EVENHAND_DATA_DIR", str(tmp_path / "file" / "below"))
    failed = run(*arguments)
    assert failed.exit_code == 4
    assert len(failed.stderr.splitlines()) == 1


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7"])
def test_it_does_not_serve_on_an_open_address_without_a_token(run: Run, host: str) -> None:
    refused = run("serve", "--host", host, "--port", "0")
    assert refused.exit_code == 4
    assert "evenhand token create" in refused.stderr


def test_a_revoked_token_is_not_enough_to_serve_and_one_that_works_is(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[Any] = []
    monkeypatch.setattr("evenhand_api.service._Server.run", lambda _, sockets: served.extend(sockets))
    monkeypatch.setattr("evenhand_api.service.write_log", lambda *_: None)
    secret = read_secret(run("token", "create", "x").stdout.strip())
    assert secret is not None
    run("token", "revoke", secret.id)
    assert run("serve", "--host", "0.0.0.0", "--port", "0").exit_code == 4
    assert served == []
    run("token", "create", "y")
    assert run("serve", "--host", "0.0.0.0", "--port", "0").exit_code == 0
    assert [type(one) for one in served] == [socket.socket]


def test_settings_are_shown_with_secrets_masked(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    address = "postgresql://eve:hush@db.example:5432/ledger?sslmode=require&sslpassword=hush2&password=hush3"
    monkeypatch.setenv("EVENHAND_DATABASE_URL", address)
    shown = json.loads(run("settings", "--json").stdout)
    assert set(shown) == set(Settings.model_fields)
    assert shown["database_url"] == (
        "postgresql://eve:***@db.example:5432/ledger?sslmode=require&sslpassword=***&password=***"
    )
    assert "hush" not in run("settings").stdout
    assert "hush" not in repr(shown)


def test_the_environment_goes_before_the_file_and_the_file_before_the_defaults(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "evenhand.toml"
    file.write_text('port = 9001\nmax_jobs = 10\nlog_level = "debug"\n')
    found = Settings.from_environment({"EVENHAND_SETTINGS_FILE": str(file), "EVENHAND_PORT": "9002"})
    assert (found.port, found.max_jobs, found.log_level, found.max_nodes) == (9002, 10, "debug", 20_000)
    assert json.loads(run("settings", "--settings", str(file), "--json").stdout)["port"] == 9001


@pytest.mark.parametrize(
    ("written", "pointer"),
    [("port = 'much'", "#/port"), ("prot = 1", "#/prot"), ("port = ", ""), ("\0", ""), (None, "")],
)
def test_what_is_wrong_in_a_file_is_said_with_its_key(tmp_path: Path, written: str | None, pointer: str) -> None:
    file = tmp_path / "evenhand.toml"
    if written is not None:
        file.write_text(written)
    with pytest.raises(InvalidInput) as refused:
        Settings.from_environment({}, str(file))
    assert refused.value.errors[0].pointer == (f"{file}{pointer}" if pointer else "")


def test_a_variable_is_blamed_even_where_there_is_a_file(tmp_path: Path) -> None:
    file = tmp_path / "evenhand.toml"
    file.write_text("port = 1\n")
    with pytest.raises(InvalidInput) as refused:
        Settings.from_environment({"EVENHAND_PORT": "x"}, str(file))
    assert refused.value.errors[0].pointer == "/EVENHAND_PORT"
