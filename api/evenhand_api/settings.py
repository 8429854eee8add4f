"""How the service runs: one frozen object, read once at the start from a file and the environment."""

from __future__ import annotations

import ipaddress
import tomllib
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evenhand_models import FieldError, InvalidInput

PREFIX = "EVENHAND_"
FILE_VARIABLE = f"{PREFIX}SETTINGS_FILE"
"""Names a TOML file with settings; the environment goes before it."""
NOT_SETTINGS = frozenset({FILE_VARIABLE, f"{PREFIX}TRACEBACK"})
"""Variables of the command line that are no settings."""
PLAIN_PARAMETERS = frozenset({"host", "port", "dbname", "sslmode", "application_name", "connect_timeout"})
"""Parameters of a database's address that are shown; all others are masked."""


class Tokens(StrEnum):
    """When callers need a token."""

    AUTO = "auto"
    """Unless the service listens on this machine only."""
    REQUIRED = "required"
    """Always: behind a proxy on the same machine."""


class LogFormat(StrEnum):
    """How the log is written."""

    AUTO = "auto"
    """Text to a terminal, else JSON."""
    JSON = "json"
    """One JSON object a line."""
    TEXT = "text"
    """One line for people."""


class LogLevel(StrEnum):
    """From which level on lines are written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Settings(BaseModel):
    """What an operator can set: in a file by the field's name, in the environment as EVENHAND_ and the name in capitals.

    Raises
    ------
    pydantic.ValidationError
        If a value is outside its bounds or a field is unknown.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: str = Field(default="127.0.0.1", description="Address to listen on; the default is this machine only.")
    port: Annotated[int, Field(ge=0, le=65_535)] = Field(default=8080, description="TCP port; 0: any free one.")
    max_body_mb: Annotated[float, Field(gt=0, le=4_096)] = Field(
        default=64.0, description="Largest request body in MB (10^6 bytes), after decompression."
    )
    max_concurrent: Annotated[int, Field(ge=1, le=256)] = Field(
        default=2, description="Rounds solved at the same time, each in a process of its own."
    )
    max_waiting: Annotated[int, Field(ge=0, le=10_000)] = Field(
        default=8, description="Requests that may wait for a free process; more are answered 503."
    )
    max_time_limit_s: Annotated[float, Field(gt=0, le=3_600)] = Field(
        default=60.0, description="Largest time_limit_s in seconds a request's policy may ask for."
    )
    grace_s: Annotated[float, Field(gt=0, le=3_600)] = Field(
        default=60.0,
        description="Seconds a round may take beyond max_time_limit_s, reading and writing included, before "
        "its process is ended and the request answered 500.",
    )
    max_replays: Annotated[int, Field(ge=1, le=64)] = Field(
        default=1, description="Replays that run at the same time, each in a process of its own."
    )
    max_waiting_replays: Annotated[int, Field(ge=0, le=1_000)] = Field(
        default=8, description="Replays that may wait for their turn; more are answered 503."
    )
    keep_replays: Annotated[int, Field(ge=1, le=10_000)] = Field(
        default=32, description="Finished replays whose results are remembered."
    )

    data_dir: str = Field(
        default="~/.local/state/evenhand",
        description="Directory of the ledger's file where no database_url is set; made if it is not there.",
    )
    database_url: str = Field(
        default="",
        description="Address of the ledger's database, postgresql://user@host/name or sqlite:///path; "
        "empty: ledger.sqlite3 in data_dir.",
    )

    tokens: Tokens = Field(
        default=Tokens.AUTO,
        description="auto: callers need a token unless the service listens on this machine only; required: always.",
    )
    max_jobs: Annotated[int, Field(ge=1)] = Field(default=100_000, description="Most jobs in one round.")
    max_nodes: Annotated[int, Field(ge=1)] = Field(default=20_000, description="Most nodes in one round.")
    body_timeout_s: Annotated[float, Field(gt=0, le=3_600)] = Field(
        default=60.0, description="Seconds within which the whole body of a request must have come (408 after)."
    )
    header_timeout_s: Annotated[float, Field(gt=0, le=3_600)] = Field(
        default=10.0,
        description="Seconds a connection may take for a request's head before it is closed; also how long an idle "
        "one is kept.",
    )
    max_connections: Annotated[int, Field(ge=1)] = Field(
        default=512, description="Open connections above which requests are answered 503."
    )
    worker_memory_mb: Annotated[float, Field(ge=0)] = Field(
        default=4_096.0,
        description="Memory in MB (10^6 bytes) one process that solves rounds may have; one that needs more fails its "
        "own round, one that holds more than half of it afterwards is replaced; 0: no limit.",
    )
    stop_within_s: Annotated[float, Field(gt=0, le=3_600)] = Field(
        default=60.0,
        description="Seconds that rounds in hand may go on once the service is told to stop; after that they are "
        "answered 503 with nothing written.",
    )
    metrics_owed_hours: Annotated[int, Field(ge=1, le=8_784)] = Field(
        default=168, description="Over how many hours /metrics compares owed with received."
    )
    log_format: LogFormat = Field(
        default=LogFormat.AUTO, description="json, text, or auto: text to a terminal and JSON else."
    )
    log_level: LogLevel = Field(default=LogLevel.INFO, description="debug, info, warning or error.")

    @property
    def loopback(self) -> bool:
        """Whether the service listens on this machine only."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def tokens_required(self) -> bool:
        """Whether every caller needs a token."""
        return self.tokens is Tokens.REQUIRED or not self.loopback

    @property
    def max_body_bytes(self) -> int:
        """Largest request body in bytes."""
        return int(self.max_body_mb * 1_000_000)

    @property
    def give_up_after_s(self) -> float:
        """Seconds after which a round is taken for lost."""
        return self.max_time_limit_s + self.grace_s

    def shown(self) -> dict[str, Any]:
        """Return every setting as it may be shown: passwords in the database's address masked."""
        values = self.model_dump(mode="json")
        values["database_url"] = _masked(self.database_url)
        return values

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], file: str | None = None) -> Self:
        """Read the settings from a TOML file, if one is named, and EVENHAND_* variables, which go before it.

        Parameters
        ----------
        file : the file's path; None: what EVENHAND_SETTINGS_FILE names.

        Raises
        ------
        InvalidInput
            If a value cannot be read or a setting is unknown; the pointers name variables, or the file's keys.
        """
        path = file if file is not None else environment.get(FILE_VARIABLE, "")
        filed = _read_file(path) if path else {}
        given = {
            name.removeprefix(PREFIX).lower(): value
            for name, value in environment.items()
            if name.startswith(PREFIX) and name not in NOT_SETTINGS and not _of_kubernetes(name, value)
        }
        try:
            return cls.model_validate(filed | given)
        except ValidationError as refused:
            raise InvalidInput(
                FieldError(_pointer(str(error["loc"][0]), given, path), _said(str(error["msg"]), error["type"]))
                for error in refused.errors()
            ) from None


def _masked(url: str) -> str:
    """Return an address without its password and without what stands behind its question mark but for plain places."""
    parts = urlsplit(url)
    user, at, place = parts.netloc.rpartition("@")
    name, colon, _ = user.partition(":")
    shown = f"{name}{':***' if colon else ''}{at}{place}"
    query = "&".join(
        pair if pair.partition("=")[0] in PLAIN_PARAMETERS else f"{pair.partition('=')[0]}=***"
        for pair in parts.query.split("&")
        if pair
    )
    start = f"{parts.scheme}://{shown}" if parts.scheme else shown
    return f"{start}{parts.path}{'?' if query else ''}{query}"


def _read_file(path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as reason:
        said = reason.strerror if isinstance(reason, OSError) and reason.strerror else reason
        raise InvalidInput([FieldError("", f"the settings file {path} cannot be read: {said}.")]) from None


def _pointer(name: str, given: Mapping[str, str], path: str) -> str:
    """Say where a faulty setting stands: a variable, or a key of the file."""
    return f"/{PREFIX}{name.upper()}" if name in given or not path else f"{path}#/{name}"


def _of_kubernetes(name: str, value: str) -> bool:
    """Tell a variable that Kubernetes sets for a Service called evenhand from a setting."""
    rest = name.removeprefix(PREFIX)
    return rest.startswith(("SERVICE_", "PORT_")) or (rest == "PORT" and "://" in value)


def _said(message: str, kind: str) -> str:
    """Say what is wrong in words that fit a variable."""
    return "no such setting." if kind == "extra_forbidden" else f"{message}."
