"""Every error the service answers with, in one table (RFC 9457, application/problem+json).

A refusal that the service itself makes is a `Refusal` of one `Kind`. Errors of the library are mapped to a
kind by `KINDS_OF_ERRORS`, first match first; whatever stands in no row is a defect: `Kind.INTERNAL`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from evenhand_api.ledger.errors import ClockWentBack, KeyReused, LedgerUnavailable, StaleState, UnknownName
from evenhand_api.metrics.figures import Figures
from evenhand_models import EvenhandError, FieldError, InvalidInput
from evenhand_models.parse import read_json

PROBLEM_JSON = "application/problem+json"


class Kind(Enum):
    """The closed list of problems: status, name in the type's address, title, what it means."""

    MALFORMED = (400, "malformed", "The body is not JSON", "The body is empty, or no strict JSON in UTF-8.")
    UNAUTHENTICATED = (
        401,
        "unauthenticated",
        "A token is needed",
        "There is no Authorization: Bearer header, or its token is unknown, revoked or over.",
    )
    FORBIDDEN = (
        403,
        "forbidden",
        "The token does not cover this",
        "The token lacks the scope, the cluster or the groups; whether what was asked for exists is not said.",
    )
    NOT_FOUND = (404, "not-found", "No such resource", "Nothing answers at this path.")
    METHOD_NOT_ALLOWED = (
        405,
        "method-not-allowed",
        "Method not allowed",
        "The path exists, but not for this method; the Allow header lists those that do.",
    )
    TOO_SLOW = (
        408,
        "too-slow",
        "The body came too slowly",
        "The whole body has to arrive within setting body_timeout_s.",
    )
    TOO_LARGE = (
        413,
        "too-large",
        "The body is too large",
        "The body, decompressed, is larger than the service accepts (setting max_body_mb).",
    )
    UNSUPPORTED = (
        415,
        "unsupported-media-type",
        "Unsupported media type",
        "The body must be application/json in UTF-8, as it is or with Content-Encoding gzip.",
    )
    INVALID = (
        422,
        "invalid-input",
        "The request contradicts the contract",
        "Fields are malformed or contradict each other; errors lists all of them with JSON pointers.",
    )
    NOT_FINISHED = (
        409,
        "not-finished",
        "Not finished",
        "The replay has no result: it runs, waits, failed or was cancelled.",
    )
    STALE_STATE = (
        409,
        "stale-state",
        "The state has moved on",
        "Another round or configuration came first: read the cluster again, and send what is so now.",
    )
    CLOCK_WENT_BACK = (
        409,
        "clock-went-back",
        "The clock went back",
        "The request's now lies before that of the cluster's last round.",
    )
    KEY_REUSED = (
        422,
        "key-reused",
        "The idempotency key was used before",
        "The same Idempotency-Key came with another body; a new request needs a key of its own.",
    )
    HTTP = (400, "bad-request", "The request cannot be served", "The request is no proper HTTP.")
    INTERNAL = (500, "internal", "The service failed", "A defect of the service; the log has the details.")
    OVER_CAPACITY = (
        503,
        "over-capacity",
        "Over capacity",
        "All processes are busy and the queue is full; Retry-After says in how many seconds to come back.",
    )
    LEDGER_UNAVAILABLE = (
        503,
        "ledger-unavailable",
        "The ledger does not answer",
        "The database is away, full or locked; nothing was written, and the same request may be sent again.",
    )
    NOT_READY = (
        503,
        "not-ready",
        "Not ready",
        "No process has solved its first round yet, or the ledger's database cannot be reached or is not migrated.",
    )
    STOPPING = (
        503,
        "stopping",
        "The service stops",
        "The service was told to stop before this was decided; nothing was written, send it again.",
    )

    def __init__(self, status: int, slug: str, title: str, meaning: str) -> None:
        self.status = status
        self.slug = slug
        self.title = title
        self.meaning = meaning

    @property
    def type(self) -> str:
        """The problem's type: an address on this service that says what it means."""
        return f"/docs#problem-{self.slug}"


KINDS_OF_ERRORS: tuple[tuple[type[EvenhandError], Kind], ...] = (
    (InvalidInput, Kind.INVALID),
    (UnknownName, Kind.NOT_FOUND),
    (StaleState, Kind.STALE_STATE),
    (ClockWentBack, Kind.CLOCK_WENT_BACK),
    (KeyReused, Kind.KEY_REUSED),
    (LedgerUnavailable, Kind.LEDGER_UNAVAILABLE),
)
"""The error tree mapped to kinds. An `EvenhandError` in no row is a defect: it answers 500."""

KINDS_OF_STATUSES: Mapping[int, Kind] = {
    kind.status: kind for kind in (Kind.HTTP, Kind.NOT_FOUND, Kind.METHOD_NOT_ALLOWED, Kind.TOO_LARGE)
}
"""What the framework refuses by itself, by status."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A finished response: status, media type, headers, body; of a round, what is counted of it."""

    status: int
    media_type: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    figures: Figures | None = None


class Refusal(Exception):
    """A request the service does not serve: the kind, what is wrong this time, headers of the answer."""

    def __init__(self, kind: Kind, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.headers = headers or {}


def problem(
    kind: Kind, detail: str, errors: tuple[FieldError, ...] = (), headers: Mapping[str, str] | None = None
) -> Answer:
    """Write a problem document."""
    document: dict[str, Any] = {
        "type": kind.type,
        "title": kind.title,
        "status": kind.status,
        "detail": detail,
        "errors": [{"pointer": error.pointer, "message": error.message} for error in errors],
    }
    # Surrogates can stand in a pointer: JSON allows "\ud800", UTF-8 does not. So write ASCII.
    return Answer(kind.status, PROBLEM_JSON, json.dumps(document).encode("ascii"), headers or {})


def problem_of(error: Exception, body: bytes | None = None) -> Answer | None:
    """Turn an error that stands in the table into a problem; None if it is a defect.

    Parameters
    ----------
    body : the request's body, if it had one: a body that is no JSON at all is said to be malformed.
    """
    kind = kind_of(error)
    if kind is Kind.INTERNAL:
        return None
    if not isinstance(error, InvalidInput):
        headers = {"Retry-After": "5"} if kind.status == 503 else {}
        return problem(kind, f"{str(error)[:1].upper()}{str(error)[1:]}.", headers=headers)
    if body is not None and not _is_json(body):
        return problem(Kind.MALFORMED, error.errors[0].message, error.errors)
    count = len(error.errors)
    said = f"{count} {'error' if count == 1 else 'errors'} in the request; nothing was decided."
    return problem(kind, said, error.errors)


def _is_json(body: bytes) -> bool:
    try:
        read_json(body)
    except InvalidInput:
        return False
    return True


def kind_of(error: Exception) -> Kind:
    """Look an error up in the table."""
    return next((kind for known, kind in KINDS_OF_ERRORS if isinstance(error, known)), Kind.INTERNAL)
