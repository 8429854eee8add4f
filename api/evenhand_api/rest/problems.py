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

from evenhand_models import EvenhandError, FieldError, InvalidInput

PROBLEM_JSON = "application/problem+json"


class Kind(Enum):
    """The closed list of problems: status, name in the type's address, title, what it means."""

    MALFORMED = (400, "malformed", "The body is not JSON", "The body is empty, or no strict JSON in UTF-8.")
    NOT_FOUND = (404, "not-found", "No such resource", "Nothing answers at this path.")
    METHOD_NOT_ALLOWED = (
        405,
        "method-not-allowed",
        "Method not allowed",
        "The path exists, but not for this method; the Allow header lists those that do.",
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
    HTTP = (400, "bad-request", "The request cannot be served", "The request is no proper HTTP.")
    INTERNAL = (500, "internal", "The service failed", "A defect of the service; the log has the details.")
    OVER_CAPACITY = (
        503,
        "over-capacity",
        "Over capacity",
        "All processes are busy and the queue is full; Retry-After says in how many seconds to come back.",
    )
    NOT_READY = (503, "not-ready", "Not ready", "No process has solved its first round yet.")

    def __init__(self, status: int, slug: str, title: str, meaning: str) -> None:
        self.status = status
        self.slug = slug
        self.title = title
        self.meaning = meaning

    @property
    def type(self) -> str:
        """The problem's type: an address on this service that says what it means."""
        return f"/docs#problem-{self.slug}"


KINDS_OF_ERRORS: tuple[tuple[type[EvenhandError], Kind], ...] = ((InvalidInput, Kind.INVALID),)
"""The error tree mapped to kinds. An `EvenhandError` in no row is a defect: it answers 500."""

KINDS_OF_STATUSES: Mapping[int, Kind] = {
    kind.status: kind for kind in (Kind.HTTP, Kind.NOT_FOUND, Kind.METHOD_NOT_ALLOWED, Kind.TOO_LARGE)
}
"""What the framework refuses by itself, by status."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A finished response: status, media type, headers, body."""

    status: int
    media_type: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


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


def kind_of(error: Exception) -> Kind:
    """Look an error up in the table."""
    return next((kind for known, kind in KINDS_OF_ERRORS if isinstance(error, known)), Kind.INTERNAL)
