"""Greedy hint, plans of groups mixed and made whole, the whole program, and envy rows where somebody envies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.deadline import Deadline
from evenhand.errors import SolverError
from evenhand.goals import objective, standing
from evenhand.greedy import restartable
from evenhand.outcome import Outcome
from evenhand.program.around import Around
from evenhand.program.budget import Budget
from evenhand.program.decompose import CLOSE
from evenhand.program.formulate import NodeCounts
from evenhand.program.lift import lift, lower
from evenhand.program.market import Market, market_of
from evenhand.program.memory import Memory
from evenhand.program.mixing import Mixing
from evenhand.program.neighbourhoods import Neighbourhoods
from evenhand.program.points import Points, Relaxed, relax
from evenhand.program.prices import SCALE
from evenhand.program.variables import KEEP, Program
from evenhand.shapes import IntArray
from evenhand.solvers import cp_sat

GLANCE_SHARE = 0.1
PROOF_SHARE = 0.75
"""Shares of the work left that the whole program may take: at a first glance, and once neighbourhoods have done theirs."""
FIRST_SHARE = 0.2
SEARCH_SHARE = 0.65
"""Shares of the work that neighbourhoods may take before envy is looked at again, and before the whole program is tried."""
FEW_MOVES = 400
"""Programs with fewer moves are solved whole at once; more are decomposed into groups first."""
SMALL_S = 0.01
"""What the relaxation of a small program may take for a bound, however little time is left."""
LEG = 15
"""Neighbourhoods between trades."""
PATIENCE, LAST_PATIENCE = 15, 60
"""Neighbourhoods in a row that bring nothing before the search tries something else, and before it gives up."""
WHOLE_MOVES = 6_000
"""Programs with more moves are not tried whole: neighbourhoods do more in the same time."""
SURE_MOVES = 1_000
HOPEFUL = 0.01
"""Between the two, only where bound and best point are this near, as a share of target throughput, or neighbourhoods stall."""
PROOF_TOLERANCE = 1e-5
VALUE_TOLERANCE = 1e-6
BOUND_TOLERANCE = 1e-6
"""By how much (relative) a plan may seem to beat the bound, for rounding; more is a defect of a solver."""


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
    search.at_once()
    while search.round_trip():
        search.envy_rows.add()
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
        self._pivots = 0
        self._scale = 1.0 + program.target.throughput
        self._hint = hint
        self._best, self._value = hint, self._worth(hint)
        self._insisted = False
        self._bound: float | None = None
        self._optimal = self._decided = self._stalled = False
        self._mixing = Mixing(program, counted, self._budget, memory)
        self.envy_rows = self._mixing.envy_rows
        self._offered: IntArray | None = None
        self._near: Neighbourhoods | None = None
        self._market: Market | None = None
        self._x: IntArray | None = None
        """The best point of the program as it is."""

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

    def at_once(self) -> None:
        """Where no time is left to search there is a bound all the same: prices of the round before, or none, give one."""
        if self._budget.in_time():
            return
        bound = None
        if len(self._program.columns.moves) >= FEW_MOVES:
            with self._deadline.stage("decompose"):
                bound = self._mixing.bound_at_once()
        if bound is None:
            self._relaxed(SMALL_S)
        else:
            self._lower_bound(bound)

    def round_trip(self) -> bool:
        """Find good points, prove; True if rows are missing and there is time for more."""
        columns = self._program.columns
        self._x = None
        if len(columns.moves) < FEW_MOVES and self._whole():
            return True
        if self._settled or not columns.unit_rows or not self._budget.in_time():
            return False
        return self._by_groups()

    @property
    def _settled(self) -> bool:
        """Whether nothing better is left to find in the program as it is."""
        return self._decided or self._budget.exhausted

    def _whole(self) -> bool:
        """A small program: dive around its LP, then prove."""
        self._mixing.arrays = self._program.model.arrays()
        relaxed = self._relaxed(SMALL_S)
        if relaxed is not None:
            with self._deadline.stage("dive"):
                self._x = self._points.dive(relaxed)
            self._offer(self._x)
        return self._prove(PROOF_SHARE)

    def _by_groups(self) -> bool:
        """A large program: plans of groups, mixed and made whole, then neighbourhoods, then the whole program."""
        self._mixed()
        if len(self._program.columns.moves) <= SURE_MOVES and self._prove(GLANCE_SHARE):
            return True
        if self._settled:
            return False
        if self._x is not None and not self._met(self._x, self._points.worth(self._x) - self._value):
            self._around(1.0 - FIRST_SHARE)
        got = standing(self._program.snapshot, self._best)
        if not self._budget.exhausted and self.envy_rows.much_in(got.allocated, got.counted_throughput):
            with self._deadline.stage("decompose"):
                self._x = self._mixing.widened(self._best)
            self._bounded()
            self._around(1.0 - FIRST_SHARE)
        if self._hopeful() and self._prove(GLANCE_SHARE):
            return True
        if not self._settled:
            self._around(1.0 - SEARCH_SHARE)
            if self._hopeful() and self._prove(PROOF_SHARE):
                return True
        if not self._settled:
            self._around(0.0, LAST_PATIENCE)
        return False

    @property
    def _points(self) -> Points:
        return self._mixing.points

    def _relaxed(self, least_s: float = 0.0) -> Relaxed | None:
        """The LP relaxation, and its bound; it may take so many seconds whatever is left."""
        with self._deadline.stage("relax"):
            relaxed = relax(self._mixing.arrays, self._deadline.limit_s, self._budget, least_s)
        if relaxed is not None:
            self._pivots += relaxed.iterations
            self._lower_bound(relaxed.bound)
        return relaxed

    def _mixed(self) -> None:
        """The best point between plans of groups."""
        with self._deadline.stage("decompose"):
            mix, x = self._mixing.mixed(self._best)
            if self._mixing.generation is None and (bound := self._mixing.bound_at_once()) is not None:
                self._lower_bound(bound)
        self._bounded()
        if x is not None and mix is not None:
            with self._deadline.stage("between"):
                x = self._points.fitted(mix, x)
            first = self._traded(x)
            if not self._budget.exhausted and not self._met(first):
                with self._deadline.stage("between"):
                    x = self._points.between(mix, x)
            x = self._traded(x) if self._points.worth(x) > self._points.worth(first) else first
        self._x = x
        self._offer(x)

    def _met(self, x: IntArray, uncounted: float = 0.0) -> bool:
        """Whether a point is as near the bound as plans were generated for, or nearer than the envy that no row counts."""
        return self._bound is not None and self._bound - self._points.worth(x) < max(CLOSE * self._scale, uncounted)

    def _traded(self, x: IntArray) -> IntArray:
        """A point after trades of room between groups."""
        generation = self._mixing.generation
        if generation is None or not self._budget.in_time():
            return x
        with self._deadline.stage("trades"):
            if self._market is None:
                self._market = market_of(self._program, generation.shared, generation.center)
            return self._points.traded(self._market, x)

    def _bounded(self) -> None:
        """Take the bound of the generation over; what stood on its prices is worked out anew."""
        self._near = self._market = None
        if self._mixing.generation is not None:
            self._lower_bound(self._mixing.generation.bound)

    def _around(self, leave: float, patience: int = PATIENCE) -> None:
        """Neighbourhoods of the best point, until so much of the work is left over."""
        generation = self._mixing.generation
        if self._x is None or generation is None or self._bound is None or not self._budget.has_more_than(leave):
            return
        with self._deadline.stage("neighbourhoods"):
            if self._near is None:
                self._near = Neighbourhoods(generation, self._program.snapshot.policy.seed)
            around = Around(self._mixing.arrays, self._near, self._budget)
        idle = 0
        while idle < patience and self._budget.has_more_than(leave):
            with self._deadline.stage("neighbourhoods"):
                x = around.improve(self._x, self._bound, leave, LEG)
            x = self._traded(x)
            idle = idle + LEG if x is self._x else 0
            self._x = x
        self._stalled = self._budget.has_more_than(leave)
        self._offer(self._x)

    def _hopeful(self) -> bool:
        """Whether the whole program is worth a try."""
        moves = len(self._program.columns.moves)
        if moves <= SURE_MOVES or self._stalled or self._bound is None:
            return moves <= WHOLE_MOVES
        near = HOPEFUL * self._scale
        return moves <= WHOLE_MOVES and self._bound - self._value <= near

    def _prove(self, share: float) -> bool:
        """The whole program with the best point as hint; True if envy rows or stays are missing and time is left."""
        if self._budget.exhausted:
            return False
        guess = lower(self._program, self._counted, self._best)
        if self._x is not None and self._points.worth(self._x) >= self._value - VALUE_TOLERANCE:
            guess = dict(enumerate(self._x.tolist()))
        with self._deadline.stage("solve"):
            found = cp_sat.solve(self._mixing.arrays, self._budget.part(share), guess)
        self._budget.charge(found)
        if found.bound is not None:
            self._lower_bound(found.bound / SCALE)
        outcome = self._offer(found.x)
        if found.x is not None and (self._x is None or self._points.worth(found.x) > self._points.worth(self._x)):
            self._x = found.x
        if outcome is None or not found.optimal:
            return False
        envies = self.envy_rows.found_in(outcome)
        stays = self._stay_instead(self._best)
        self._decided = not envies and not stays
        self._optimal = self._decided and not self._insisted
        return not self._decided and not self._budget.exhausted

    def _stay_instead(self, outcome: Outcome) -> bool:
        """R3: where moving is not allowed, who could restart elsewhere is kept; the bound of before still holds."""
        p = self._program
        if p.snapshot.policy.allow_migration:
            return False
        again = restartable(p.snapshot, p.entitlement, p.index, outcome)
        moves = p.columns.moves
        stays = moves.column[(moves.kind == KEEP) & np.isin(moves.job, again)].tolist()
        for column in stays:
            p.model.insist(column)
        if stays:
            self._insisted = True
            self._mixing.forget()
            self._best, self._value = self._hint, self._worth(self._hint)
        return bool(stays)

    def _lower_bound(self, bound: float) -> None:
        """A bound of the program as it is; once R3 has fixed who stays, it is one of less than the round."""
        if self._insisted:
            return
        self._bound = bound if self._bound is None else min(self._bound, bound)

    def result(self) -> Solved:
        """What came of it."""
        s, program, generation = self._program.snapshot, self._program, self._mixing.generation
        rows, columns = program.model.row_count, program.model.column_count
        pricings = 0 if generation is None else generation.pricings
        sizes = {"rows": rows, "columns": columns, "jobs": len(s.jobs), "nodes": len(s.nodes),
                 "groups": len(s.tree.ids), "units": len(program.index.pending) + len(program.index.running),
                 "envy_rows": self.envy_rows.count, "lp_iterations": self._pivots, "pricings": pricings}  # fmt: skip
        if self._bound is not None and self._bound < self._value - BOUND_TOLERANCE * (1.0 + abs(self._value)):
            raise SolverError(f"a bound of {self._bound:g} is below a plan worth {self._value:g}")
        near = min(5e-4, PROOF_TOLERANCE + 2e-7 * abs(self._value))
        proven = self._bound is not None and self._bound <= self._value + near
        return Solved(self._best, self._bound, self._optimal or proven, self._budget.cut_by_wall, sizes)
