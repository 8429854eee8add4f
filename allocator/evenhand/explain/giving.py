"""Which running work would give way to which waiting work, for many that ask at once (rules O5, R1, U1)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from evenhand.explain.aftermath import Aftermath
from evenhand.explain.ranks import Ranks
from evenhand.explain.yard import Yard
from evenhand.program.index import may_move
from evenhand.shapes import BoolArray, IntArray

_AT_ONCE = 1 << 20
"""So many pairs of who asks and what stands are looked at together."""


class Gives:
    """Rows of `Staying` that would give way to each of A that ask, bool [A, S]."""

    def __init__(self, rows: BoolArray, movable: BoolArray) -> None:
        self._rows, self._movable = rows, movable
        self._near: dict[tuple[Yard, int], tuple[BoolArray, list[bytes]]] = {}

    @cached_property
    def wider(self) -> Gives:
        """The same with the rows of jobs that may move."""
        return Gives(self._rows | self._movable, self._movable)

    def near(self, yard: Yard, cut: int) -> tuple[BoolArray, list[bytes]]:
        """Which rows of a cut would give way, bool [A, r], and each row of these in few bytes."""
        found = self._near.get((yard, cut))
        if found is None:
            rows = self._rows[:, yard.row[: yard.cuts[cut][1]]]
            bits = np.packbits(rows, axis=1)
            whole, width = bits.tobytes(), bits.shape[1]
            found = self._near[yard, cut] = rows, [whole[k * width : (k + 1) * width] for k in range(len(bits))]
        return found


class Giving:
    """What gives way to jobs of a group and level, worked out for some groups together that ask one after the other.

    Parameters
    ----------
    job : of each row of `Staying`, int [S].
    """

    def __init__(self, aftermath: Aftermath, ranks: Ranks, job: IntArray) -> None:
        s = self._s = aftermath.snapshot
        self._ranks = ranks
        self._loose: BoolArray = ~s.budgeted[job]
        self._holder: IntArray = s.group[job]
        self._level: IntArray = s.level_rank[job]
        jobs, which = np.unique(job, return_inverse=True)
        moves = np.array([s.running[j] and may_move(s, j) for j in jobs.tolist()], dtype=bool)
        self._movable: BoolArray = moves.reshape(len(jobs))[which.reshape(-1)]
        self._to_loose = Gives(self._loose[None, :], self._movable)
        self._parts: list[list[tuple[int, int]]] = []
        self._place: dict[tuple[int, int], tuple[int, int]] = {}
        self._latest: tuple[int, Gives] | None = None

    def foresee(self, askers: Iterable[tuple[int, int]]) -> None:
        """Say which groups and levels of budgeted jobs will ask, in the order in which they will, by group."""
        most, group = max(1, _AT_ONCE // max(1, len(self._loose))), -1
        for asker in dict.fromkeys(askers):
            if not self._parts or (asker[0] != group and len(self._parts[-1]) >= most):
                self._parts.append([])
            group = asker[0]
            self._place[asker] = len(self._parts) - 1, len(self._parts[-1])
            self._parts[-1].append(asker)

    def to(self, group: int, budgeted: bool, level_rank: int) -> tuple[Gives, int]:
        """Rows whose jobs have no better claim than the waiting one, and its row in them."""
        if not budgeted:
            return self._to_loose, 0
        part, row = self._place[group, level_rank]
        if self._latest is None or self._latest[0] != part:
            self._latest = part, self._work_out(self._parts[part])
        return self._latest[1], row

    def _work_out(self, askers: list[tuple[int, int]]) -> Gives:
        group, level = np.array(askers, dtype=np.int64).T[:, :, None]
        last = ~np.array([self._ranks.view(g).first for g, _ in askers])[:, self._holder]
        own = group == self._holder
        return Gives(self._loose | np.where(own, self._level < level, last), self._movable)
