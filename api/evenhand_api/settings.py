"""How the service runs: one frozen object, read from the environment once at the start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evenhand_models import FieldError, InvalidInput

PREFIX = "EVENHAND_"


class Settings(BaseModel):
    """What an operator can set, each as EVENHAND_ and the field's name in capitals.

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

    data_dir: str = Field(
        default="~/.local/state/evenhand",
        description="Directory of the ledger's file where no database_url is set; made if it is not there.",
    )
    database_url: str = Field(
        default="",
        description="Address of the ledger's database, postgresql://user@host/name or sqlite:///path; "
        "empty: ledger.sqlite3 in data_dir.",
    )

    @property
    def max_body_bytes(self) -> int:
        """Largest request body in bytes."""
        return int(self.max_body_mb * 1_000_000)

    @property
    def give_up_after_s(self) -> float:
        """Seconds after which a round is taken for lost."""
        return self.max_time_limit_s + self.grace_s

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """Read the settings from EVENHAND_* variables.

        Raises
        ------
        InvalidInput
            If a value cannot be read or a variable is unknown; the pointers name the variables.
        """
        given = {
            name.removeprefix(PREFIX).lower(): value
            for name, value in environment.items()
            if name.startswith(PREFIX) and not _of_kubernetes(name, value)
        }
        try:
            return cls.model_validate(given)
        except ValidationError as refused:
            raise InvalidInput(
                FieldError(f"/{PREFIX}{str(error['loc'][0]).upper()}", _said(str(error["msg"]), error["type"]))
                for error in refused.errors()
            ) from None


def _of_kubernetes(name: str, value: str) -> bool:
    """Tell a variable that Kubernetes sets for a Service called evenhand from a setting."""
    rest = name.removeprefix(PREFIX)
    return rest.startswith(("SERVICE_", "PORT_")) or (rest == "PORT" and "://" in value)


def _said(message: str, kind: str) -> str:
    """Say what is wrong in words that fit a variable."""
    return "no such setting." if kind == "extra_forbidden" else f"{message}."
