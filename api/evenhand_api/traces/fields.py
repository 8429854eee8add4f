"""Reading single fields of rows, strictly: what is no such value is a `BadRow` that says which."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime

from evenhand_api.traces.rows import BadRow, OddKind, OddRow, RawJob
from evenhand_models import FieldError, InvalidInput

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Row = Mapping[str, str]


def number(row: Row, name: str, least: float = 0.0) -> float:
    """A finite number not below `least`."""
    text = row.get(name, "").strip()
    try:
        value = float(text)
    except ValueError:
        raise BadRow(OddKind.UNREADABLE, f"{name} is {text!r}, which is no number.") from None
    if not math.isfinite(value) or value < least or value > 1e12:
        raise BadRow(OddKind.UNREADABLE, f"{name} is {text}, which cannot be.")
    return value


def whole(row: Row, name: str, default: int | None = None) -> int:
    """A whole number, 0 or more; the default where there is none."""
    if default is not None and not row.get(name, "").strip():
        return default
    value = number(row, name)
    if not value.is_integer():
        raise BadRow(OddKind.UNREADABLE, f"{name} is {value:g}, which is no whole number.")
    return int(value)


def gang(row: Row, name: str) -> float:
    """GPUs of a gang, above 0."""
    gpus = number(row, name, least=-math.inf)
    if gpus == 0:
        raise BadRow(OddKind.NO_GPUS, f"{name} is 0.")
    if gpus < 0 or gpus > 1e6:
        raise BadRow(OddKind.UNREADABLE, f"{name} is {gpus:g}, which cannot be.")
    return gpus


def named(row: Row, name: str) -> str:
    """A name, at most 256 characters, none of them a control character."""
    text = row.get(name, "").strip()
    if not text:
        raise BadRow(OddKind.UNREADABLE, f"{name} is empty.")
    return clean(text, name)


def clean(text: str, name: str) -> str:
    """Refuse what cannot be a name."""
    if len(text) > 256 or any(ord(c) < 32 or ord(c) == 127 for c in text):
        raise BadRow(OddKind.UNREADABLE, f"{name} is no name of at most 256 printable characters.")
    return text


def stamp(text: str, name: str) -> float:
    """Seconds since 1970 of ``2020-04-01 00:00:03`` or ``2020-04-01T00:00:03``, an offset if it has one, else UTC."""
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        raise BadRow(OddKind.UNREADABLE, f"{name} is {text!r}, which is no time.") from None
    return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp()


def csv_rows(
    text: str, needs: Iterable[str], columns: tuple[str, ...] = ()
) -> tuple[list[tuple[int, Row]], list[OddRow]]:
    """Split CSV with a header into rows by their line, and those of another number of fields.

    Raises
    ------
    InvalidInput
        If a column is missing.
    """
    reader = csv.reader(text.splitlines(keepends=True))
    header = list(columns) or [name.strip().lstrip("\ufeff") for name in next(reader, [])]
    if missing := [name for name in needs if name not in header]:
        message = f"Column {missing[0]} is missing; there are: {', '.join(header) or 'none'}."
        raise InvalidInput([FieldError("", message)])
    rows: list[tuple[int, Row]] = []
    odd: list[OddRow] = []
    begins = reader.line_num + 1
    for fields in _read_on(reader, odd):
        if fields and len(fields) == len(header):
            rows.append((begins, dict(zip(header, fields, strict=True))))
        elif fields:
            message = f"It has {len(fields)} fields, the header has {len(header)}."
            odd.append(OddRow(begins, OddKind.FIELD_COUNT, message))
        begins = reader.line_num + 1
    return rows, odd


def _read_on(reader: Iterator[list[str]], odd: list[OddRow]) -> Iterator[list[str]]:
    """Yield rows, past those the CSV reader itself refuses."""
    line = 1
    while True:
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as reason:
            line = getattr(reader, "line_num", line)
            odd.append(OddRow(line, OddKind.UNREADABLE, f"It is no proper CSV: {reason}."))
            continue
        yield fields


def read_each(rows: Iterable[tuple[int, Row]], read: Callable[[int, Row], RawJob], odd: list[OddRow]) -> list[RawJob]:
    """Read row after row; those that are bad go to `odd`."""
    jobs = []
    for line, row in rows:
        try:
            jobs.append(read(line, row))
        except BadRow as bad:
            odd.append(OddRow(line, bad.kind, bad.message))
    return jobs
