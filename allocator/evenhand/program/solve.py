"""Greedy hint, LP bound, a dive around the LP, the whole program, and envy rows for the pairs that turn out to envy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.deadline import Deadline
from evenhand.goals import excess, standing
from evenhand.outcome import Outcome
from evenhand.program.constraints import envy
from evenhand.program.formulate import NodeCounts
from evenhand.program.lift import lift, lower
from evenhand.program.linear_model import FREE, Arrays
from evenhand.program.prices import SCALE
from evenhand.program.variables import Program
from evenhand.shapes import IntArray
from evenhand.solvers import cp_sat
from evenhand.solvers.lp import LpStatus, Rows, solve_lp

DETERMINISTIC_SHARE = 0.26
"""Deterministic seconds of CP-SAT granted per second of `time_limit_s`: reached before the wall limit on a slow core."""
DIVE_SHARE = 0.25
ENVY_TOLERANCE = 1e-6
MOST_PAIRS = 200
LP_ITERATIONS_PER_S = 20_000


@dataclass(frozen=True, eq=False)
class Solved:
    """The best outcome found, and no outcome is worth more than `bound` (throughput units)."""

    outcome: Outcome
    bound: float | None
    optimal: bool
    cut_by_time: bool
    sizes: dict[str, int]


@dataclass(frozen=True, eq=False)
class _Relaxed:
    x: npt.NDArray[np.float64]
    bound: float


def solve(program: Program, counted: NodeCounts, hint: Outcome, deadline: Deadline, reserve_s: float) -> Solved:
    """Solve a round within what is left of its time less a reserve for words and audit."""
    s = program.snapshot
    effort = _Effort(program, deadline, reserve_s)
    best, bound, optimal, cut = hint, None, False, False
    pairs: set[tuple[int, int]] = set()
    excess_columns: dict[int, int] = {}
    while True:
        arrays = program.model.arrays()
        with deadline.stage("relax"):
            relaxed = _relax(arrays, deadline)
        if relaxed is not None:
            bound = relaxed.bound if bound is None else min(bound, relaxed.bound)
        guess = lower(program, counted, best)
        with deadline.stage("dive"):
            dived = _dive(program, arrays, relaxed, guess, effort) if relaxed is not None else None
        start = guess if dived is None else dict(enumerate(dived.tolist()))
        with deadline.stage("solve"):
            found = cp_sat.solve(arrays, effort.rest(), start)
        effort.charge(found.deterministic_s)
        cut = cut or found.cut_by_wall
        x = found.x if found.x is not None else dived
        proven = found.bound / SCALE
        bound = proven if bound is None else min(bound, proven)
        optimal = found.optimal
        if x is None:
            break
        with deadline.stage("lift"):
            best = lift(program, counted, x)
        fresh = _envious(program, best) - pairs if envy.applies(program) else set()
        if not fresh or not optimal or effort.exhausted:
            optimal = optimal and not fresh
            break
        pairs |= fresh
        envy.add_pairs(program, sorted(fresh), excess_columns)
    rows, columns = program.model.arrays().shape
    sizes = {"rows": rows, "columns": columns, "jobs": len(s.jobs), "nodes": len(s.nodes), "groups": len(s.tree.ids),
             "units": len(program.index.pending) + len(program.index.running), "envy_rows": len(pairs)}  # fmt: skip
    return Solved(best, bound, optimal, cut, sizes)


class _Effort:
    """What may still be spent: deterministic seconds first, the wall as a safeguard."""

    def __init__(self, program: Program, deadline: Deadline, reserve_s: float) -> None:
        policy = program.snapshot.policy
        self._deadline, self._reserve = deadline, reserve_s
        self._seed = policy.seed % 2**31
        self._free = not policy.deterministic
        self._workers = policy.workers if self._free else 1
        self._granted = DETERMINISTIC_SHARE * policy.time_limit_s

    @property
    def _wall_s(self) -> float:
        return max(0.0, self._deadline.left_s - self._reserve)

    @property
    def exhausted(self) -> bool:
        """Whether nothing is left to start another solve with."""
        return self._granted <= 0.0 or self._wall_s <= 0.0

    def charge(self, deterministic_s: float) -> None:
        """Take off what a solve used."""
        self._granted -= deterministic_s

    def rest(self) -> cp_sat.Effort:
        """All that is left."""
        granted = 1e6 if self._free else self._granted
        return cp_sat.Effort(granted, self._wall_s, self._seed, self._workers)

    def part(self, share: float) -> cp_sat.Effort:
        """A share of what is left."""
        whole = self.rest()
        return cp_sat.Effort(share * whole.deterministic_s, share * whole.wall_s, self._seed, self._workers)


def _relax(arrays: Arrays, deadline: Deadline) -> _Relaxed | None:
    """The LP relaxation: its point, and a bound with room for its tolerance; None if the limit came first."""
    rows = Rows(
        arrays.starts,
        arrays.columns,
        arrays.values.astype(np.float64),
        np.where(arrays.row_lower <= -FREE, -np.inf, arrays.row_lower.astype(np.float64)),
        np.where(arrays.row_upper >= FREE, np.inf, arrays.row_upper.astype(np.float64)),
    )
    result = solve_lp(
        arrays.cost / SCALE, rows, arrays.lower.astype(np.float64), arrays.upper.astype(np.float64), maximize=True,
        iteration_limit=max(1_000, round(LP_ITERATIONS_PER_S * deadline.limit_s)),
    )  # fmt: skip
    if result.status is not LpStatus.OPTIMAL:
        return None
    value = result.objective + arrays.offset / SCALE
    return _Relaxed(result.x, value + 1e-7 * (1.0 + abs(value)))


def _dive(
    program: Program, arrays: Arrays, relaxed: _Relaxed, guess: dict[int, int], effort: _Effort
) -> IntArray | None:
    """Fix the moves on which the LP is of one mind, and let CP-SAT decide the few others."""
    moves = np.array([m.column for m in program.columns.moves], dtype=np.int64)
    if not moves.size:
        return None
    value = relaxed.x[moves]
    whole = np.abs(value - np.round(value)) < 1e-6
    if whole.all():
        whole[:] = True
    low, high = arrays.lower.copy(), arrays.upper.copy()
    fixed = moves[whole]
    low[fixed] = high[fixed] = np.round(relaxed.x[fixed]).astype(np.int64)
    part = Arrays(
        low, high, arrays.cost, arrays.offset, arrays.starts, arrays.columns, arrays.values,
        arrays.row_lower, arrays.row_upper,
    )  # fmt: skip
    found = cp_sat.solve(part, effort.part(DIVE_SHARE), {}, may_fail=True)
    effort.charge(found.deterministic_s)
    return found.x


def _envious(program: Program, outcome: Outcome) -> set[tuple[int, int]]:
    """Pairs of leaves (envious, envied) with envy beyond one gang, the worst first if they are many."""
    found = excess(program.snapshot, program.target, standing(program.snapshot, outcome))
    worst = np.argsort(-found, axis=None, kind="stable")[:MOST_PAIRS]
    rows, columns = np.unravel_index(worst, found.shape)
    return {(int(i), int(k)) for i, k in zip(rows, columns, strict=True) if found[i, k] > ENVY_TOLERANCE}
