"""Reading what stands in an address or a header: names, instants, numbers. All faults are refused, none ignored."""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import datetime

from starlette.requests import Request

from evenhand_api.ledger.words import instant_of
from evenhand_models import FieldError, InvalidInput

CLUSTER_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"
"""What a cluster may be called: it stands in addresses and in metrics."""
KEY_HEADER = "Idempotency-Key"
_is_name = re.compile(CLUSTER_NAME, re.ASCII).fullmatch
_is_key = re.compile(r"[\x21-\x7e]{1,200}", re.ASCII).fullmatch


def cluster_name(request: Request) -> str:
    """Return the cluster's name in the path.

    Raises
    ------
    InvalidInput
        If no cluster can be called so.
    """
    name = str(request.path_params["name"])
    if not _is_name(name):
        raise InvalidInput([FieldError("", f"{name[:140]!r} is no name of a cluster: {CLUSTER_NAME}.")])
    return name


def idempotency_key(request: Request) -> str | None:
    """Return the Idempotency-Key, None if there is none.

    Raises
    ------
    InvalidInput
        If it is longer than 200 characters, or not of visible ASCII.
    """
    key = request.headers.get(KEY_HEADER)
    if key is not None and not _is_key(key):
        raise InvalidInput([FieldError("", f"{KEY_HEADER} must be 1 to 200 visible ASCII characters.")])
    return key


class Query:
    """The parameters behind the question mark.

    Raises
    ------
    InvalidInput
        If one is unknown or stands twice.
    """

    def __init__(self, request: Request, known: Collection[str]) -> None:
        self._given = dict(request.query_params)
        errors = [
            FieldError("", f"there is no parameter {name[:60]!r} here; known: {', '.join(known) or 'none'}.")
            for name in self._given
            if name not in known
        ]
        errors += [
            FieldError("", f"parameter {name} stands more than once.")
            for name in known
            if len(request.query_params.getlist(name)) > 1
        ]
        if errors:
            raise InvalidInput(errors)

    def instant(self, name: str) -> datetime | None:
        """Read an instant, None if it is not given."""
        given = self._given.get(name)
        if given is None:
            return None
        try:
            return instant_of(given.replace(" ", "+"))  # a plus that was not percent-encoded
        except ValueError as refused:
            raise InvalidInput([FieldError("", f"parameter {name} {refused}.")]) from None

    def number(self, name: str, least: int, most: int) -> int | None:
        """Read a whole number within bounds, None if it is not given."""
        given = self._given.get(name)
        if given is None:
            return None
        if not re.fullmatch(r"[0-9]{1,10}", given, re.ASCII) or not least <= int(given) <= most:
            raise InvalidInput([FieldError("", f"parameter {name} must be a whole number from {least} to {most}.")])
        return int(given)
