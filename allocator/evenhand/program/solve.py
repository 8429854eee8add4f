"""Greedy hint, plans of groups mixed and made whole, the whole program, and envy rows where somebody envies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.deadline import Deadline
from evenhand.errors import SolverError
from evenhand.goals import FloatArray, objective, standing
from evenhand.greedy import restartable
from evenhand.outcome import Outcome
from evenhand.program.around import Around
from evenhand.program.blocks import Blocks, blocks_of
from evenhand.program.budget import Budget
from evenhand.program.constraints import envy
from evenhand.program.decompose import CLOSE, Generation
from evenhand.program.envied import EnvyRows
from evenhand.program.formulate import NodeCounts
from evenhand.program.lift import lift, lower
from evenhand.program.market import Market, market_of
from evenhand.program.memory import Memory
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
"""What the relaxation of a small program may take for a bound where no time is left."""
ROUGHLY = 0.03
"""How near bound and mix are brought before envy rows come in, as a share of target throughput."""
ENVY_CLOCK = 0.65
"""Share of what the clock leaves that must be left after the first plans for envy rows to come in, a safeguard."""
LEG = 15
"""Neighbourhoods between trades."""
PATIENCE, LAST_PATIENCE = 15, 60
"""Neighbourhoods in a row that bring nothing before the search tries something else, and before it gives up."""
GENERATION_CLOCK = 0.6
"""Share of what the clock leaves that plans may be generated for, a safeguard."""
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
        self._memory, self._pivots, self._pricings = memory, 0, 0
        self._scale = 1.0 + program.target.throughput
        self._hint = hint
        self._best, self._value = hint, self._worth(hint)
        self._insisted = False
        self._bound: float | None = None
        self._optimal = self._decided = self._stalled = False
        self.envy_rows = EnvyRows(program, memory)
        self._offered: IntArray | None = None
        self._arrays = program.model.arrays()
        self._generation: Generation | None = None
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
        blocks = blocks_of(self._program, self._arrays)
        if len(self._program.columns.moves) < FEW_MOVES or not blocks.count:
            self._relaxed(SMALL_S)
            return
        with self._deadline.stage("decompose"):
            nobody = np.zeros(self._arrays.shape[1], dtype=np.int64)
            generation = Generation(blocks, self._arrays, nobody, self._prices(blocks), self._scale)
            generation.run(0.0, lambda: False)
            self._lower_bound(generation.bound)

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
        self._arrays = self._program.model.arrays()
        relaxed = self._relaxed()
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
        self._around(1.0 - FIRST_SHARE)
        got = standing(self._program.snapshot, self._best)
        if not self._budget.exhausted and self.envy_rows.much_in(got.allocated, got.counted_throughput):
            self.envy_rows.add()
            self._x = self._generate(CLOSE)
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
        return Points(self._program, self._arrays, self._budget)

    def _relaxed(self, least_s: float = 0.0) -> Relaxed | None:
        """The LP relaxation, and its bound; it may take so many seconds whatever is left."""
        with self._deadline.stage("relax"):
            relaxed = relax(self._arrays, self._deadline.limit_s, self._budget, least_s)
        if relaxed is not None:
            self._pivots += relaxed.iterations
            self._lower_bound(relaxed.bound)
        return relaxed

    def _mixed(self) -> None:
        """The best point between plans of groups, with envy rows for whom their mix leaves envied."""
        known = self._memory is not None and self._memory.knows
        if self._generation is None and known:
            self.envy_rows.recall()
        there_s = self._budget.wall_s
        x = self._generate(CLOSE if known or self._generation is not None else ROUGHLY)
        if x is None or self._generation is None:
            return
        mix = self._generation.mixture()
        taken = x.astype(np.float64) if mix is None else mix.x
        if self.envy_rows.much_in(*envy.held(self._program, taken)) and self._budget.leaves(ENVY_CLOCK * there_s):
            self.envy_rows.add()
            x = self._generate(CLOSE)
        elif not known:
            self._go_on(CLOSE)
        mix = self._generation.mixture()
        if x is not None and mix is not None:
            with self._deadline.stage("between"):
                x = self._points.fitted(mix, x)
            first = self._traded(x)
            if not self._budget.exhausted:
                with self._deadline.stage("between"):
                    x = self._points.between(mix, x)
            x = self._traded(x) if self._points.worth(x) > self._points.worth(first) else first
        self._x = x
        self._offer(x)

    def _traded(self, x: IntArray) -> IntArray:
        """A point after trades of room between groups."""
        if self._generation is None or not self._budget.in_time():
            return x
        with self._deadline.stage("trades"):
            if self._market is None:
                self._market = market_of(self._program, self._generation.shared, self._generation.center)
            return self._points.traded(self._market, x)

    def _generate(self, close: float) -> IntArray | None:
        """Generate plans for the program as it is until bound and mix are close; returns the best outcome as a point."""
        self._arrays = self._program.model.arrays()
        with self._deadline.stage("decompose"):
            x = self._points.completed(self._best, self._counted)
            if x is None:
                return None
            if self._generation is None:
                blocks = blocks_of(self._program, self._arrays)
                self._generation = Generation(blocks, self._arrays, x, self._prices(blocks), self._scale)
            else:
                self._generation.widen(self._arrays)
        self._go_on(close)
        return x

    def _go_on(self, close: float) -> None:
        """Generate plans until bound and mix are this near, as a share of target throughput."""
        if self._generation is None:
            return
        with self._deadline.stage("decompose"):
            least_s = self._budget.wall_s * (1.0 - GENERATION_CLOCK)
            self._generation.run(close, lambda: self._budget.leaves(least_s))
        self._near = self._market = None
        self._pricings = self._generation.pricings
        self._lower_bound(self._generation.bound)
        if self._memory is not None:
            shared = self._generation.shared.blocks.shared_row
            self._memory.keep(self._program.model, shared, self._generation.center)

    def _prices(self, blocks: Blocks) -> FloatArray:
        """Prices of rows to begin with, float [r]: those of the round before, else none."""
        if self._memory is not None and self._memory.knows:
            return self._memory.recall(self._program.model, blocks.shared_row)
        return np.zeros(self._program.model.row_count)

    def _around(self, leave: float, patience: int = PATIENCE) -> None:
        """Neighbourhoods of the best point, until so much of the work is left over."""
        if self._x is None or self._generation is None or self._bound is None or not self._budget.has_more_than(leave):
            return
        with self._deadline.stage("neighbourhoods"):
            if self._near is None:
                self._near = Neighbourhoods(self._generation, self._program.snapshot.policy.seed)
            around = Around(self._arrays, self._near, self._budget)
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
            found = cp_sat.solve(self._arrays, self._budget.part(share), guess)
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
            self._generation = None
            self._best, self._value = self._hint, self._worth(self._hint)
        return bool(stays)

    def _lower_bound(self, bound: float) -> None:
        """A bound of the program as it is; once R3 has fixed who stays, it is one of less than the round."""
        if self._insisted:
            return
        self._bound = bound if self._bound is None else min(self._bound, bound)

    def result(self) -> Solved:
        """What came of it."""
        s, program = self._program.snapshot, self._program
        rows, columns = program.model.row_count, program.model.column_count
        sizes = {"rows": rows, "columns": columns, "jobs": len(s.jobs), "nodes": len(s.nodes),
                 "groups": len(s.tree.ids), "units": len(program.index.pending) + len(program.index.running),
                 "envy_rows": self.envy_rows.count, "lp_iterations": self._pivots, "pricings": self._pricings}  # fmt: skip
        if self._bound is not None and self._bound < self._value - BOUND_TOLERANCE * (1.0 + abs(self._value)):
            raise SolverError(f"a bound of {self._bound:g} is below a plan worth {self._value:g}")
        near = min(5e-4, PROOF_TOLERANCE + 2e-7 * abs(self._value))
        proven = self._bound is not None and self._bound <= self._value + near
        return Solved(self._best, self._bound, self._optimal or proven, self._budget.cut_by_wall, sizes)
