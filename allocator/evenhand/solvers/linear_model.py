"""A mixed-integer linear model as plain arrays: integer columns, rows with bounds, an integer objective."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from evenhand.shapes import IntArray

FREE = 2**62
"""A row bound that does not bind."""
Numbers = int | Sequence[int] | IntArray
"""One number for all, or one for each."""


@dataclass(frozen=True, eq=False)
class Arrays:
    """The finished model: maximise cost x + offset subject to lower <= A x <= upper, bounds on x; all integers."""

    lower: IntArray
    upper: IntArray
    cost: IntArray
    offset: int
    starts: IntArray
    columns: IntArray
    values: IntArray
    row_lower: IntArray
    row_upper: IntArray

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.row_lower), len(self.lower)

    @cached_property
    def entry_row(self) -> IntArray:
        """Row of each entry, int [entries]."""
        return np.repeat(np.arange(len(self.row_lower)), np.diff(self.starts))

    def activity(self, x: npt.NDArray[np.int64]) -> IntArray:
        """A x, int [rows]."""
        if not len(self.row_lower):
            return np.zeros(0, dtype=np.int64)
        products = self.values * x[self.columns]
        sums = np.concatenate(([0], np.cumsum(products)))
        return np.asarray(sums[self.starts[1:]] - sums[self.starts[:-1]], dtype=np.int64)

    def objective(self, x: npt.NDArray[np.int64]) -> int:
        """The objective of a point, scaled."""
        return int((self.cost * x).sum()) + self.offset


class Growing:
    """An array of whole numbers that grows at its end, by one or by many."""

    def __init__(self) -> None:
        self._room: IntArray = np.empty(64, dtype=np.int64)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def extend(self, numbers: Numbers, count: int) -> None:
        """Append so many numbers."""
        end = self._count + count
        if end > len(self._room):
            room = np.empty(2 * end, dtype=np.int64)
            room[: self._count] = self.all
            self._room = room
        self._room[self._count : end] = numbers
        self._count = end

    @property
    def all(self) -> IntArray:
        """The numbers so far, to be read and changed in place until more come."""
        return self._room[: self._count]


class _Names:
    """Names of things added one by one or many at a time, made when asked for."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._makers: list[Callable[[int], str]] = []

    def add(self, first: int, maker: Callable[[int], str]) -> None:
        """Things from `first` on are named by their place from there."""
        self._firsts.append(first)
        self._makers.append(maker)

    def __getitem__(self, at: int) -> str:
        block = bisect_right(self._firsts, at) - 1
        return self._makers[block](at - self._firsts[block])


class LinearModel:
    """Collects columns and rows; names are made on demand only."""

    def __init__(self) -> None:
        self._lower, self._upper, self._cost = Growing(), Growing(), Growing()
        self._names = _Names()
        self._starts, self._columns, self._values = Growing(), Growing(), Growing()
        self._starts.extend(0, 1)
        self._row_lower, self._row_upper = Growing(), Growing()
        self._row_names = _Names()
        self.offset = 0

    @property
    def column_count(self) -> int:
        """Columns so far."""
        return len(self._lower)

    @property
    def row_count(self) -> int:
        """Rows so far."""
        return len(self._row_lower)

    def column(self, lower: int, upper: int, cost: int, name: Callable[[], str]) -> int:
        """Add an integer column, return its index."""
        return self.columns(1, lower, upper, cost, lambda _: name())

    def columns(self, count: int, lower: Numbers, upper: Numbers, cost: Numbers, name: Callable[[int], str]) -> int:
        """Add integer columns, return the index of the first; `name` is given each one's place among them."""
        first = len(self._lower)
        if count:
            self._lower.extend(lower, count)
            self._upper.extend(upper, count)
            self._cost.extend(cost, count)
            self._names.add(first, name)
        return first

    def add_cost(self, columns: IntArray, cost: Numbers) -> None:
        """Add to objective coefficients; a column named twice gets both."""
        np.add.at(self._cost.all, columns, cost)

    def insist(self, column: int) -> None:
        """Raise a column's lower bound to its upper bound."""
        self._lower.all[column] = self._upper.all[column]

    def upper_of(self, columns: IntArray) -> IntArray:
        """Upper bounds of columns."""
        return self._upper.all[columns]

    def row(
        self, columns: Sequence[int], values: Sequence[int], lower: int, upper: int, name: Callable[[], str]
    ) -> int:
        """Add lower <= sum values x columns <= upper, return its index; a column named twice counts as the sum."""
        terms: dict[int, int] = {}
        for column, value in zip(columns, values, strict=True):
            terms[column] = terms.get(column, 0) + value
        return self.rows([len(terms)], list(terms), list(terms.values()), lower, upper, lambda _: name())

    def rows(
        self, lengths: Sequence[int] | IntArray, columns: Sequence[int] | IntArray, values: Numbers, lower: Numbers,
        upper: Numbers, name: Callable[[int], str],
    ) -> int:  # fmt: skip
        """Add rows that name no column twice, return the index of the first.

        Parameters
        ----------
        lengths : columns of each row, int [R]; columns, values : of all rows, one after the other, int [sum of lengths].
        name : is given each one's place among them.
        """
        first = len(self._row_lower)
        if len(lengths):
            self._columns.extend(columns, len(columns))
            self._values.extend(values, len(columns))
            ends = self._starts.all[-1] + (np.cumsum(lengths) if len(lengths) > 1 else lengths[0])
            self._starts.extend(ends, len(lengths))
            self._row_lower.extend(lower, len(lengths))
            self._row_upper.extend(upper, len(lengths))
            self._row_names.add(first, name)
        return first

    def column_name(self, column: int) -> str:
        """What a column stands for."""
        return self._names[column]

    def row_name(self, row: int) -> str:
        """What a row says."""
        return self._row_names[row]

    def arrays(self) -> Arrays:
        """The model as arrays."""
        return Arrays(
            self._lower.all.copy(), self._upper.all.copy(), self._cost.all.copy(), self.offset, self._starts.all.copy(),
            self._columns.all.copy(), self._values.all.copy(), self._row_lower.all.copy(), self._row_upper.all.copy(),
        )  # fmt: skip
