"""The door to OR-Tools CP-SAT, the only import of ortools.

One worker with `linearization_level=2`: the shortfall rows enter the LP, which is worth more here than a portfolio, and
the same input gives the same answer. Work is limited by the solver's deterministic time; the wall limit is a safeguard.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from ortools.sat.python import cp_model

from evenhand.errors import SolverError
from evenhand.shapes import IntArray
from evenhand.solvers.linear_model import FREE, Arrays


@dataclass(frozen=True)
class Effort:
    """Limits of one call: deterministic seconds, wall seconds, seed, workers (1 unless the answer may vary)."""

    deterministic_s: float
    wall_s: float
    seed: int = 0
    workers: int = 1

    def at_most(self, deterministic_s: float) -> Effort:
        """The same with no more work than this."""
        return replace(self, deterministic_s=min(self.deterministic_s, deterministic_s))


@dataclass(frozen=True, eq=False)
class Solution:
    """An integer point and a proven scaled bound (None where none was found), and the point's scaled objective."""

    x: IntArray | None
    objective: int
    bound: int | None
    optimal: bool
    cut_by_wall: bool
    deterministic_s: float


def solve(model: Arrays, effort: Effort, hint: Mapping[int, int], *, may_fail: bool = False) -> Solution:
    """Maximise; never worse than the hint if that is feasible.

    Parameters
    ----------
    may_fail : whether the model may be infeasible (then x is None); otherwise that is a defect.

    Raises
    ------
    SolverError
        If the solver finds the model infeasible or malformed.
    """
    if may_fail and (model.lower > model.upper).any():
        return Solution(None, 0, None, False, False, 0.0)
    cp = cp_model.CpModel()
    proto = cp.proto
    variables = [cp.new_int_var(int(low), int(high), "") for low, high in zip(model.lower, model.upper, strict=True)]
    columns, values, starts = model.columns.tolist(), model.values.tolist(), model.starts.tolist()
    for r, (low, high) in enumerate(zip(model.row_lower.tolist(), model.row_upper.tolist(), strict=True)):
        constraint = proto.constraints.add()
        constraint.linear.vars.extend(columns[starts[r] : starts[r + 1]])
        constraint.linear.coeffs.extend(values[starts[r] : starts[r + 1]])
        constraint.linear.domain.extend([-_INF if low <= -FREE else low, _INF if high >= FREE else high])
    priced = np.flatnonzero(model.cost)
    proto.objective.vars.extend(priced.tolist())
    proto.objective.coeffs.extend((-model.cost[priced]).tolist())
    for column, value in hint.items():
        cp.add_hint(variables[column], value)
    solver = cp_model.CpSolver()
    parameters = solver.parameters
    parameters.num_workers = effort.workers
    parameters.linearization_level = 2
    parameters.max_presolve_iterations = 1
    parameters.random_seed = effort.seed
    parameters.max_deterministic_time = max(1e-3, effort.deterministic_s)
    parameters.max_time_in_seconds = max(1e-3, effort.wall_s)
    if effort.workers > 1:
        parameters.subsolvers.extend(["max_lp", "reduced_costs"])
    # A solver that takes the interrupt from its host lets go of it, and Python's own handler is gone then.
    parameters.catch_sigint_signal = False
    status = solver.solve(cp)
    if status == cp_model.INFEASIBLE and may_fail:
        return Solution(None, 0, None, False, False, float(solver.response_proto.deterministic_time))
    if status not in {cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.UNKNOWN}:
        raise SolverError(f"CP-SAT says {solver.status_name(status)} of a program that greedy has solved")
    answer = solver.response_proto
    spent = float(answer.deterministic_time)
    cut = status != cp_model.OPTIMAL and spent < effort.deterministic_s * 0.999
    if status == cp_model.UNKNOWN:
        # Before its search begins the solver reports a bound of 0, which it has not proven: no point, no bound.
        return Solution(None, 0, None, False, cut, spent)
    x = np.array(list(answer.solution), dtype=np.int64)
    bound = -int(np.floor(answer.best_objective_bound + 1e-6)) + model.offset
    return Solution(x, model.objective(x), bound, status == cp_model.OPTIMAL, cut, spent)


_INF = 2**62
