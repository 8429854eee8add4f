"""A model with columns held loses nothing: its best point is the best of the whole model with these columns fixed."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from evenhand.program.around import fits
from evenhand.solvers import cp_sat
from evenhand.solvers.linear_model import FREE, Arrays, LinearModel
from evenhand.solvers.restricted import restricted

ENOUGH = cp_sat.Effort(5.0, 60.0)


def drawn(rng: Random) -> Arrays:
    """Rows of one to four columns, many of them of one sense, as in a round's program."""
    model, count = LinearModel(), rng.randint(3, 12)
    for _ in range(count):
        model.column(-rng.randint(0, 2), rng.randint(0, 4), rng.randint(-3, 5), lambda: "x")
    for _ in range(rng.randint(2, 10)):
        columns = rng.sample(range(count), rng.randint(1, min(4, count)))
        low, high = rng.choice([(-FREE, rng.randint(0, 9)), (-rng.randint(0, 9), FREE), (-rng.randint(0, 4), 6)])
        model.row(columns, [rng.choice([-2, -1, 1, 1, 2, 3]) for _ in columns], low, high, lambda: "row")
    return model.arrays()


@pytest.mark.parametrize("seed", range(150))
def test_the_best_point_with_columns_held_is_found_in_the_smaller_model(seed: int) -> None:
    rng = Random(seed)
    arrays = drawn(rng)
    x = np.zeros(arrays.shape[1], dtype=np.int64)
    assert fits(arrays, x), "all rows drawn hold at 0"
    free = np.array([rng.random() < 0.6 for _ in x])
    fixed = replace(arrays, lower=np.where(free, arrays.lower, x), upper=np.where(free, arrays.upper, x))
    whole = cp_sat.solve(fixed, ENOUGH, {})
    part = restricted(arrays, x, free)
    found = cp_sat.solve(part.arrays, ENOUGH, {})
    assert whole.optimal
    assert found.optimal
    assert found.x is not None
    best = part.whole(found.x)
    assert fits(fixed, best)
    assert arrays.objective(best) == found.objective == whole.objective
