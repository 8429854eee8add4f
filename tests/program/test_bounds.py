"""A bound is what the solver has proven, never what it reports before it has begun (rule A4)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from instances import instance

from evenhand import Policy, allocate
from evenhand.errors import SolverError
from evenhand.solvers import cp_sat
from evenhand.solvers.linear_model import FREE, LinearModel


def knapsack(items: int) -> LinearModel:
    """As many items as asked for, half of which fit; the best is worth more than nothing."""
    model = LinearModel()
    columns = [model.column(0, 1, 1_000 + 7 * i % 13, lambda i=i: f"item {i}") for i in range(items)]
    model.row(columns, [3 + i % 5 for i in range(items)], -FREE, 2 * items, lambda: "room")
    model.offset = -10_000
    return model


def test_without_time_there_is_no_bound() -> None:
    found = cp_sat.solve(knapsack(400).arrays(), cp_sat.Effort(1e6, 1e-3), {})
    assert found.x is None or found.bound is None or found.bound >= found.objective
    if found.x is None:
        assert found.bound is None


def test_a_proven_optimum_meets_its_bound() -> None:
    arrays = knapsack(12).arrays()
    found = cp_sat.solve(arrays, cp_sat.Effort(10.0, 10.0), {})
    assert found.optimal
    assert found.x is not None
    assert found.bound == found.objective == arrays.objective(found.x)
    assert (arrays.activity(found.x) <= arrays.row_upper).all()
    assert (np.isin(found.x, (0, 1))).all()


def test_a_model_whose_bounds_cross_has_no_point() -> None:
    """What settling the plain columns of a neighbourhood may find, and where greedy has shown a point is a defect."""
    crossing = replace(knapsack(3).arrays(), lower=np.array([1, 0, 0]), upper=np.array([0, 1, 1]))
    assert cp_sat.solve(crossing, cp_sat.Effort(1.0, 1.0), {}, may_fail=True).x is None
    with pytest.raises(SolverError):
        cp_sat.solve(crossing, cp_sat.Effort(1.0, 1.0), {})


@pytest.mark.parametrize("limit_s", [0.05, 0.3, 0.6, 1.0, 1.5])
def test_no_limit_makes_the_bound_contradict_a_better_plan(limit_s: float) -> None:
    state = instance("small")
    best = allocate(state, Policy(time_limit_s=20)).certificate
    assert best.status == "optimal"
    hurried = allocate(state, Policy(time_limit_s=limit_s)).certificate
    assert hurried.objective <= best.objective + 1e-3
    assert hurried.bound is None or hurried.bound >= best.objective - 1e-3
    if hurried.status == "optimal":
        assert hurried.objective == pytest.approx(best.objective, abs=1e-3)
