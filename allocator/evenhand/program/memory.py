"""What one round leaves to the next: the LP's basis, kept by what columns and rows stand for, and who envied whom.

After a small change of the state most of a basis still stands, and the LP is solved again in a few pivots. A wrong memory
costs time, never truth: the LP is solved to optimality from wherever it starts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from evenhand.solvers.linear_model import LinearModel
from evenhand.solvers.lp import AT_LOWER, BASIC, Basis


class Memory:
    """Statuses of the last LP's columns and rows by name; empty at first.

    Attributes
    ----------
    envied : pairs of group ids (envious, envied) that the last program had rows for.
    """

    def __init__(self) -> None:
        self.envied: frozenset[tuple[str, str]] = frozenset()
        self._columns: dict[tuple[str, int], int] = {}
        self._rows: dict[tuple[str, int], int] = {}

    def recall(self, model: LinearModel) -> Basis | None:
        """The basis as far as it is known; new columns at their lower bounds, new rows slack. None if nothing is known."""
        if not self._columns:
            return None
        columns = [self._columns.get(name, AT_LOWER) for name in _names(model.column_name, model.column_count)]
        rows = [self._rows.get(name, BASIC) for name in _names(model.row_name, model.row_count)]
        return Basis(np.array(columns, dtype=np.int64), np.array(rows, dtype=np.int64))

    def keep(self, model: LinearModel, basis: Basis) -> None:
        """Remember a basis of the model's LP."""
        self._columns = dict(zip(_names(model.column_name, model.column_count), basis.columns.tolist(), strict=True))
        self._rows = dict(zip(_names(model.row_name, model.row_count), basis.rows.tolist(), strict=True))


def _names(name: Callable[[int], str], count: int) -> list[tuple[str, int]]:
    """Names, told apart by how many like them came before."""
    seen: Counter[str] = Counter()
    found = []
    for k in range(count):
        word = name(k)
        found.append((word, seen[word]))
        seen[word] += 1
    return found


def grown(basis: Basis, columns: int, rows: int) -> Basis:
    """The basis of a program that has got more columns and rows since."""
    return Basis(
        np.concatenate([basis.columns, np.full(columns - len(basis.columns), AT_LOWER, dtype=np.int64)]),
        np.concatenate([basis.rows, np.full(rows - len(basis.rows), BASIC, dtype=np.int64)]),
    )
