"""The door to HiGHS: linear programs by the simplex method, and mixed-integer ones with a bound.

One thread, one seed, no clock in linear programs: equal input gives equal output. Nothing here knows what
a GPU is.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import highspy
import numpy as np
import numpy.typing as npt

from evenhand.errors import SolverError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
INFINITY = float("inf")
TOLERANCE = 1e-9
"""By how much a row, a bound or a reduced cost may be off."""


class LpStatus(StrEnum):
    """How a solve ended."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    LIMIT = "limit"
    """A limit on iterations, time or exactness was hit: x is no optimum, and maybe not feasible."""


@dataclass(frozen=True, eq=False)
class LpResult:
    """Answer of a linear program with c columns and r rows.

    Attributes
    ----------
    status : how it ended; the arrays mean something only for `OPTIMAL`.
    x : values, float [c]; row : row activities, float [r].
    row_dual, reduced_cost : float [r], float [c]; sign: change of the objective per unit of the bound.
    iterations : simplex iterations of this solve.
    """

    status: LpStatus
    x: FloatArray
    row: FloatArray
    objective: float
    row_dual: FloatArray
    reduced_cost: FloatArray
    iterations: int


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows in compressed form: row k holds entries indptr[k] to indptr[k + 1].

    Attributes
    ----------
    indptr : int [r + 1]; indices : columns, int [z]; data : coefficients, float [z].
    lower, upper : bounds, float [r], infinite where there is none.
    """

    indptr: IntArray
    indices: IntArray
    data: FloatArray
    lower: FloatArray
    upper: FloatArray

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.lower)

    @staticmethod
    def none() -> Rows:
        """No rows at all."""
        empty = np.zeros(0)
        return Rows(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64), empty, empty, empty)


def stack(*parts: Rows) -> Rows:
    """Put rows under one another."""
    starts = np.cumsum([0, *(int(p.indptr[-1]) for p in parts)])
    return Rows(
        np.concatenate([np.zeros(1, dtype=np.int64), *(p.indptr[1:] + s for p, s in zip(parts, starts, strict=False))]),
        np.concatenate([p.indices for p in parts]),
        np.concatenate([p.data for p in parts]),
        np.concatenate([p.lower for p in parts]),
        np.concatenate([p.upper for p in parts]),
    )


class LinearProgram:
    """A linear program that can grow and be solved again from where it stands.

    Parameters
    ----------
    cost : float [c]; maximize : sense of the objective.
    rows : the rows.
    col_lower, col_upper : bounds of the columns, float [c].
    primal : go on with the primal simplex method (columns are added), else with the dual one (rows are).
    """

    def __init__(
        self,
        cost: FloatArray,
        rows: Rows,
        col_lower: FloatArray,
        col_upper: FloatArray,
        *,
        maximize: bool,
        primal: bool = False,
    ) -> None:
        self._highs = _quiet()
        self._highs.setOptionValue("simplex_strategy", 4 if primal else 1)
        _checked(
            self._highs.passModel(_model(cost, rows, col_lower, col_upper, maximize)),
            "the program was refused",
        )

    def add_rows(self, rows: Rows) -> None:
        """Add rows; the basis stays."""
        if rows.count:
            starts, indices = rows.indptr[:-1].astype(np.int32), rows.indices.astype(np.int32)
            found = self._highs.addRows(rows.count, rows.lower, rows.upper, len(rows.data), starts, indices, rows.data)
            _checked(found, "rows were refused")

    def add_columns(
        self,
        cost: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
        entries: tuple[IntArray, IntArray, FloatArray] | None = None,
    ) -> None:
        """Add columns; the basis stays.

        Parameters
        ----------
        cost, lower, upper : float [k].
        entries : indptr [k + 1], rows [z] and coefficients [z]; left out: they stand in no row.
        """
        count = len(cost)
        if count:
            none = np.zeros(0)
            indptr, indices, data = entries or (
                np.zeros(count + 1, dtype=np.int64),
                none.astype(np.int64),
                none,
            )
            starts, places = indptr[:-1].astype(np.int32), indices.astype(np.int32)
            _checked(
                self._highs.addCols(count, cost, lower, upper, len(data), starts, places, data),
                "columns were refused",
            )

    def set_cost(self, cost: FloatArray) -> None:
        """Change the whole objective, not its sense."""
        columns = np.arange(len(cost), dtype=np.int32)
        _checked(self._highs.changeColsCost(len(cost), columns, cost), "the objective was refused")

    def set_columns(self, columns: IntArray, lower: FloatArray, upper: FloatArray) -> None:
        """Change bounds of some columns."""
        if len(columns):
            found = self._highs.changeColsBounds(len(columns), columns.astype(np.int32), lower, upper)
            _checked(found, "bounds were refused")

    def set_rows(self, rows: IntArray, lower: FloatArray, upper: FloatArray) -> None:
        """Change bounds of some rows."""
        for row, low, high in zip(rows, lower, upper, strict=True):
            _checked(self._highs.changeRowBounds(int(row), float(low), float(high)), "bounds were refused")

    def forget(self) -> None:
        """Drop the basis: the next solve starts from nothing."""
        self._highs.clearSolver()

    def solve(self, iteration_limit: int | None = None, time_limit_s: float | None = None) -> LpResult:
        """Solve from the present basis.

        Parameters
        ----------
        time_limit_s : a safeguard only: who relies on it does not get the same answer twice.

        Raises
        ------
        SolverError
            If the solver ends with neither an answer nor a limit.
        """
        self._highs.setOptionValue("simplex_iteration_limit", _ALL if iteration_limit is None else iteration_limit)
        # HiGHS counts its time over all solves of one program.
        end = np.inf if time_limit_s is None else float(self._highs.getRunTime()) + time_limit_s
        self._highs.setOptionValue("time_limit", end)
        self._highs.run()
        if self._highs.getModelStatus() == highspy.HighsModelStatus.kUnknown:
            # Lost its way in rounding: from nothing it mostly finds it.
            self.forget()
            self._highs.run()
        status = _status(self._highs, self._highs.getModelStatus())
        solution, info = self._highs.getSolution(), self._highs.getInfo()
        return LpResult(
            status=status,
            x=np.array(solution.col_value, dtype=np.float64),
            row=np.array(solution.row_value, dtype=np.float64),
            objective=float(info.objective_function_value),
            row_dual=np.array(solution.row_dual, dtype=np.float64),
            reduced_cost=np.array(solution.col_dual, dtype=np.float64),
            iterations=int(info.simplex_iteration_count),
        )


_ALL = 2**31 - 1


def solve_lp(
    cost: FloatArray,
    rows: Rows,
    col_lower: FloatArray,
    col_upper: FloatArray,
    *,
    maximize: bool,
    iteration_limit: int | None = None,
) -> LpResult:
    """Solve one linear program; a limit comes back as status `LIMIT`.

    Raises
    ------
    SolverError
        If the solver ends with neither an answer nor a limit.
    """
    return LinearProgram(cost, rows, col_lower, col_upper, maximize=maximize).solve(iteration_limit)


def _quiet() -> highspy.Highs:
    """A silent single-threaded solver with tight tolerances.

    The class below `highspy.Highs` does all that is needed; the one above writes a banner to standard output.
    """
    highs = highspy._Highs()  # type: ignore[attr-defined]
    for name, value in (
        ("output_flag", False),
        ("threads", 1),
        ("parallel", "off"),
        ("random_seed", 0),
        ("solver", "simplex"),
        ("primal_feasibility_tolerance", TOLERANCE),
        ("dual_feasibility_tolerance", TOLERANCE),
    ):
        highs.setOptionValue(name, value)
    return highs


def _model(
    cost: FloatArray, rows: Rows, col_lower: FloatArray, col_upper: FloatArray, maximize: bool
) -> highspy.HighsLp:
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = len(cost), rows.count
    model.col_cost_, model.col_lower_, model.col_upper_ = cost, col_lower, col_upper
    model.row_lower_, model.row_upper_ = rows.lower, rows.upper
    model.sense_ = highspy.ObjSense.kMaximize if maximize else highspy.ObjSense.kMinimize
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.num_col_, model.a_matrix_.num_row_ = len(cost), rows.count
    model.a_matrix_.start_ = rows.indptr.astype(np.int32)
    model.a_matrix_.index_ = rows.indices.astype(np.int32)
    model.a_matrix_.value_ = rows.data
    return model


def _checked(status: highspy.HighsStatus, what: str) -> None:
    if status == highspy.HighsStatus.kError:
        raise SolverError(f"HiGHS: {what}.")


def _status(highs: highspy.Highs, found: highspy.HighsModelStatus) -> LpStatus:
    kinds = highspy.HighsModelStatus
    if found in (kinds.kOptimal, kinds.kModelEmpty):
        return LpStatus.OPTIMAL
    if found == kinds.kInfeasible:
        return LpStatus.INFEASIBLE
    if found in (kinds.kUnbounded, kinds.kUnboundedOrInfeasible):
        return LpStatus.UNBOUNDED
    if found in (kinds.kIterationLimit, kinds.kTimeLimit, kinds.kSolutionLimit, kinds.kInterrupt, kinds.kUnknown):
        return LpStatus.LIMIT
    raise SolverError(f"HiGHS ended with status {highs.modelStatusToString(found)}.")
