"""evenhand token: who may ask the service what."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.text import Text

from evenhand_api.access.grants import Scope
from evenhand_api.access.tokens import Token, create_token, list_tokens, revoke_token
from evenhand_api.commands.settings import SettingsFile
from evenhand_api.commands.terminal import EXIT_CODES, Failure, JsonOption, reported, say, write_bytes, write_report
from evenhand_api.ledger.database import reading, writing
from evenhand_api.ledger.errors import LedgerUnavailable, UnknownName
from evenhand_api.ledger.instants import wall_clock_us, written
from evenhand_api.ledger.opening import Ledger
from evenhand_api.report.text import table
from evenhand_api.settings import Settings

token_commands = typer.Typer(
    help="Who may ask the service what: make, list and revoke tokens.", epilog=EXIT_CODES, no_args_is_help=True
)


@token_commands.command("create")
def create_command(
    name: Annotated[str, typer.Argument(help="What the token is for; stands in lists and logs.")],
    *,
    scope: Annotated[
        list[Scope], typer.Option(help="What it may do; may be given more than once. None includes another.")
    ] = [Scope.READ],  # noqa: B006 - typer reads it, nothing writes it
    cluster: Annotated[str | None, typer.Option(help="The only cluster it is for; else all.")] = None,
    group: Annotated[
        list[str] | None,
        typer.Option(help="Limit it to this group and all below it; may be given more than once; else the whole tree."),
    ] = None,
    days: Annotated[int | None, typer.Option(min=1, max=36_500, help="It ends after so many days; else never.")] = None,
    settings_file: SettingsFile = None,
    as_json: JsonOption = False,
) -> None:
    """Make a token and show it, this once: only its SHA-256 is kept."""
    with reported(), _ledger(settings_file) as ledger:
        with writing(ledger.engine()) as connection:
            secret, token = create_token(connection, name, set(scope), cluster=cluster, groups=group or (), days=days)
        if as_json:
            write_bytes(json.dumps(_document(token) | {"token": secret.written()}).encode() + b"\n")
            return
        say(f"evenhand: token {secret.id} for {name!r}; it is shown this once:")
        write_bytes(secret.written().encode() + b"\n")


@token_commands.command("list")
def list_command(*, settings_file: SettingsFile = None, as_json: JsonOption = False) -> None:
    """List all tokens, without their secrets."""
    with reported(), _ledger(settings_file) as ledger:
        with reading(ledger.engine()) as connection:
            found = list_tokens(connection)
        if as_json:
            write_bytes(json.dumps([_document(token) for token in found]).encode() + b"\n")
            return
        listed = table("id", "name", "scopes", "cluster", "groups", "created", "state")
        for token in found:
            grant = token.grant
            parts = (grant.token, grant.label, ", ".join(sorted(grant.scopes)), grant.cluster or "all")
            groups = "all" if grant.groups is None else ", ".join(sorted(grant.groups))
            listed.add_row(*map(Text, (*parts, groups, written(token.created_us)[:19] + "Z", _state(token))))
        write_report([listed])


@token_commands.command("revoke")
def revoke_command(
    token: Annotated[str, typer.Argument(help="The token's id, as listed.")], *, settings_file: SettingsFile = None
) -> None:
    """Revoke a token: it stops working at once, in every process that shares the ledger."""
    with reported(), _ledger(settings_file) as ledger:
        with writing(ledger.engine()) as connection:
            revoked = revoke_token(connection, token)
        say(f"evenhand: token {token} for {revoked.grant.label!r} is revoked")


def _document(token: Token) -> dict[str, Any]:
    grant = token.grant
    return {
        "id": grant.token,
        "name": grant.label,
        "scopes": sorted(grant.scopes),
        "cluster": grant.cluster,
        "groups": None if grant.groups is None else sorted(grant.groups),
        "created_at": written(token.created_us),
        "expires_at": None if token.expires_us is None else written(token.expires_us),
        "revoked_at": None if token.revoked_us is None else written(token.revoked_us),
    }


def _state(token: Token) -> str:
    if token.revoked_us is not None:
        return "revoked"
    if token.expires_us is None:
        return "works"
    return f"{'works until' if token.works(wall_clock_us()) else 'over since'} {written(token.expires_us)[:19]}Z"


@contextmanager
def _ledger(file: str | None) -> Iterator[Ledger]:
    """Open the ledger that the settings name.

    Raises
    ------
    Failure
        If it cannot be reached, or has no such token.
    """
    ledger = Ledger(Settings.from_environment(os.environ, file))
    try:
        yield ledger
    except (LedgerUnavailable, UnknownName) as reason:
        raise Failure(f"{reason}.") from None
    finally:
        ledger.close()
