"""A model with some columns fixed, without them: what is left to decide, and the rows that can still bind."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.shapes import IntArray
from evenhand.solvers.linear_model import FREE, Arrays


@dataclass(frozen=True, eq=False)
class Restricted:
    """The smaller model; `free`: its columns' indices in the whole one, int [free]."""

    arrays: Arrays
    free: IntArray
    x: IntArray

    def whole(self, part: IntArray) -> IntArray:
        """A point of the smaller model as one of the whole."""
        full = self.x.copy()
        full[self.free] = part
        return full


def restricted(arrays: Arrays, x: IntArray, free: npt.NDArray[np.bool_]) -> Restricted:
    """Hold all columns but the free ones at x.

    Parameters
    ----------
    x : a point, int [columns]; free : bool [columns].
    """
    columns = np.flatnonzero(free)
    place = np.full(len(free), -1, dtype=np.int64)
    place[columns] = np.arange(len(columns))
    row = np.repeat(np.arange(arrays.shape[0]), np.diff(arrays.starts))
    here = free[arrays.columns]
    held = np.bincount(row[~here], weights=arrays.values[~here] * x[arrays.columns[~here]], minlength=arrays.shape[0])
    held = np.rint(held).astype(np.int64)
    entry_row, entry_column, value = row[here], place[arrays.columns[here]], arrays.values[here]
    low, high = arrays.lower[columns], arrays.upper[columns]
    least = np.bincount(entry_row, weights=np.where(value > 0, value * low[entry_column], value * high[entry_column]),
                        minlength=arrays.shape[0])  # fmt: skip
    most = np.bincount(entry_row, weights=np.where(value > 0, value * high[entry_column], value * low[entry_column]),
                       minlength=arrays.shape[0])  # fmt: skip
    row_low = np.where(arrays.row_lower <= -FREE, -FREE, arrays.row_lower - held)
    row_high = np.where(arrays.row_upper >= FREE, FREE, arrays.row_upper - held)
    binds = (least < row_low) | (most > row_high)
    keep = np.flatnonzero(binds)
    new_row = np.full(arrays.shape[0], -1, dtype=np.int64)
    new_row[keep] = np.arange(len(keep))
    stays = binds[entry_row]
    rows = new_row[entry_row[stays]]
    cost = arrays.cost.copy()
    cost[columns] = 0
    return Restricted(
        Arrays(
            low, high, arrays.cost[columns], arrays.offset + int((cost * x).sum()),
            np.searchsorted(rows, np.arange(len(keep) + 1)), entry_column[stays], value[stays], row_low[keep], row_high[keep],
        ),
        columns,
        x,
    )  # fmt: skip
