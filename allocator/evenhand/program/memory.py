"""What one round leaves to the next: the prices of what groups share, by what each row says, and who envied whom.

After a small change of the state most prices still hold: plans are generated from them at once, without the LP relaxation. A
wrong memory costs time, never truth: any prices give a bound, and plans are generated until bound and mix meet.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt

from evenhand.shapes import BoolArray, IntArray
from evenhand.solvers.linear_model import LinearModel

FloatArray = npt.NDArray[np.float64]


class Memory:
    """Prices by the names of rows; empty at first.

    Attributes
    ----------
    envied : pairs of group ids (envious, envied) that the last program had rows for.
    """

    def __init__(self) -> None:
        self.envied: frozenset[tuple[str, str]] = frozenset()
        self._prices: dict[tuple[str, int], float] = {}

    @property
    def knows(self) -> bool:
        """Whether there was a round before."""
        return bool(self._prices)

    def recall(self, model: LinearModel, shared: BoolArray) -> FloatArray:
        """Prices of a model's shared rows as far as they are known, else 0, float [r]."""
        prices = np.zeros(len(shared))
        rows, names = _named(model, shared)
        prices[rows] = [self._prices.get(name, 0.0) for name in names]
        return prices

    def keep(self, model: LinearModel, shared: BoolArray, prices: FloatArray) -> None:
        """Remember the prices of a model's shared rows."""
        rows, names = _named(model, shared)
        self._prices = dict(zip(names, prices[rows].tolist(), strict=True))


def _named(model: LinearModel, shared: BoolArray) -> tuple[IntArray, list[tuple[str, int]]]:
    """Some rows, and their names, told apart by how many like them came before."""
    rows = np.flatnonzero(shared)
    seen: Counter[str] = Counter()
    names = []
    for row in rows.tolist():
        word = model.row_name(row)
        names.append((word, seen[word]))
        seen[word] += 1
    return rows, names
