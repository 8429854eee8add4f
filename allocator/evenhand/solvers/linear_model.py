"""A mixed-integer linear model as plain arrays: integer columns, rows with bounds, an integer objective."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.shapes import IntArray

FREE = 2**62
"""A row bound that does not bind."""


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


class LinearModel:
    """Collects columns and rows; names are made on demand only."""

    def __init__(self) -> None:
        self._lower: list[int] = []
        self._upper: list[int] = []
        self._cost: list[int] = []
        self._names: list[Callable[[], str]] = []
        self._starts: list[int] = [0]
        self._columns: list[int] = []
        self._values: list[int] = []
        self._row_lower: list[int] = []
        self._row_upper: list[int] = []
        self._row_names: list[Callable[[], str]] = []
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
        self._lower.append(lower)
        self._upper.append(upper)
        self._cost.append(cost)
        self._names.append(name)
        return len(self._lower) - 1

    def add_cost(self, column: int, cost: int) -> None:
        """Add to a column's objective coefficient."""
        self._cost[column] += cost

    def insist(self, column: int) -> None:
        """Raise a column's lower bound to its upper bound."""
        self._lower[column] = self._upper[column]

    def upper_of(self, column: int) -> int:
        """Upper bound of a column."""
        return self._upper[column]

    def row(
        self, columns: Sequence[int], values: Sequence[int], lower: int, upper: int, name: Callable[[], str]
    ) -> int:
        """Add lower <= sum values x columns <= upper, return its index; a column named twice counts as the sum."""
        terms: dict[int, int] = {}
        for column, value in zip(columns, values, strict=True):
            terms[column] = terms.get(column, 0) + value
        self._columns.extend(terms)
        self._values.extend(terms.values())
        self._starts.append(len(self._columns))
        self._row_lower.append(lower)
        self._row_upper.append(upper)
        self._row_names.append(name)
        return len(self._row_lower) - 1

    def column_name(self, column: int) -> str:
        """What a column stands for."""
        return self._names[column]()

    def row_name(self, row: int) -> str:
        """What a row says."""
        return self._row_names[row]()

    def arrays(self) -> Arrays:
        """The model as arrays."""
        return Arrays(
            _ints(self._lower), _ints(self._upper), _ints(self._cost), self.offset, _ints(self._starts),
            _ints(self._columns), _ints(self._values), _ints(self._row_lower), _ints(self._row_upper),
        )  # fmt: skip


def _ints(values: list[int]) -> IntArray:
    return np.array(values, dtype=np.int64)
