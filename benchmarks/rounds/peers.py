"""Other ways to the same answer, on the same program or the same jobs, in CPU seconds of this process."""

from __future__ import annotations

from dataclasses import dataclass
from resource import RUSAGE_CHILDREN, getrusage
from time import process_time

import highspy
import numpy as np
import pulp

from evenhand.entitlement import entitle
from evenhand.fairness.target import fair_target
from evenhand.goals import goals, objective
from evenhand.greedy import greedy
from evenhand.owed_gangs import owed_gangs
from evenhand.program.formulate import formulate
from evenhand.program.lift import lower
from evenhand.program.prices import SCALE
from evenhand.snapshot import take_snapshot
from evenhand.solvers import cp_sat
from evenhand.solvers.linear_model import FREE
from evenhand_models import AllocateRequest


@dataclass(frozen=True)
class Peer:
    """What a peer reached: worth of its plan, its own bound (throughput units; None: none), CPU seconds of its search."""

    name: str
    value: float | None
    bound: float | None
    cpu_s: float


class SameProgram:
    """The round's program (without envy rows), for solvers that take it whole."""

    def __init__(self, request: AllocateRequest) -> None:
        s = take_snapshot(request.state, request.effective_policy)
        entitled = entitle(s)
        owed = owed_gangs(s, entitled)
        target = fair_target(s, entitled)
        self.program, self.counted = formulate(s, entitled, target, owed)
        self.arrays = self.program.model.arrays()
        start = process_time()
        self.first = greedy(s, entitled, self.program.index)
        self.greedy = Peer(
            "greedy", objective(goals(s, entitled, target, owed, self.first)), None, process_time() - start
        )
        self.throughput = target.throughput

    def cp_sat(self, limit_s: float) -> Peer:
        """CP-SAT on the whole program, one worker, the greedy plan as hint."""
        start = process_time()
        hint = lower(self.program, self.counted, self.first)
        found = cp_sat.solve(self.arrays, cp_sat.Effort(1e6, limit_s), hint)
        value = None if found.x is None else found.objective / SCALE
        return Peer(
            "CP-SAT, whole", value, None if found.bound is None else found.bound / SCALE, process_time() - start
        )

    def cbc(self, limit_s: float) -> Peer:
        """CBC through PuLP on the whole program, one thread, in a process of its own."""
        a, before = self.arrays, getrusage(RUSAGE_CHILDREN)
        program = pulp.LpProblem("round", pulp.LpMaximize)
        x = [
            pulp.LpVariable(f"x{i}", int(low), int(high), pulp.LpInteger)
            for i, (low, high) in enumerate(zip(a.lower, a.upper, strict=True))
        ]
        worth = [(x[i], a.cost[i] / SCALE) for i in np.flatnonzero(a.cost)]
        program.setObjective(pulp.LpAffineExpression(worth, constant=a.offset / SCALE))
        for row, (low, high) in enumerate(zip(a.row_lower, a.row_upper, strict=True)):
            at = slice(a.starts[row], a.starts[row + 1])
            total = pulp.LpAffineExpression([(x[i], int(v)) for i, v in zip(a.columns[at], a.values[at], strict=True)])
            if low == high:
                program += total == int(low)
                continue
            if low > -FREE:
                program += total >= int(low)
            if high < FREE:
                program += total <= int(high)
        program.solve(pulp.PULP_CBC_CMD(msg=False, timeLimit=limit_s, threads=1))
        after = getrusage(RUSAGE_CHILDREN)
        took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        found = program.sol_status in (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible)
        return Peer("CBC, whole", float(pulp.value(program.objective)) if found else None, None, took)

    def highs(self, limit_s: float) -> Peer:
        """HiGHS's branch and bound on the whole program, one thread."""
        a, start = self.arrays, process_time()
        highs = highspy._Highs()
        for name, value in (("output_flag", False), ("threads", 1), ("time_limit", limit_s), ("mip_rel_gap", 1e-9)):
            highs.setOptionValue(name, value)
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = a.shape[1], a.shape[0]
        model.col_cost_ = a.cost / SCALE
        model.col_lower_, model.col_upper_ = a.lower.astype(float), a.upper.astype(float)
        model.row_lower_ = np.where(a.row_lower <= -FREE, -np.inf, a.row_lower.astype(float))
        model.row_upper_ = np.where(a.row_upper >= FREE, np.inf, a.row_upper.astype(float))
        model.integrality_ = [highspy.HighsVarType.kInteger] * a.shape[1]
        model.sense_, model.offset_ = highspy.ObjSense.kMaximize, a.offset / SCALE
        matrix = model.a_matrix_
        matrix.format_ = highspy.MatrixFormat.kRowwise
        matrix.num_col_, matrix.num_row_ = a.shape[1], a.shape[0]
        matrix.start_, matrix.index_ = a.starts.astype(np.int32), a.columns.astype(np.int32)
        matrix.value_ = a.values.astype(float)
        highs.passModel(model)
        highs.run()
        info = highs.getInfo()
        found = info.primal_solution_status == 2
        return Peer(
            "HiGHS MIP, whole", float(info.objective_function_value) if found else None, float(info.mip_dual_bound),
            process_time() - start,
        )  # fmt: skip
