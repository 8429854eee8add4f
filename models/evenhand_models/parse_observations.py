"""From bytes to observations: JSON or CSV in, words or `InvalidInput` with everything that is wrong out."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from typing import Any

from evenhand_models.errors import FieldError, InvalidInput
from evenhand_models.observations import (
    DeclaredJob,
    Observation,
    ObservedWork,
    SpeedupAuditRequest,
    speedup_request_errors,
)
from evenhand_models.parse import cross_errors, field_errors, read, read_json, salvaged, validated
from evenhand_models.policy import Policy
from evenhand_models.speedup_policy import SpeedupPolicy

_WHOLE = {"gpus", "requeues"}
_DECIMAL = {"work_done", "seconds", "progress"}
_is_number = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII).fullmatch


def parse_speedup_audit(body: bytes) -> SpeedupAuditRequest:
    """Read the body of a request to audit speedups, ``{"state": ..., "observations": [...], ...}``.

    Raises
    ------
    InvalidInput
        If anything is wrong with it; pointers are relative to the body.
    """
    return read(body, SpeedupAuditRequest, _request_errors)


def parse_observations(body: bytes) -> ObservedWork:
    """Read a file of observations: a list of them, or an object as `ObservedWork` says.

    Raises
    ------
    InvalidInput
        If anything is wrong with it; pointers are relative to the file.
    """
    document = read_json(body)
    if not isinstance(document, list):
        return validated(document, ObservedWork, lambda asked: field_errors(asked, ObservedWork))
    try:
        return validated({"observations": document}, ObservedWork, lambda asked: field_errors(asked, ObservedWork))
    except InvalidInput as refused:
        prefix = "/observations"
        raise InvalidInput(FieldError(e.pointer.removeprefix(prefix), e.message) for e in refused.errors) from None


def parse_observations_csv(body: bytes) -> ObservedWork:
    """Read observations as CSV with a header: the names of an observation's fields, in any order; empty: unset.

    Raises
    ------
    InvalidInput
        If anything is wrong with it; pointers are the line, 1 the header, and the column.
    """
    table = csv_rows(body)
    errors = [error.under(f"/{line}") for line, row in table for error in field_errors(row, Observation)]
    if errors:
        raise InvalidInput(errors)
    return ObservedWork(observations=tuple(Observation.model_validate(row) for _, row in table))


def csv_rows(body: bytes) -> list[tuple[int, dict[str, Any]]]:
    """Read the lines of a CSV file that are not empty, each as its number, 1 the header, and an object.

    Raises
    ------
    InvalidInput
        If it is no CSV in UTF-8, or its header names what no observation has.
    """
    try:
        return list(_rows(body.decode("utf-8-sig")))
    except UnicodeDecodeError as reason:
        raise InvalidInput(
            [FieldError("", f"The file is not UTF-8: {reason.reason} at byte {reason.start}.")]
        ) from None
    except csv.Error as reason:
        raise InvalidInput([FieldError("", f"The file is not CSV: {reason}.")]) from None


def _rows(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each line of a table that is not empty, as its number and an object."""
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    header = next(lines, [])
    errors = [
        FieldError(f"/1/{name}", f"There is no such column; there are {', '.join(Observation.model_fields)}.")
        for name in header
        if name not in Observation.model_fields
    ]
    errors += [
        FieldError(f"/1/{name}", "The column stands twice.") for name in sorted(set(header)) if header.count(name) > 1
    ]
    if errors or not header:
        raise InvalidInput(errors or [FieldError("", "The file is empty; its first line must name the columns.")])
    for cells in lines:
        if not any(cells):
            continue
        if len(cells) > len(header):
            message = f"The line has {len(cells)} cells, the header {len(header)}."
            raise InvalidInput([FieldError(f"/{lines.line_num}", message)])
        named = zip(header, cells, strict=False)
        yield lines.line_num, {name: _cell(name, cell) for name, cell in named if cell != ""}


def _cell(name: str, cell: str) -> object:
    """Read a cell as JSON would have it; what is no number stays text, for the model to refuse."""
    if name not in _WHOLE | _DECIMAL or len(cell) > 400 or _is_number(cell) is None:
        return cell
    return json.loads(cell)


def _request_errors(document: object) -> list[FieldError]:
    """Say all that is wrong with a request, malformed fields and contradictions together."""
    errors = field_errors(document, SpeedupAuditRequest)
    if not isinstance(document, dict):
        return errors
    state = document.get("state")
    errors += [error.under("/state") for error in cross_errors(state, None)]
    return errors + _contradictions(document)


def _contradictions(document: dict[str, Any]) -> list[FieldError]:
    """Say what contradicts itself between the readable parts; nothing if the state itself cannot be read."""
    state = document.get("state")
    draft: dict[str, Any] = {
        "state": state,
        "policy": document.get("policy") if salvaged(document.get("policy"), SpeedupPolicy) else {},
        "round_policy": document.get("round_policy") if salvaged(document.get("round_policy"), Policy) else None,
    }
    listed: dict[str, list[int]] = {}
    for name, model in (("observations", Observation), ("ended_jobs", DeclaredJob)):
        raw = document.get(name)
        entries = raw if isinstance(raw, list) else []
        listed[name] = [i for i, entry in enumerate(entries) if salvaged(entry, model) is not None]
        draft[name] = [entries[i] for i in listed[name]]
    request = salvaged(draft, SpeedupAuditRequest)
    if request is None:
        return []
    return [_replaced(error, listed) for error in speedup_request_errors(request)]


def _replaced(error: FieldError, listed: dict[str, list[int]]) -> FieldError:
    """Point at the entry where it stands in the document."""
    _, name, *rest = error.pointer.split("/")
    if name not in listed:
        return error
    return FieldError("/".join(["", name, str(listed[name][int(rest[0])]), *rest[1:]]), error.message)
