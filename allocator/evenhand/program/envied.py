"""Which pairs of leaves have envy rows (E1), and which should get them: only who envies most counts."""

from __future__ import annotations

import numpy as np

from evenhand.goals import FloatArray, excess, standing
from evenhand.outcome import Outcome
from evenhand.program.constraints import envy
from evenhand.program.memory import Memory
from evenhand.program.prices import WEIGHT_ENVY
from evenhand.program.variables import Program
from evenhand.shapes import IntArray

ENVY_TOLERANCE = 1e-6
ENVIERS = 2
"""Of each envied leaf so many get rows at a time: only the one that envies most counts."""
MUCH_ENVY = 1e-3
"""Envy that no row counts, as a share of target throughput, that is worth more rows."""


class EnvyRows:
    """The envy rows of a program, which grow as answers show who envies whom.

    Parameters
    ----------
    memory : of the round before; left out: nothing is known, and nothing is kept.
    """

    def __init__(self, program: Program, memory: Memory | None) -> None:
        self._program, self._memory = program, memory
        self._pairs: set[tuple[int, int]] = set()
        self._fresh: set[tuple[int, int]] = set()
        self._excess: dict[int, int] = {}

    @property
    def count(self) -> int:
        """Rows so far."""
        return len(self._pairs)

    def found_in(self, outcome: Outcome) -> bool:
        """Whether somebody envies without a row under an outcome."""
        self._fresh = set()
        if envy.applies(self._program):
            p, got = self._program, standing(self._program.snapshot, outcome)
            found = excess(p.snapshot, p.target, got.allocated, got.counted_throughput)
            self._fresh = _most_envious(found) - self._pairs
        return bool(self._fresh)

    def much_in(self, allocated: IntArray | FloatArray, work: FloatArray) -> bool:
        """Whether groups that hold this much (as in `excess`) are envied for much that no row counts."""
        self._fresh = set()
        if not envy.applies(self._program):
            return False
        p = self._program
        found = excess(p.snapshot, p.target, allocated, work)
        seen = np.zeros(found.shape)
        for i, k in self._pairs:
            seen[i, k] = found[i, k]
        uncounted = float((found.max(axis=0, initial=0.0) - seen.max(axis=0, initial=0.0)).sum())
        self._fresh = _most_envious(found) - self._pairs
        return bool(self._fresh) and WEIGHT_ENVY * uncounted > MUCH_ENVY * (1.0 + p.target.throughput)

    def recall(self) -> None:
        """Add the rows that the round before had."""
        if self._memory is not None:
            ids = self._program.snapshot.tree.ids
            place = {ids[g]: i for i, g in enumerate(self._program.target.leaves.tolist())}
            known = {(place[a], place[b]) for a, b in self._memory.envied if a in place and b in place}
            self._fresh = known - self._pairs
            self.add()

    def add(self) -> None:
        """Add the rows of the pairs that were found last."""
        self._pairs |= self._fresh
        envy.add_pairs(self._program, sorted(self._fresh), self._excess)
        self._fresh = set()
        if self._memory is not None:
            ids, leaves = self._program.snapshot.tree.ids, self._program.target.leaves.tolist()
            self._memory.envied = frozenset((ids[leaves[i]], ids[leaves[k]]) for i, k in self._pairs)


def _most_envious(found: FloatArray) -> set[tuple[int, int]]:
    """Pairs (envious, envied) with an excess: of each envied leaf those that envy it most."""
    worst = np.argsort(-found, axis=0, kind="stable")[:ENVIERS]
    return {(int(i), int(k)) for row in worst for k, i in enumerate(row.tolist()) if found[i, k] > ENVY_TOLERANCE}
