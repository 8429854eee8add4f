"""Greedy hint, LP bound, plans of groups mixed and made whole, the whole program, and envy rows where somebody envies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.deadline import Deadline
from evenhand.errors import SolverError
from evenhand.goals import excess, objective, standing
from evenhand.greedy import restartable
from evenhand.outcome import Move, Outcome
from evenhand.program.budget import Budget
from evenhand.program.constraints import envy
from evenhand.program.formulate import NodeCounts
from evenhand.program.lift import lift, lower
from evenhand.program.memory import Memory, grown
from evenhand.program.points import Points, Relaxed, relax
from evenhand.program.prices import SCALE, WEIGHT_ENVY
from evenhand.program.variables import Program
from evenhand.shapes import IntArray
from evenhand.solvers import cp_sat
from evenhand.solvers.linear_model import Arrays
from evenhand.solvers.lp import Basis

PROOF_SHARE = 0.75
SEARCH_SHARE = 0.35
"""Share of the work that neighbourhoods may take before the whole program is tried."""
FEW_MOVES = 400
"""Programs with fewer moves are solved whole at once; more are decomposed into groups first."""
WHOLE_MOVES = 6_000
"""Programs with more moves are not tried whole: neighbourhoods do more in the same time."""
SURE_MOVES = 1_000
HOPEFUL = 0.1
"""Between the two, only where bound and best point are this near, as a share of target throughput."""
MANY_GROUPS = 64
"""With more groups, neighbourhoods are searched before the whole program is tried."""
PROOF_TOLERANCE = 1e-5
BOUND_TOLERANCE = 1e-6
"""By how much (relative) a plan may seem to beat the bound, for rounding; more is a defect of a solver."""
ENVY_TOLERANCE = 1e-6
ENVIERS = 2
"""Of each envied leaf so many get rows at a time: only the one that envies most counts."""
MOST_MEETINGS = 1
MUCH_ENVY = 1e-3
"""Envy that no row counts, as a share of target throughput, that is worth another pass."""


@dataclass(frozen=True, eq=False)
class Solved:
    """The best outcome found, and no outcome is worth more than `bound` (throughput units)."""

    outcome: Outcome
    bound: float | None
    optimal: bool
    cut_by_time: bool
    sizes: dict[str, int]


def solve(
    program: Program,
    counted: NodeCounts,
    hint: Outcome,
    deadline: Deadline,
    reserve_s: float,
    memory: Memory | None = None,
) -> Solved:
    """Solve a round within what is left of its time less a reserve for words and audit.

    Parameters
    ----------
    memory : of the round before, and for the next one; left out: each round for itself.
    """
    search = _Search(program, counted, hint, deadline, reserve_s, memory)
    search.foresee_envy()
    while search.round_trip():
        search.add_envy_rows()
    return search.result()


class _Search:
    """The best outcome so far, judged by its exact goals, and the best bound so far."""

    def __init__(
        self,
        program: Program,
        counted: NodeCounts,
        hint: Outcome,
        deadline: Deadline,
        reserve_s: float,
        memory: Memory | None,
    ) -> None:
        self._program, self._counted, self._deadline = program, counted, deadline
        self._budget = Budget(program, deadline, reserve_s)
        self._memory, self._pivots = memory, 0
        self._basis: Basis | None = None if memory is None else memory.recall(program.model)
        self._hint = hint
        self._best, self._value = hint, self._worth(hint)
        self._insisted = False
        self._bound: float | None = None
        self._optimal = False
        self._pairs: set[tuple[int, int]] = set()
        self._fresh: set[tuple[int, int]] = set()
        self._excess: dict[int, int] = {}
        self._meetings = 0
        self._offered: IntArray | None = None

    def _worth(self, outcome: Outcome) -> float:
        return objective(self._program.goals.of(outcome))

    def _offer(self, x: IntArray | None) -> Outcome | None:
        """Lift a point and keep it if it is the best yet."""
        if x is None or x is self._offered:
            return None
        self._offered = x
        with self._deadline.stage("lift"):
            outcome = lift(self._program, self._counted, x)
            value = self._worth(outcome)
        if value > self._value:
            self._best, self._value = outcome, value
        return outcome

    def round_trip(self) -> bool:
        """Relax, find good points, prove; True if envy rows are missing and there is time for more."""
        arrays = self._program.model.arrays()
        moves = len(self._program.columns.moves)
        with self._deadline.stage("relax"):
            relaxed = self._relaxed(arrays)
        x: IntArray | None = None
        points: Points | None = None
        if relaxed is not None:
            self._lower_bound(relaxed.bound)
            points = Points(self._program, arrays, relaxed, self._budget)
            x = self._first_point(points, moves)
            self._offer(x)
            if moves >= FEW_MOVES and self._budget.has_more_than(0.0) and self._meets_envy():
                return True
            if x is not None:
                x = self._around(points, x, MANY_GROUPS if moves <= WHOLE_MOVES else 1, 1.0 - SEARCH_SHARE)
            self._offer(x)
        for leave in (0.6, 0.3, 0.0):
            if self._hopeful(moves):
                return self._prove(arrays, points, x)
            if points is not None and x is not None:
                x = self._around(points, x, 1, leave)
                self._offer(x)
        return False

    def _relaxed(self, arrays: Arrays) -> Relaxed | None:
        """The LP relaxation, from where the last one ended, in this round or the one before."""
        rows, columns = arrays.shape
        start = None if self._basis is None else grown(self._basis, columns, rows)
        relaxed = relax(arrays, self._deadline.limit_s, self._budget, start)
        if relaxed is not None:
            self._basis = relaxed.basis
            self._pivots += relaxed.iterations
            if self._memory is not None:
                self._memory.keep(self._program.model, relaxed.basis)
        return relaxed

    def _first_point(self, points: Points, moves: int) -> IntArray | None:
        """Decomposed into groups, or a dive around the LP."""
        x: IntArray | None = None
        if moves >= FEW_MOVES and self._budget.in_time():
            with self._deadline.stage("decompose"):
                x = points.completed(self._best, self._counted)
                mix = None if x is None else points.mixture(x)
            if mix is not None and x is not None:
                self._lower_bound(mix.bound)
                with self._deadline.stage("between"):
                    return points.between(mix, x)
        with self._deadline.stage("dive"):
            y = points.dive()
        return x if y is None else y

    def _around(self, points: Points, x: IntArray, beyond: int, leave: float) -> IntArray:
        """Neighbourhoods of a point, if there are more groups than that."""
        if self._group_count() > beyond and self._bound is not None:
            with self._deadline.stage("neighbourhoods"):
                for better in points.around(x, self._bound, leave):
                    x = better
        return x

    def _hopeful(self, moves: int) -> bool:
        """Whether the whole program is worth a try."""
        if moves <= SURE_MOVES or self._bound is None:
            return moves <= WHOLE_MOVES
        near = HOPEFUL * (1.0 + self._program.target.throughput)
        return moves <= WHOLE_MOVES and self._bound - self._value <= near

    def foresee_envy(self) -> None:
        """Rows for who is envied under the hint: what runs mostly stays, and so does who is envied."""
        if len(self._program.columns.moves) >= FEW_MOVES and envy.applies(self._program):
            self._fresh = _envious(self._program, self._hint) | self._remembered()
            self.add_envy_rows()

    def _remembered(self) -> set[tuple[int, int]]:
        """Pairs of leaves that had rows in the round before."""
        if self._memory is None:
            return set()
        ids = self._program.snapshot.tree.ids
        place = {ids[int(g)]: i for i, g in enumerate(self._program.target.leaves)}
        return {(place[a], place[b]) for a, b in self._memory.envied if a in place and b in place}

    def _meets_envy(self) -> bool:
        """Whether the best outcome so far is envied for much that no row counts: once, rows come in before more is searched."""
        self._meetings += 1
        if self._meetings > MOST_MEETINGS or not envy.applies(self._program):
            return False
        self._fresh = _envious(self._program, self._best) - self._pairs
        return bool(self._fresh) and WEIGHT_ENVY * self._uncounted() > MUCH_ENVY * (
            1.0 + self._program.target.throughput
        )

    def _uncounted(self) -> float:
        """Excess under the best outcome beyond what the rows of the program see of it (E1)."""
        p = self._program
        found = excess(p.snapshot, p.target, standing(p.snapshot, self._best))
        seen = np.zeros(found.shape)
        for i, k in self._pairs:
            seen[i, k] = found[i, k]
        return float((found.max(axis=0, initial=0.0) - seen.max(axis=0, initial=0.0)).sum())

    def _group_count(self) -> int:
        return len({int(self._program.snapshot.group[m.unit.job]) for m in self._program.columns.moves})

    def _prove(self, arrays: Arrays, points: Points | None, x: IntArray | None) -> bool:
        """The whole program with the best point as hint; True if envy rows or stays are missing and time is left."""
        guess = lower(self._program, self._counted, self._best)
        if x is not None and arrays.objective(x) / SCALE >= self._value - ENVY_TOLERANCE:
            guess = dict(enumerate(x.tolist()))
        if self._budget.exhausted:
            return False
        with self._deadline.stage("solve"):
            found = cp_sat.solve(arrays, self._budget.part(PROOF_SHARE), guess)
        self._budget.charge(found)
        if found.bound is not None:
            self._lower_bound(found.bound / SCALE)
        outcome = self._offer(found.x)
        if outcome is None:
            return False
        if not found.optimal:
            if points is not None and found.x is not None:
                self._offer(self._around(points, found.x, 1, 0.0))
            return False
        self._fresh = _envious(self._program, outcome) - self._pairs if envy.applies(self._program) else set()
        stays = self._stay_instead(self._best)
        self._optimal = not self._fresh and not stays and not self._insisted
        return bool(self._fresh or stays) and not self._budget.exhausted

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
        """A bound of the program as it is; once R3 has fixed who stays, it is one of less than the round."""
        if self._insisted:
            return
        self._bound = bound if self._bound is None else min(self._bound, bound)

    def add_envy_rows(self) -> None:
        """Add the rows of the pairs that the last answer has shown to envy."""
        self._pairs |= self._fresh
        envy.add_pairs(self._program, sorted(self._fresh), self._excess)
        if self._memory is not None:
            ids, leaves = self._program.snapshot.tree.ids, self._program.target.leaves
            self._memory.envied = frozenset((ids[int(leaves[i])], ids[int(leaves[k])]) for i, k in self._pairs)

    def result(self) -> Solved:
        """What came of it."""
        s, program = self._program.snapshot, self._program
        rows, columns = program.model.row_count, program.model.column_count
        sizes = {"rows": rows, "columns": columns, "jobs": len(s.jobs), "nodes": len(s.nodes),
                 "groups": len(s.tree.ids), "units": len(program.index.pending) + len(program.index.running),
                 "envy_rows": len(self._pairs), "lp_iterations": self._pivots}  # fmt: skip
        if self._bound is not None and self._bound < self._value - BOUND_TOLERANCE * (1.0 + abs(self._value)):
            raise SolverError(f"a bound of {self._bound:g} is below a plan worth {self._value:g}")
        near = min(5e-4, PROOF_TOLERANCE + 2e-7 * abs(self._value))
        proven = self._bound is not None and self._bound <= self._value + near
        return Solved(self._best, self._bound, self._optimal or proven, self._budget.cut_by_wall, sizes)


def _envious(program: Program, outcome: Outcome) -> set[tuple[int, int]]:
    """Pairs of leaves (envious, envied) with envy beyond one gang: for each envied one those that envy most."""
    found = excess(program.snapshot, program.target, standing(program.snapshot, outcome))
    worst = np.argsort(-found, axis=0, kind="stable")[:ENVIERS]
    return {(int(i), int(k)) for row in worst for k, i in enumerate(row.tolist()) if found[i, k] > ENVY_TOLERANCE}
