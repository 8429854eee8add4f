"""What a value may look like: names, whole GPUs, seconds, instants, factors. Units and bounds live here.

Nothing is coerced: ``"8"`` is no number, ``true`` is no number, ``0.5`` is no whole number. One allowance,
because JSON Schema makes it: a number with no fraction (``8.0``) is an integer. NaN and the infinities are
refused everywhere. Mappings are put in the order of their keys at birth: equal values, equal bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    WithJsonSchema,
)

MAX_GPUS = 10**6
"""Most GPUs one job, node or placement may name."""
MAX_INTEGER = 2**53 - 1
"""Largest integer that survives a reader of JSON who knows only doubles."""
MAX_SECONDS = 315_360_000
"""Longest duration, ten years of 365 days, in seconds."""
CLOCK_TOLERANCE = timedelta(seconds=300)
"""How far in the future of `now` a reported instant may lie before the state is refused."""
CHECKS_DEFERRED = {"evenhand": "whoever validates runs the checks between fields"}
"""Validation context by which the readers keep models from raising at the first contradiction."""


def _first_paragraph(schema: dict[str, Any]) -> None:
    """Keep what concerns only Python (Raises and the like) out of the JSON Schema."""
    if "description" in schema:
        schema["description"] = schema["description"].partition("\n\n")[0]


class WireModel(BaseModel):
    """A word of the wire contract: frozen at birth, unknown fields refused."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        validate_default=False,
        json_schema_extra=_first_paragraph,
    )


_DAY = r"-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_TIME = r"[Tt]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?"
_AT_UTC = rf"(19[7-9][0-9]|2[01][0-9][0-9]){_DAY}{_TIME}[Zz]"
_OFFSET = r"[+-]([01][0-9]|2[0-3]):[0-5][0-9]"
_AT_OFFSET = rf"(197[1-9]|19[89][0-9]|20[0-9][0-9]|21[0-8][0-9]|219[0-8]){_DAY}{_TIME}{_OFFSET}"
# With an offset a year less at both ends: moved to UTC, every instant still matches.
_INSTANT = f"^({_AT_UTC}|{_AT_OFFSET})$"
_is_instant = re.compile(f"({_AT_UTC}|{_AT_OFFSET})", re.ASCII).fullmatch
# The form nearly every stamp has, one of the former: 2026-11-01T00:00:00Z.
_is_plain = re.compile(rf"(?:19[7-9]|2[01]\d)\d{_DAY}T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\dZ", re.ASCII).fullmatch


def _read_instant(value: object) -> datetime:
    """Read an RFC 3339 stamp or an aware datetime into UTC."""
    if isinstance(value, str):
        plain = _is_plain(value)
        if plain is None and _is_instant(value) is None:
            raise ValueError("must be an RFC 3339 instant from 1970 to 2199 with an offset, like 2026-11-01T00:00:00Z")
        try:
            return datetime.fromisoformat(value) if plain else datetime.fromisoformat(value.upper()).astimezone(UTC)
        except ValueError as reason:
            raise ValueError(f"must be an instant that exists: {reason}") from None
    if not isinstance(value, datetime):
        raise ValueError("must be an RFC 3339 instant with an offset, like 2026-11-01T00:00:00Z")
    if value.utcoffset() is None:
        raise ValueError("must carry an offset from UTC, a naive time means nothing")
    moved = value.astimezone(UTC) if 1969 <= value.year <= 2200 else value
    if not 1970 <= moved.year <= 2199:
        raise ValueError("must lie in the years 1970 to 2199")
    if type(moved) is datetime:
        return moved
    return datetime.combine(moved.date(), moved.timetz())


def _whole(value: object) -> object:
    """Let ``8.0`` pass as ``8``, as JSON Schema's integer does."""
    return int(value) if type(value) is float and value.is_integer() else value


def _unsigned_zero(value: float) -> float:
    """Turn ``-0.0`` into ``0.0``, so that equal numbers have equal bytes."""
    return value + 0.0


def _by_key(mapping: dict[str, Any]) -> dict[str, Any]:
    """Put a mapping in the order of its keys."""
    return mapping if len(mapping) < 2 else dict(sorted(mapping.items()))


def _numbers_by_key(mapping: dict[str, float]) -> dict[str, float]:
    """Put a mapping in the order of its keys, and turn ``-0.0`` into ``0.0``."""
    return {name: mapping[name] + 0.0 for name in sorted(mapping)}


Instant = Annotated[
    datetime,
    BeforeValidator(_read_instant),
    WithJsonSchema({"type": "string", "format": "date-time", "pattern": _INSTANT}),
]
"""A moment, RFC 3339 with an offset; held in UTC, written with Z."""

_UNCONTROLLED = r"^[^\u0000-\u001f\u007f]"
_NAME = {"minLength": 1, "maxLength": 256, "pattern": _UNCONTROLLED + "+$"}
Id = Annotated[str, Strict(), Field(min_length=1, max_length=256, pattern=_UNCONTROLLED + "+$")]
"""A name: 1 to 256 characters, none of them a control character."""
LabelValue = Annotated[str, Strict(), Field(max_length=256, pattern=_UNCONTROLLED + "*$")]
"""The value of a label, may be empty."""
Text = Annotated[str, Strict()]
"""A sentence for people."""

# Bounds stand before the functions in each Annotated: so the compiled core checks them, which is quick.
WholeNumber = Annotated[int, Strict(), Field(ge=-MAX_INTEGER, le=MAX_INTEGER), BeforeValidator(_whole)]
"""An integer every reader of JSON can hold exactly."""
GpuCount = Annotated[int, Strict(), Field(ge=0, le=MAX_GPUS), BeforeValidator(_whole)]
"""Whole GPUs, 0 or more."""
GangSize = Annotated[int, Strict(), Field(ge=1, le=MAX_GPUS), BeforeValidator(_whole)]
"""Whole GPUs, 1 or more."""
TotalGpus = Annotated[int, Strict(), Field(ge=0, le=10**12), BeforeValidator(_whole)]
"""Whole GPUs summed over many nodes."""
Seconds = Annotated[int, Strict(), Field(ge=0, le=MAX_SECONDS), BeforeValidator(_whole)]
"""Whole seconds, 0 or more."""
PositiveSeconds = Annotated[int, Strict(), Field(ge=1, le=MAX_SECONDS), BeforeValidator(_whole)]
"""Whole seconds, 1 or more."""
Priority = Annotated[int, Strict(), Field(ge=-(10**9), le=10**9), BeforeValidator(_whole)]
"""A rank inside one group, higher first."""
Rank = Annotated[int, Strict(), Field(ge=1, le=MAX_INTEGER), BeforeValidator(_whole)]
"""A place, 1 the first."""
Count = Annotated[int, Strict(), Field(ge=0, le=MAX_INTEGER), BeforeValidator(_whole)]
"""A number of things seen, 0 or more."""
Evidence = Annotated[int, Strict(), Field(ge=1, le=10**6), BeforeValidator(_whole)]
"""A number of things seen, 1 or more."""
Few = Annotated[int, Strict(), Field(ge=0, le=1000), BeforeValidator(_whole)]
"""A number of things to do, 0 or more."""
Seed = Annotated[int, Strict(), Field(ge=0, le=2**31 - 1), BeforeValidator(_whole)]
"""A seed of a solver's choices."""
Threads = Annotated[int, Strict(), Field(ge=1, le=64), BeforeValidator(_whole)]
"""A number of threads."""

Number = Annotated[float, Strict(), Field(allow_inf_nan=False), AfterValidator(_unsigned_zero)]
"""A finite number."""
Amount = Annotated[float, Strict(), Field(ge=0, le=1e15, allow_inf_nan=False), AfterValidator(_unsigned_zero)]
"""A finite number, 0 or more."""
Factor = Annotated[float, Strict(), Field(gt=0, le=1e6, allow_inf_nan=False)]
"""A finite number above 0."""
Fraction = Annotated[float, Strict(), Field(ge=0, le=1, allow_inf_nan=False), AfterValidator(_unsigned_zero)]
"""A share of a whole, 0 to 1."""
TimeLimit = Annotated[float, Strict(), Field(gt=0, le=3_600, allow_inf_nan=False)]
"""Seconds of wall time, above 0."""
Flag = Annotated[bool, Strict()]
"""True or false."""

if TYPE_CHECKING:
    Speedups: TypeAlias = Mapping[str, float]
    Labels: TypeAlias = Mapping[str, str]
    GpusByType: TypeAlias = Mapping[str, float]
    WholeGpusByType: TypeAlias = Mapping[str, int]
    Counts: TypeAlias = Mapping[str, int]
    Milliseconds: TypeAlias = Mapping[str, float]
else:

    def _named(value: object, *, bounds: dict[str, object], order: object = _by_key) -> object:
        """Make the type of a mapping from names to values; the schema says what the names must be."""
        schema = {"type": "object", "propertyNames": _NAME, "additionalProperties": bounds}
        return Annotated[dict[Id, value], AfterValidator(order), WithJsonSchema(schema)]

    Speedups = _named(
        Annotated[float, Strict(), Field(ge=0, le=1e30, allow_inf_nan=False)],
        bounds={"type": "number", "minimum": 0, "maximum": 1e30},
        order=_numbers_by_key,
    )
    Labels = _named(LabelValue, bounds={"type": "string", "maxLength": 256, "pattern": _UNCONTROLLED + "*$"})
    GpusByType = _named(Number, bounds={"type": "number"})
    WholeGpusByType = _named(TotalGpus, bounds={"type": "integer", "minimum": 0, "maximum": 10**12})
    Counts = _named(WholeNumber, bounds={"type": "integer", "minimum": -MAX_INTEGER, "maximum": MAX_INTEGER})
    Milliseconds = _named(Number, bounds={"type": "number"})
