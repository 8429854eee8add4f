"""Greedy hint, LP bound, a dive around the LP, the whole program, and envy rows for the pairs that turn out to envy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.deadline import Deadline
from evenhand.errors import SolverError
from evenhand.goals import excess, goals, objective, standing
from evenhand.greedy import restartable
from evenhand.outcome import Move, Outcome
from evenhand.program.constraints import envy
from evenhand.program.formulate import NodeCounts
from evenhand.program.lift import lift, lower
from evenhand.program.neighbourhoods import Neighbourhoods, fixed_moves
from evenhand.program.prices import SCALE
from evenhand.program.variables import Program
from evenhand.shapes import IntArray
from evenhand.solvers import cp_sat
from evenhand.solvers.linear_model import FREE, Arrays
from evenhand.solvers.lp import LpStatus, Rows, solve_lp

DETERMINISTIC_SHARE = 0.25
"""Deterministic seconds of CP-SAT granted per second of `time_limit_s`: reached before the wall limit on a slow core."""
DIVE_SHARE = 0.25
PROOF_SHARE = 0.75
SEARCH_SHARE = 0.35
MANY_GROUPS = 64
"""With more groups, neighbourhoods are searched before the proof is tried."""
NEIGHBOURHOOD_SHARE = 0.06
FEW_MOVES = 1_000
"""Programs this small are better solved whole."""
PATIENCE = 8
"""Neighbourhoods in a row that bring nothing before the search gives up."""
PROOF_TOLERANCE = 1e-5
BOUND_TOLERANCE = 1e-6
"""By how much (relative) a plan may seem to beat the bound, for rounding; more is a defect of a solver."""
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
    search = _Search(program, counted, hint, deadline, reserve_s)
    while search.round_trip():
        search.add_envy_rows()
    return search.result()


class _Search:
    """The best outcome so far, judged by its exact goals, and the best bound so far."""

    def __init__(
        self, program: Program, counted: NodeCounts, hint: Outcome, deadline: Deadline, reserve_s: float
    ) -> None:
        self._program, self._counted, self._deadline = program, counted, deadline
        self._effort = _Effort(program, deadline, reserve_s)
        self._hint = hint
        self._best, self._value = hint, self._worth(hint)
        self._insisted = False
        self._bound: float | None = None
        self._optimal = False
        self._pairs: set[tuple[int, int]] = set()
        self._fresh: set[tuple[int, int]] = set()
        self._excess: dict[int, int] = {}

    def _worth(self, outcome: Outcome) -> float:
        p = self._program
        return objective(goals(p.snapshot, p.entitlement, p.target, p.owed, outcome))

    def _offer(self, x: IntArray | None) -> Outcome | None:
        """Lift a point and keep it if it is the best yet."""
        if x is None:
            return None
        with self._deadline.stage("lift"):
            outcome = lift(self._program, self._counted, x)
            value = self._worth(outcome)
        if value > self._value:
            self._best, self._value = outcome, value
        return outcome

    def round_trip(self) -> bool:
        """Relax, dive, prove, else search around the best; True if envy rows are missing and there is time for more."""
        arrays = self._program.model.arrays()
        with self._deadline.stage("relax"):
            relaxed = _relax(arrays, self._deadline)
        x: IntArray | None = None
        if relaxed is not None:
            if not self._insisted:
                self._lower_bound(relaxed.bound)
            with self._deadline.stage("dive"):
                x = _dive(self._program, arrays, relaxed, self._effort)
            if x is not None and not self._pairs:
                with self._deadline.stage("neighbourhoods"):
                    x = _improve(self._program, arrays, relaxed, x, self._effort, MANY_GROUPS, 1.0 - SEARCH_SHARE)
            self._offer(x)
        guess = lower(self._program, self._counted, self._best)
        if x is not None and arrays.objective(x) / SCALE >= self._value - ENVY_TOLERANCE:
            guess = dict(enumerate(x.tolist()))
        with self._deadline.stage("solve"):
            found = cp_sat.solve(arrays, self._effort.part(PROOF_SHARE), guess)
        self._effort.charge(found)
        if not self._insisted and found.bound is not None:
            self._lower_bound(found.bound / SCALE)
        outcome = self._offer(found.x)
        if outcome is None:
            return False
        if not found.optimal:
            if relaxed is not None and found.x is not None:
                with self._deadline.stage("neighbourhoods"):
                    self._offer(_improve(self._program, arrays, relaxed, found.x, self._effort, 1, 0.0))
            return False
        self._fresh = _envious(self._program, outcome) - self._pairs if envy.applies(self._program) else set()
        stays = self._stay_instead(self._best)
        self._optimal = not self._fresh and not stays and not self._insisted
        return bool(self._fresh or stays) and not self._effort.exhausted

    def _stay_instead(self, outcome: Outcome) -> bool:
        """R3: where moving is not allowed, who could restart elsewhere is kept; the bound of before still holds."""
        p = self._program
        if p.snapshot.policy.allow_migration:
            return False
        stays = [
            m.column
            for j in restartable(p.snapshot, p.entitlement, p.index, outcome)
            for m in p.columns.by_unit[j]
            if m.move is Move.KEEP
        ]
        for column in stays:
            p.model.insist(column)
        if stays:
            self._insisted = True
            self._best, self._value = self._hint, self._worth(self._hint)
        return bool(stays)

    def _lower_bound(self, bound: float) -> None:
        self._bound = bound if self._bound is None else min(self._bound, bound)

    def add_envy_rows(self) -> None:
        """Add the rows of the pairs that the last answer has shown to envy."""
        self._pairs |= self._fresh
        envy.add_pairs(self._program, sorted(self._fresh), self._excess)

    def result(self) -> Solved:
        """What came of it."""
        s, program = self._program.snapshot, self._program
        rows, columns = program.model.row_count, program.model.column_count
        sizes = {"rows": rows, "columns": columns, "jobs": len(s.jobs), "nodes": len(s.nodes),
                 "groups": len(s.tree.ids), "units": len(program.index.pending) + len(program.index.running),
                 "envy_rows": len(self._pairs)}  # fmt: skip
        if self._bound is not None and self._bound < self._value - BOUND_TOLERANCE * (1.0 + abs(self._value)):
            raise SolverError(f"a bound of {self._bound:g} is below a plan worth {self._value:g}")
        near = min(5e-4, PROOF_TOLERANCE + 2e-7 * abs(self._value))
        proven = self._bound is not None and self._bound <= self._value + near
        return Solved(self._best, self._bound, self._optimal or proven, self._effort.cut_by_wall, sizes)


class _Effort:
    """What may still be spent: deterministic seconds first, the wall as a safeguard."""

    def __init__(self, program: Program, deadline: Deadline, reserve_s: float) -> None:
        policy = program.snapshot.policy
        self._deadline, self._reserve = deadline, reserve_s
        self._seed = policy.seed % 2**31
        self._free = not policy.deterministic
        self._workers = policy.workers if self._free else 1
        self._granted = DETERMINISTIC_SHARE * policy.time_limit_s
        self.cut_by_wall = False
        """Whether the clock ended a piece of work that had more granted: another machine might answer otherwise."""

    @property
    def _wall_s(self) -> float:
        return max(0.0, self._deadline.left_s - self._reserve)

    @property
    def exhausted(self) -> bool:
        """Whether nothing is left to start another solve with."""
        if self._granted > 0.0 and self._wall_s <= 0.0:
            self.cut_by_wall = True
        return self._granted <= 0.0 or self._wall_s <= 0.0

    def has_more_than(self, share: float) -> bool:
        """Whether more than a share of the work, and some time, is left."""
        return not self.exhausted and self._granted > share * DETERMINISTIC_SHARE * self._deadline.limit_s

    def charge(self, found: cp_sat.Solution) -> None:
        """Take off what a solve used, and remember if the clock ended it."""
        self._granted -= found.deterministic_s
        self.cut_by_wall = self.cut_by_wall or found.cut_by_wall

    def rest(self) -> cp_sat.Effort:
        """All that is left."""
        granted = 1e6 if self._free else self._granted
        return cp_sat.Effort(granted, self._wall_s, self._seed, self._workers)

    def piece(self, share: float) -> cp_sat.Effort:
        """A share of the whole budget, as far as it is left."""
        granted = min(share * DETERMINISTIC_SHARE * self._deadline.limit_s, self._granted)
        wall = min(self._wall_s, 4 * share * self._deadline.limit_s) if self._free else self._wall_s
        return cp_sat.Effort(granted, wall, self._seed, self._workers)

    def part(self, share: float) -> cp_sat.Effort:
        """A share of the work that is left; of the clock all where work is counted, else a share too."""
        whole = self.rest()
        wall = whole.wall_s * (share if self._free else 1.0)
        return cp_sat.Effort(share * whole.deterministic_s, wall, self._seed, self._workers)


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


def _dive(program: Program, arrays: Arrays, relaxed: _Relaxed, effort: _Effort) -> IntArray | None:
    """Fix the moves on which the LP is of one mind, and let CP-SAT decide the few others."""
    moves = np.array([m.column for m in program.columns.moves], dtype=np.int64)
    if not moves.size:
        return None
    value = relaxed.x[moves]
    whole = moves[np.abs(value - np.round(value)) < 1e-6]
    part = fixed_moves(arrays, whole, np.round(relaxed.x[whole]).astype(np.int64))
    found = cp_sat.solve(part, effort.part(DIVE_SHARE), {}, may_fail=True)
    effort.charge(found)
    return found.x


def _improve(
    program: Program, arrays: Arrays, relaxed: _Relaxed, x: IntArray, effort: _Effort, beyond: int, leave: float
) -> IntArray:
    """Search around a point, a few groups at a time, while it pays.

    Parameters
    ----------
    beyond : only with more groups than this (fewer are better solved whole); leave : share of the work to leave over.
    """
    near = Neighbourhoods(program, relaxed.x, program.snapshot.policy.seed)
    if near.count <= beyond or near.size <= FEW_MOVES:
        return x
    goal = relaxed.bound - PROOF_TOLERANCE
    idle, draws = 0, near.around(x)
    while idle < PATIENCE and arrays.objective(x) / SCALE < goal and effort.has_more_than(leave):
        held = next(draws)
        found = cp_sat.solve(
            fixed_moves(arrays, held, x[held]), effort.piece(NEIGHBOURHOOD_SHARE), dict(enumerate(x.tolist())),
            may_fail=True,
        )  # fmt: skip
        effort.charge(found)
        if found.x is not None and found.objective > arrays.objective(x):
            x, idle, draws = found.x, 0, near.around(found.x)
        else:
            idle += 1
    return x


def _envious(program: Program, outcome: Outcome) -> set[tuple[int, int]]:
    """Pairs of leaves (envious, envied) with envy beyond one gang, the worst first if they are many."""
    found = excess(program.snapshot, program.target, standing(program.snapshot, outcome))
    worst = np.argsort(-found, axis=None, kind="stable")[:MOST_PAIRS]
    rows, columns = np.unravel_index(worst, found.shape)
    return {(int(i), int(k)) for i, k in zip(rows, columns, strict=True) if found[i, k] > ENVY_TOLERANCE}
