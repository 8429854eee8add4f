"""A model with some columns fixed, without them: what is left to decide, and the rows that can still bind."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.shapes import IntArray
from evenhand.solvers.linear_model import FREE, Arrays

BoolArray = npt.NDArray[np.bool_]
MOST_PASSES = 4
"""Passes of settling columns; each makes rows shorter for the next."""


@dataclass(frozen=True, eq=False)
class Restricted:
    """The smaller model; `free`: its columns' indices in the whole one, int [free]; `x`: a point, right where not free."""

    arrays: Arrays
    free: IntArray
    x: IntArray

    def whole(self, part: IntArray) -> IntArray:
        """A point of the smaller model as one of the whole."""
        full = self.x.copy()
        full[self.free] = part
        return full


def restricted(
    arrays: Arrays, x: IntArray, free: BoolArray, bounds: tuple[IntArray, IntArray] | None = None
) -> Restricted:
    """Hold all columns but the free ones at x; free ones whose best value is then plain are held at that, too.

    Parameters
    ----------
    x : a point, int [columns]; free : bool [columns]; bounds : of all columns in place of the model's own, int [columns] each.
    """
    lower, upper = (arrays.lower, arrays.upper) if bounds is None else bounds
    part = _held(arrays, x, free, lower, upper)
    for _ in range(MOST_PASSES):
        low, high, plain, value = _settled(part.arrays)
        # What is left is cut out of what was left before: rows that could not bind cannot bind now.
        inner = _held(part.arrays, value, ~plain, low, high)
        part = Restricted(inner.arrays, part.free[inner.free], part.whole(value))
        if not plain.any():
            break
    return part


def _held(arrays: Arrays, x: IntArray, free: BoolArray, lower: IntArray, upper: IntArray) -> Restricted:
    """The model without what is held, and without the rows that cannot bind any more."""
    columns = np.flatnonzero(free)
    place = np.full(len(free), -1, dtype=np.int64)
    place[columns] = np.arange(len(columns))
    row, rows = arrays.entry_row, arrays.shape[0]
    entry = np.flatnonzero(free[arrays.columns])
    entry_row, entry_column, value = row[entry], place[arrays.columns[entry]], arrays.values[entry]
    here = np.where(free, 0, x)
    held = arrays.activity(here)
    low, high = lower[columns], upper[columns]
    up = value > 0
    least = np.bincount(entry_row, np.where(up, value * low[entry_column], value * high[entry_column]), rows)
    most = np.bincount(entry_row, np.where(up, value * high[entry_column], value * low[entry_column]), rows)
    row_low = np.where(arrays.row_lower <= -FREE, -FREE, arrays.row_lower - held)
    row_high = np.where(arrays.row_upper >= FREE, FREE, arrays.row_upper - held)
    binds = (least < row_low) | (most > row_high)
    keep = np.flatnonzero(binds)
    new_row = np.full(rows, -1, dtype=np.int64)
    new_row[keep] = np.arange(len(keep))
    stays = binds[entry_row]
    of_row = new_row[entry_row[stays]]
    return Restricted(
        Arrays(
            low, high, arrays.cost[columns], arrays.offset + int((arrays.cost * here).sum()),
            np.searchsorted(of_row, np.arange(len(keep) + 1)), entry_column[stays], value[stays], row_low[keep], row_high[keep],
        ),
        columns,
        x,
    )  # fmt: skip


def _settled(a: Arrays) -> tuple[IntArray, IntArray, BoolArray, IntArray]:
    """Bounds that rows of one column imply, and the columns that lose nothing by standing at a bound: which, and where.

    Returns
    -------
    lower, upper, int [c]; plain, bool [c]; value, int [c].
    """
    length = np.diff(a.starts)
    row = np.repeat(np.arange(len(length)), length)
    low, high = a.lower.copy(), a.upper.copy()
    single = length[row] == 1
    column, value = a.columns[single], a.values[single]
    floor_, ceiling = a.row_lower[row[single]], a.row_upper[row[single]]
    up = value > 0
    some = np.where(up, floor_ > -FREE, ceiling < FREE)
    np.maximum.at(low, column[some], -((-np.where(up, floor_, ceiling)[some]) // value[some]))
    some = np.where(up, ceiling < FREE, floor_ > -FREE)
    np.minimum.at(high, column[some], np.where(up, ceiling, floor_)[some] // value[some])
    below, above = a.row_lower[row] > -FREE, a.row_upper[row] < FREE
    rising, falling = np.zeros(len(low), dtype=bool), np.zeros(len(low), dtype=bool)
    up = a.values > 0
    rising[a.columns[~single & np.where(up, above, below)]] = True
    falling[a.columns[~single & np.where(up, below, above)]] = True
    to_high, to_low = ~rising & (a.cost >= 0), ~falling & (a.cost <= 0)
    plain = (to_high | to_low | (low == high)) & (low <= high)
    return low, high, plain, np.where(to_high & (low < high), high, low)
