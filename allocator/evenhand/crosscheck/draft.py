"""The program while it is written: what may happen to whom, where that puts GPUs, and the sheet it is written on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from evenhand.audit.jobs import JobReading
from evenhand.crosscheck.crews import Crew
from evenhand.crosscheck.facts import Facts
from evenhand.crosscheck.sheet import Sheet, Terms


class Act(StrEnum):
    """What may happen to a job; a job that waits does nothing."""

    START = "start"
    KEEP = "keep"
    GROW = "grow"
    SHRINK = "shrink"
    MIGRATE = "migrate"
    REPAIR = "repair"
    PREEMPT = "preempt"
    RESERVE = "reserve"


RUNS = frozenset({Act.START, Act.KEEP, Act.GROW, Act.SHRINK, Act.MIGRATE, Act.REPAIR})
"""After these a job holds GPUs."""
STAYS = frozenset({Act.KEEP, Act.GROW, Act.SHRINK})
"""After these it still runs where it was."""


@dataclass(frozen=True, slots=True)
class Way:
    """One thing that may happen to jobs of a crew, at one size, on one type; its column counts how many do it.

    Attributes
    ----------
    column : int
        Its column.
    crew : Crew
        Who.
    act : Act
        What.
    kind : str or None
        Type of the GPUs, None if it holds none afterwards.
    value : str or None
        Value of the crew's `same` key on the nodes it comes to; None if it has none, or comes to no node.
    gpus : int
        Size afterwards; of a reservation: some day.
    stays : int
        GPUs of it that are where they were.
    """

    column: int
    crew: Crew
    act: Act
    kind: str | None
    value: str | None
    gpus: int
    stays: int

    @property
    def job(self) -> JobReading:
        """The job, or one of those that are alike."""
        return self.crew.first


@dataclass(frozen=True, slots=True)
class Load:
    """GPUs on a node: sum of coefficient times column; `arrives` if they were not there before."""

    crew: Crew
    terms: Terms
    arrives: bool


@dataclass(frozen=True, slots=True)
class Stand:
    """The columns that say where jobs of one crew stand after one act, on one type and value.

    Attributes
    ----------
    unit : mapping of int to mapping of str to int
        By GPUs of one unit: the column that counts such units, by node.
    used : mapping of str to int
        The column that says whether a node is used, where that has to be counted (G3).
    """

    unit: Mapping[int, Mapping[str, int]]
    used: Mapping[str, int] = field(default_factory=dict)


Spot = tuple[str, Act, str | None, str | None]
"""First job of a crew, act, type, value: what a stand belongs to."""


@dataclass(slots=True)
class Draft:
    """Everything written so far.

    Attributes
    ----------
    facts : Facts
        The round.
    crews : list of Crew
        Who is decided about.
    sheet : Sheet
        Columns and rows.
    ways : list of Way
        What may happen.
    loads : mapping of str to list of Load
        What that puts on each node.
    stands : mapping of Spot to Stand
        Where that may be.
    """

    facts: Facts
    crews: list[Crew]
    sheet: Sheet = field(default_factory=Sheet)
    ways: list[Way] = field(default_factory=list)
    loads: dict[str, list[Load]] = field(default_factory=dict)
    stands: dict[Spot, Stand] = field(default_factory=dict)
    _by_crew: dict[str, list[Way]] = field(default_factory=dict)

    def way(
        self,
        crew: Crew,
        act: Act,
        kind: str | None = None,
        gpus: int = 0,
        value: str | None = None,
        stays: int = 0,
        fixed: bool = False,
    ) -> Way:
        """Add a way and its column."""
        label = f"{act}_{crew.name}"
        if kind is not None:
            label += f"_{gpus}_on_{kind}" + (f"_{value}" if value is not None else "")
        column = self.sheet.whole(label, crew.count, crew.count if fixed else 0)
        way = Way(column, crew, act, kind, value, gpus, stays)
        self.ways.append(way)
        self._by_crew.setdefault(crew.first.job.id, []).append(way)
        return way

    def of(self, crew: Crew) -> list[Way]:
        """Return the ways of a crew."""
        return self._by_crew.get(crew.first.job.id, [])

    def load(self, node: str, crew: Crew, terms: Iterable[tuple[int, float]], *, arrives: bool) -> None:
        """Put GPUs on a node."""
        self.loads.setdefault(node, []).append(Load(crew, list(terms), arrives))

    def budgeted(self, group: str) -> list[Way]:
        """Return the ways of the budgeted jobs of a group's own."""
        return [way for way in self.ways if way.job.budgeted and way.job.group == group]
