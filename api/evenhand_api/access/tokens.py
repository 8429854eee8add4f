"""Tokens in the ledger's database: made, listed, revoked, looked up."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Connection, Row, insert, or_, select, update

from evenhand_api.access.grants import Grant, Scope
from evenhand_api.access.secrets import NOBODY, Secret, new_secret
from evenhand_api.ledger.errors import UnknownName
from evenhand_api.ledger.instants import HOUR, wall_clock_us
from evenhand_api.ledger.tables import tokens
from evenhand_models import FieldError, InvalidInput


@dataclass(frozen=True, slots=True)
class Token:
    """A token as it is listed, without its secret.

    Attributes
    ----------
    created_us, expires_us, revoked_us : microseconds since 1970; None: it does not end, is not revoked.
    """

    grant: Grant
    created_us: int
    expires_us: int | None
    revoked_us: int | None

    def works(self, now_us: int) -> bool:
        """Tell whether it is neither revoked nor over."""
        return self.revoked_us is None and (self.expires_us is None or now_us < self.expires_us)


def create_token(
    connection: Connection,
    label: str,
    scopes: Collection[Scope],
    *,
    cluster: str | None = None,
    groups: Collection[str] = (),
    days: int | None = None,
) -> tuple[Secret, Token]:
    """Make a token; its secret is returned here and never again.

    Parameters
    ----------
    days : after so many days it ends; None: it does not.

    Raises
    ------
    InvalidInput
        If it would say nothing, or administer a part of a tree.
    """
    errors = []
    if not 1 <= len(label) <= 256 or not label.isprintable():
        errors.append(FieldError("/label", "a token needs a name of 1 to 256 printable characters."))
    if not scopes:
        errors.append(FieldError("/scopes", f"a token needs a scope: {', '.join(Scope)}."))
    if groups and Scope.ADMINISTER in scopes:
        errors.append(FieldError("/scopes", "administer covers a whole tree: it cannot be limited to groups."))
    if errors:
        raise InvalidInput(errors)
    secret, now_us = new_secret(), wall_clock_us()
    values = {
        "id": secret.id,
        "digest": secret.digest,
        "label": label,
        "scopes": json.dumps(sorted(scopes)),
        "cluster": cluster,
        "groups": json.dumps(sorted(set(groups))) if groups else None,
        "created_us": now_us,
        "expires_us": None if days is None else now_us + days * 24 * HOUR,
    }
    connection.execute(insert(tokens).values(values))
    row = connection.execute(select(tokens).where(tokens.c.id == secret.id)).one()
    return secret, _read(row)


def list_tokens(connection: Connection) -> list[Token]:
    """Return all tokens, revoked ones too, the oldest first."""
    return [_read(row) for row in connection.execute(select(tokens).order_by(tokens.c.created_us, tokens.c.id))]


def revoke_token(connection: Connection, token: str) -> Token:
    """Revoke a token by its id; one that is revoked already stays as it is.

    Raises
    ------
    UnknownName
        If there is none.
    """
    mine = tokens.c.id == token
    stamp = {"revoked_us": wall_clock_us()}
    connection.execute(update(tokens).where(mine, tokens.c.revoked_us.is_(None)).values(stamp))
    row = connection.execute(select(tokens).where(mine)).one_or_none()
    if row is None:
        raise UnknownName(f"there is no token {token!r}")
    return _read(row)


def grant_of(connection: Connection, secret: Secret) -> Grant | None:
    """Return what a token may do; None if there is none of that secret, or it is revoked or over."""
    row = connection.execute(select(tokens).where(tokens.c.id == secret.id)).one_or_none()
    if not secret.matches(NOBODY if row is None else row.digest) or row is None:
        return None
    token = _read(row)
    return token.grant if token.works(wall_clock_us()) else None


def any_token(connection: Connection) -> bool:
    """Tell whether at least one token works."""
    t = tokens.c
    works = (t.revoked_us.is_(None), or_(t.expires_us.is_(None), t.expires_us > wall_clock_us()))
    return connection.execute(select(t.id).where(*works).limit(1)).first() is not None


def _read(row: Row[tuple[object, ...]]) -> Token:
    groups = None if row.groups is None else frozenset(json.loads(row.groups))
    scopes = frozenset(Scope(scope) for scope in json.loads(row.scopes))
    grant = Grant(row.id, row.label, scopes, row.cluster, groups)
    return Token(grant, row.created_us, row.expires_us, row.revoked_us)
