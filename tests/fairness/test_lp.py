"""The door to the linear programs."""

from __future__ import annotations

import highspy
import numpy as np
import pytest

from evenhand.solvers.lp import INFINITY, LinearProgram, LpStatus, Rows, solve_lp

ONE_ROW = Rows(np.array([0, 2]), np.array([0, 1]), np.array([1.0, 1.0]), np.array([-INFINITY]), np.array([1.5]))


def test_an_optimum_with_its_duals():
    found = solve_lp(np.array([1.0, 2.0]), ONE_ROW, np.zeros(2), np.ones(2), maximize=True)
    assert found.status is LpStatus.OPTIMAL
    assert found.x == pytest.approx([0.5, 1.0])
    assert found.row_dual == pytest.approx([1.0])
    assert found.reduced_cost == pytest.approx([0.0, 1.0])


def test_ends_that_are_no_optimum_have_a_name():
    cost = np.array([1.0, 2.0])
    assert solve_lp(cost, ONE_ROW, np.ones(2), np.ones(2), maximize=True).status is LpStatus.INFEASIBLE
    free = np.full(2, INFINITY)
    assert solve_lp(cost, Rows.none(), np.zeros(2), free, maximize=True).status is LpStatus.UNBOUNDED
    rows = Rows(np.arange(31), np.arange(30), np.ones(30), np.ones(30), np.full(30, INFINITY))
    found = solve_lp(np.ones(30), rows, np.zeros(30), np.full(30, 9.0), maximize=False, iteration_limit=1)
    assert found.status in {LpStatus.LIMIT, LpStatus.OPTIMAL}


def test_rows_and_columns_may_come_later():
    program = LinearProgram(np.array([1.0, 2.0]), ONE_ROW, np.zeros(2), np.ones(2), maximize=True)
    assert program.solve().objective == pytest.approx(2.5)
    row = Rows(np.array([0, 1]), np.array([1]), np.array([1.0]), np.array([-INFINITY]), np.array([0.25]))
    program.add_rows(row)
    assert program.solve().objective == pytest.approx(1.5)
    entries = (np.array([0, 1]), np.array([0]), np.array([-1.0]))
    program.add_columns(np.array([-0.5]), np.zeros(1), np.ones(1), entries)
    assert program.solve().objective == pytest.approx(1.5)
    program.set_cost(np.array([3.0, 2.0, -0.5]))
    program.set_rows(np.array([0]), np.array([-INFINITY]), np.array([0.5]))
    program.set_columns(np.array([0]), np.zeros(1), np.full(1, 9.0))
    assert program.solve().objective == pytest.approx(4.0)


class Lost:
    """A solver that says so many times that it does not know, whatever it found."""

    def __init__(self, highs, times):
        self._highs, self._times = highs, times

    def __getattr__(self, name):
        return getattr(self._highs, name)

    def getModelStatus(self):
        self._times -= 1
        return highspy.HighsModelStatus.kUnknown if self._times >= 0 else self._highs.getModelStatus()


def test_a_solver_that_lost_its_way_begins_again_and_else_has_no_optimum():
    for times, status in ((1, LpStatus.OPTIMAL), (9, LpStatus.LIMIT)):
        program = LinearProgram(np.array([1.0, 2.0]), ONE_ROW, np.zeros(2), np.ones(2), maximize=True)
        program._highs = Lost(program._highs, times)
        assert program.solve().status is status


def test_nothing_is_written(capfd):
    solve_lp(np.array([1.0, 2.0]), ONE_ROW, np.zeros(2), np.ones(2), maximize=True)
    assert capfd.readouterr() == ("", "")
