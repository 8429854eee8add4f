"""The log: one JSON object a line, or one line for people; every line of a request carries its id."""

from __future__ import annotations

import json
import logging
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from evenhand_api.settings import LogFormat, LogLevel

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""Id of the request that is being served, in the service's process and in those that solve rounds."""
FACTS = "facts"
"""Name under which a line's own fields travel: ``log.info("...", extra={FACTS: {...}})``."""


class JsonLines(logging.Formatter):
    """Writes a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one line; what is no JSON is written as text."""
        line: dict[str, Any] = {
            "at": _written(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if known := request_id.get():
            line["request_id"] = known
        line |= getattr(record, FACTS, {})
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class TextLines(logging.Formatter):
    """Writes a record as one line for people, its fields behind it."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one line, and a traceback below it if there is one."""
        facts = {"request_id": request_id.get()} if request_id.get() else {}
        facts |= getattr(record, FACTS, {})
        told = " ".join(f"{name}={value}" for name, value in facts.items() if value is not None)
        line = f"{_written(record)} {record.levelname:7} {record.getMessage()}{'  ' if told else ''}{told}"
        line = line.replace("\r", "\\r").replace("\n", "\\n")  # a request must not be able to forge lines
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def write_log(form: LogFormat, level: LogLevel) -> None:
    """Send the process's log to standard error, in place of whatever was set up before."""
    handler = logging.StreamHandler(sys.stderr)
    as_json = form is LogFormat.JSON or (form is LogFormat.AUTO and not sys.stderr.isatty())
    handler.setFormatter(JsonLines() if as_json else TextLines())
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.value.upper())
    logging.getLogger("alembic").setLevel(logging.WARNING)


def _written(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
