"""What every reader deals in: rows as the source has them, rows that are odd, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from evenhand_models.traces import Trace, TraceEnd


class OddKind(StrEnum):
    """In which way a row is odd."""

    UNREADABLE = "unreadable"
    """A field is missing or no such value: left out."""
    FIELD_COUNT = "field_count"
    """It has more or fewer fields than the header: left out."""
    NO_GPUS = "no_gpus"
    """It asks for no GPU: left out."""
    NEVER_STARTED = "never_started"
    """How long it would have run is not known: left out."""
    DUPLICATE_ID = "duplicate_id"
    """Another row has the same id: left out."""
    BEFORE_START = "before_start"
    """It was submitted before second 0: left out."""
    AFTER_END = "after_end"
    """It was submitted after the period: left out."""
    FRACTION = "fraction"
    """It shares a GPU: rounded up."""
    ZERO_DURATION = "zero_duration"
    """It ends as soon as it starts: kept."""
    STILL_RUNNING = "still_running"
    """It had not ended when the trace was written: kept, with the run time so far."""
    LONGER_THAN_PERIOD = "longer_than_period"
    """It runs longer than the whole period: kept."""
    UNKNOWN_GROUP = "unknown_group"
    """Its group is not in the cluster's tree: kept, it can never run."""
    UNKNOWN_TYPE = "unknown_type"
    """It accepts none of the cluster's GPU types: kept, it can never run."""

    @property
    def left_out(self) -> bool:
        """Whether such a row is no job of the trace."""
        return self not in _KEPT


_KEPT = {
    OddKind.FRACTION,
    OddKind.ZERO_DURATION,
    OddKind.STILL_RUNNING,
    OddKind.LONGER_THAN_PERIOD,
    OddKind.UNKNOWN_GROUP,
    OddKind.UNKNOWN_TYPE,
}


@dataclass(frozen=True, slots=True, order=True)
class OddRow:
    """One row that is odd, where it stands and why.

    Attributes
    ----------
    line : int
        Number of its line, from 1; in JSON of its entry, from 1.
    kind : OddKind
        In which way.
    message : str
        One sentence with the values it is about.
    """

    line: int
    kind: OddKind
    message: str


class BadRow(Exception):
    """A row that is left out, and why."""

    def __init__(self, kind: OddKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


@dataclass(slots=True)
class RawJob:
    """A job as its row has it: times in seconds on the source's own clock.

    Attributes
    ----------
    line : int
        Where it stands.
    groups : mapping of str to str
        What may serve as its group, by name, the usual one first; empty: the source does not say.
    submit, start : float
        Seconds; `start` is the last start, None if unknown.
    duration_s : float
        Seconds it ran.
    gpus : float
        Size of the gang, above 0; a fraction shares a GPU.
    """

    line: int
    id: str
    groups: Mapping[str, str]
    submit: float
    duration_s: float
    gpus: float
    start: float | None = None
    user: str | None = None
    gpu_types: tuple[str, ...] = ()
    state: TraceEnd = TraceEnd.UNKNOWN
    more: dict[str, object] = field(default_factory=dict)
    """Further fields of a `TraceJob`."""


@dataclass(frozen=True, slots=True)
class RawTrace:
    """All rows of a source.

    Attributes
    ----------
    clock : datetime
        The instant of second 0 of the rows' clock.
    begins : float or None
        Second of the rows' clock at which the trace begins; None: the first submission.
    """

    jobs: list[RawJob]
    odd: list[OddRow]
    clock: datetime
    begins: float | None = None
    ends: float | None = None
    credit: str = ""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What a source does not say, and which part of it is wanted.

    Attributes
    ----------
    group : str
        Group of jobs whose source names none.
    group_by : str or None
        Which of the source's fields names the group (account, partition, queue ...); None: the usual one.
    since, until : datetime or None
        Begin and end of the period; what ran before `since` seeds the usage window.
    min_runtime_s, resumable : int, bool
        The contract of jobs whose source names none.
    columns : tuple of str
        Names of the columns of a file without header.
    groups, gpu_types : frozenset of str or None
        Those of the cluster; rows that name others are reported. None: unknown.
    charge_rates : mapping of str to float
        Charge rate by type, for usage before the period; 1 if not named.
    """

    group: str = "everyone"
    group_by: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    min_runtime_s: int = 3_600
    resumable: bool = True
    columns: tuple[str, ...] = ()
    groups: frozenset[str] | None = None
    gpu_types: frozenset[str] | None = None
    charge_rates: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reading:
    """A trace, and what was odd about its source.

    Attributes
    ----------
    odd : tuple of OddRow
        By line.
    rows : int
        Rows that were looked at, steps of jobs and the like not counted.
    in_order : bool
        Whether the rows came in the order of submission; the trace is the same either way.
    """

    trace: Trace
    odd: tuple[OddRow, ...]
    rows: int
    in_order: bool
