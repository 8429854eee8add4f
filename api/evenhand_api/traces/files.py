"""Traces from files: unpacked, decoded, with what a ``NAME.json`` beside a ``NAME.csv`` knows of the period."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from evenhand_api.commands.terminal import read_input
from evenhand_api.traces.assemble import assemble
from evenhand_api.traces.formats import Format, format_of, parse
from evenhand_api.traces.rows import RawTrace, Reading, ReadOptions
from evenhand_models import FieldError, InvalidInput


def read_trace(path: str, options: ReadOptions | None = None, layout: Format | None = None) -> Reading:
    """Read a trace from a file, or from standard input for ``-``; gzip is unpacked.

    Raises
    ------
    InvalidInput
        If it cannot be read or holds no job; pointers begin with the file's name.
    """
    options = options or ReadOptions()
    text = read_input(path).decode("utf-8", "replace")
    name = "trace" if path == "-" else _plain_name(path)
    try:
        return assemble(name, _described(path, parse(text, layout or format_of(text), options)), options)
    except InvalidInput as invalid:
        raise invalid.under(f"{path}#") from None


def _plain_name(path: str) -> str:
    name = Path(path).name
    for ending in (".gz", ".csv", ".json", ".txt", ".swf"):
        name = name.removesuffix(ending)
    return name or "trace"


def _described(path: str, raw: RawTrace) -> RawTrace:
    """Add what the description beside the file says: when the period was, and whose data it is."""
    beside = Path(path).parent / f"{_plain_name(path)}.json"
    if path == "-" or raw.begins is None or beside == Path(path) or not beside.is_file():
        return raw
    text = read_input(str(beside))
    if not text.strip():
        return raw  # a shell opens the file that a command is to write before it runs
    try:
        said = json.loads(text)
    except ValueError as reason:
        raise InvalidInput([FieldError("", f"{beside}, which should describe it, is no JSON: {reason}.")]) from None
    period = said.get("period") if isinstance(said, dict) else None
    if not isinstance(period, dict):
        return raw  # something else of the same name
    credit = ". ".join(str(said[key]) for key in ("attribution", "licence") if said.get(key))
    began, ended = _instant(period.get("t0")), _instant(period.get("end"))
    if began is not None:
        raw = replace(raw, clock=began, ends=None if ended is None else (ended - began).total_seconds())
    return replace(raw, credit=credit)


def _instant(text: object) -> datetime | None:
    try:
        at = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
