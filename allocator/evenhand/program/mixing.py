"""Plans of groups, mixed for a program that gets its envy rows meanwhile.

Whom a mix leaves envied is seen before bound and mix have met, so rows come in when they are roughly there, and once more
when they are.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evenhand.goals import FloatArray
from evenhand.outcome import Outcome
from evenhand.program.blocks import Blocks, blocks_of
from evenhand.program.budget import Budget
from evenhand.program.constraints import envy
from evenhand.program.decompose import CLOSE, Generation, Mixture
from evenhand.program.envied import EnvyRows
from evenhand.program.formulate import NodeCounts
from evenhand.program.memory import Memory
from evenhand.program.points import Points
from evenhand.program.variables import Program
from evenhand.shapes import IntArray

ROUGHLY = 0.1
"""How near bound and mix are brought before envy rows come in, as a share of target throughput."""
ENVY_ROUNDS = 2
"""How often a mix may bring envy rows."""
ENVY_CLOCK = 0.65
"""Share of what the clock leaves that must be left for envy rows to come in, a safeguard."""
AGAIN_CLOCK = 1.0
"""So many times what it took to take rows in must be left for more of them, which take less, a safeguard."""
GENERATION_CLOCK = 0.6
"""Share of what the clock leaves that plans may be generated for, a safeguard."""


class Mixing:
    """Plans generated so far, for a program that grows.

    Parameters
    ----------
    memory : of the round before, and for the next one; left out: nothing is known, and nothing is kept.
    """

    def __init__(self, program: Program, counted: NodeCounts, budget: Budget, memory: Memory | None) -> None:
        self._program, self._counted, self._budget = program, counted, budget
        self._memory = memory
        self._knows = memory is not None and memory.knows
        self.envy_rows = EnvyRows(program, memory)
        self.arrays = program.model.arrays()
        """The program as it is."""
        self.generation: Generation | None = None

    @property
    def points(self) -> Points:
        """Finds points of the program as it is."""
        return Points(self._program, self.arrays, self._budget)

    def bound_at_once(self) -> float | None:
        """A bound at the prices of the round before, or at none, whatever time is left; None where nobody decides anything."""
        blocks = blocks_of(self._program, self.arrays)
        if not blocks.count:
            return None
        nobody = np.zeros(self.arrays.shape[1], dtype=np.int64)
        generation = Generation(blocks, self.arrays, nobody, self._prices(blocks), 1.0)
        generation.run(0.0, lambda: False)
        return generation.bound

    def mixed(self, best: Outcome) -> tuple[Mixture | None, IntArray | None]:
        """Mix plans, with envy rows for whom mixes leave envied: the mix, and the best outcome as a point, None if it is none."""
        again = self.generation is not None
        if self._knows and not again:
            self.envy_rows.recall()
        there_s = self._budget.wall_s
        x = self._begin(best)
        if x is None or self.generation is None:
            return None, None
        self._generate(CLOSE if self._knows or again else ROUGHLY)
        least_s, grown = ENVY_CLOCK * there_s, False
        for _ in range(ENVY_ROUNDS):
            mix = self.generation.mixture()
            taken = x.astype(np.float64) if mix is None else mix.x
            if not self.envy_rows.much_in(*envy.held(self._program, taken)) or not self._budget.leaves(least_s):
                break
            there_s, grown = self._budget.wall_s, True
            self._take_in()
            self._generate()
            least_s = AGAIN_CLOCK * (there_s - self._budget.wall_s)
        if grown:
            x = self.point(best)
        else:
            self._generate()
        return self.generation.mixture(), x

    def widened(self, best: Outcome) -> IntArray | None:
        """Take in the envy rows that were found last; the best outcome as a point, None if it is none."""
        self._take_in()
        self._generate()
        return self.point(best)

    def point(self, best: Outcome) -> IntArray | None:
        """An outcome as a point of the program as it is, None if it is none."""
        return self.points.completed(best, self._counted)

    def forget(self) -> None:
        """Start anew."""
        self.generation = None

    def _begin(self, best: Outcome) -> IntArray | None:
        """Blocks and first plans of the program as it is; the best outcome as a point of it."""
        self.arrays = self._program.model.arrays()
        x = self.point(best)
        if x is None:
            self.forget()
            return None
        if self.generation is not None:
            self.generation.widen(self.arrays)
            return x
        blocks = blocks_of(self._program, self.arrays)
        scale = 1.0 + self._program.target.throughput
        self.generation = Generation(blocks, self.arrays, x, self._prices(blocks), scale)
        return x

    def _take_in(self) -> None:
        self.envy_rows.add()
        self.arrays = self._program.model.arrays()
        if self.generation is not None:
            self.generation.widen(self.arrays)

    def _generate(self, close: float = CLOSE) -> None:
        """Generate plans until bound and mix are this near, as a share of target throughput."""
        if self.generation is None:
            return
        self.generation.run(close, self._while_time())
        if self._memory is not None:
            shared = self.generation.shared.blocks.shared_row
            self._memory.keep(self._program.model, shared, self.generation.center)

    def _while_time(self) -> Callable[[], bool]:
        least_s = self._budget.wall_s * (1.0 - GENERATION_CLOCK)
        return lambda: self._budget.leaves(least_s)

    def _prices(self, blocks: Blocks) -> FloatArray:
        """Prices of rows to begin with, float [r]: those of the round before, else none."""
        if self._memory is not None and self._knows:
            return self._memory.recall(self._program.model, blocks.shared_row)
        return np.zeros(self._program.model.row_count)
