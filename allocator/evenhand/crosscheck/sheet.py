"""A mixed-integer program as plain data: named columns, named rows, and what columns bring to which goal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum, inf

Terms = list[tuple[int, float]]
"""Pairs of column and coefficient; a column may stand there more than once."""
Follow = Callable[[Sequence[float]], float]
"""Works out the value of a column from those before it."""
BREACH = 1e-6
"""How far a row may be off, relative to its largest coefficient, before it counts as broken."""


@dataclass(frozen=True, slots=True)
class Column:
    """One unknown.

    Attributes
    ----------
    name : str
        What it stands for.
    lower, upper : float
        Its range.
    whole : bool
        Whether it is an integer.
    follow : callable or None
        Its best value once the columns before it are known; None: it is decided.
    """

    name: str
    lower: float
    upper: float
    whole: bool
    follow: Follow | None


@dataclass(frozen=True, slots=True)
class Row:
    """low <= sum of coefficient times column <= high; one side is infinite, or both are equal."""

    name: str
    terms: Mapping[int, float]
    low: float
    high: float


@dataclass(slots=True)
class Sheet:
    """The program: the sum of all goals is to be as large as possible.

    Attributes
    ----------
    columns, rows : list of Column, list of Row
        By number, in the order they were added.
    goals : mapping of str to mapping of int to float
        What one unit of each column adds to each goal, weight included (A4), GPUs.
    constant : mapping of str to float
        What each goal holds whatever is decided.
    """

    columns: list[Column] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    goals: dict[str, dict[int, float]] = field(default_factory=dict)
    constant: dict[str, float] = field(default_factory=dict)

    def whole(self, name: str, upper: int, lower: int = 0) -> int:
        """Add a column that is decided, and return its number."""
        return self._add(Column(name, float(lower), float(upper), True, None))

    def follows(self, name: str, upper: float, follow: Follow, *, whole: bool = False) -> int:
        """Add a column of 0 or more whose value follows from the others."""
        return self._add(Column(name, 0.0, upper, whole, follow))

    def _add(self, column: Column) -> int:
        self.columns.append(column)
        return len(self.columns) - 1

    def row(self, name: str, terms: Iterable[tuple[int, float]], low: float = -inf, high: float = inf) -> None:
        """Add a row; terms of one column are added up."""
        summed: dict[int, float] = defaultdict(float)
        for column, coefficient in terms:
            summed[column] += coefficient
        kept = {column: value for column, value in summed.items() if value != 0}
        if kept:
            self.rows.append(Row(name, kept, low, high))
        elif low > 0 or high < 0:
            raise AssertionError(f"row {name} can never hold")

    def pay(self, goal: str, column: int, worth: float) -> None:
        """Let one unit of a column add to a goal."""
        if worth:
            paid = self.goals.setdefault(goal, {})
            paid[column] = paid.get(column, 0.0) + worth

    def add(self, goal: str, worth: float) -> None:
        """Add to a goal whatever is decided."""
        self.constant[goal] = self.constant.get(goal, 0.0) + worth

    def objective(self) -> dict[int, float]:
        """Return the coefficient of every column in the sum of all goals."""
        total: dict[int, float] = defaultdict(float)
        for paid in self.goals.values():
            for column, worth in paid.items():
                total[column] += worth
        return {column: worth for column, worth in sorted(total.items()) if worth}

    def offset(self) -> float:
        """Return what the objective holds whatever is decided."""
        return fsum(self.constant.values())

    def complete(self, decided: Sequence[float]) -> list[float]:
        """Round what was decided to integers, and work out everything that follows from it."""
        values: list[float] = []
        for column, value in zip(self.columns, decided, strict=True):
            values.append(float(round(value)) if column.follow is None else column.follow(values))
        return values

    def value(self, goal: str, values: Sequence[float]) -> float:
        """Return what a goal is worth, its weight included."""
        paid = self.goals.get(goal, {})
        return fsum([self.constant.get(goal, 0.0), *(worth * values[c] for c, worth in paid.items())])

    def worth(self, values: Sequence[float]) -> dict[str, float]:
        """Return the parts of the objective by goal."""
        return {goal: self.value(goal, values) for goal in sorted({*self.goals, *self.constant})}

    def broken(self, values: Sequence[float]) -> list[str]:
        """Return the names of the rows and columns that a point breaks."""
        found = [
            column.name
            for column, value in zip(self.columns, values, strict=True)
            if not column.lower - BREACH <= value <= column.upper + BREACH
        ]
        for row in self.rows:
            total = fsum(coefficient * values[column] for column, coefficient in row.terms.items())
            slack = BREACH * max(1.0, *map(abs, row.terms.values()))
            if not row.low - slack <= total <= row.high + slack:
                found.append(row.name)
        return found


def amount(terms: Terms, values: Sequence[float]) -> float:
    """Return the sum of coefficient times value."""
    return fsum(coefficient * values[column] for column, coefficient in terms)
