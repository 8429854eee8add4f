"""What one round leaves to the next: the prices of what groups share, by what each row says, and who envied whom.

After a small change of the state most prices still hold: plans are generated from them at once, without the LP relaxation. A
wrong memory costs time, never truth: any prices give a bound, and plans are generated until bound and mix meet.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

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
        self._prices: dict[str, float] = {}

    @property
    def knows(self) -> bool:
        """Whether there was a round before."""
        return bool(self._prices)

    def recall(self, model: LinearModel) -> FloatArray:
        """Prices of a model's rows as far as they are known, else 0, float [r]."""
        return np.array([self._prices.get(model.row_name(row), 0.0) for row in range(model.row_count)])

    def keep(self, model: LinearModel, prices: FloatArray) -> None:
        """Remember the prices of a model's rows."""
        self._prices = {model.row_name(row): float(prices[row]) for row in np.flatnonzero(prices).tolist()}
