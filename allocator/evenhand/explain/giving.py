"""Which running work would give way to which waiting work, for many that ask at once (rules O5, R1, U1)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from evenhand.explain.aftermath import Aftermath
from evenhand.explain.ranks import Ranks
from evenhand.explain.yard import Staying, Yard
from evenhand.program.index import may_move
from evenhand.shapes import BoolArray, IntArray

_AT_ONCE = 1 << 20
"""So many pairs of who asks and what stands are looked at together."""


class Near:
    """What would give way on the nodes of a cut of a yard to each of A that ask; D of them differ.

    Attributes
    ----------
    keys : of each that asks, its rows in few bytes; number : which of the different ones it is.
    rows : which rows of the cut would give way, bool [D, r].
    place : of each node with rows its place in the yard, int [u]; starts : its first row, int [u + 1].
    free : GPUs free on it, int [u]; reach : GPUs free once it is cleared, 0 where nothing gives way, int [D, u].
    """

    def __init__(self, gives: BoolArray, yard: Yard, gpus: IntArray, cut: int) -> None:
        rows = yard.row[: yard.cuts[cut][1]]
        every = gives.take(rows, axis=1)
        bits = np.packbits(every, axis=1)
        whole, width = bits.tobytes(), bits.shape[1]
        self.keys = [whole[k * width : (k + 1) * width] for k in range(len(bits))]
        numbers: dict[bytes, int] = {}
        self.number = [numbers.setdefault(key, len(numbers)) for key in self.keys]
        eldest = np.zeros(len(numbers), dtype=np.int64)
        eldest[self.number[::-1]] = np.arange(len(every))[::-1]
        self.rows: BoolArray = every[eldest]
        self.place, first = np.unique(yard.at[: len(rows)], return_index=True)
        self.starts: IntArray = np.append(first, len(rows))
        self.free: IntArray = yard.free[self.place]
        freed = np.zeros((len(self.rows), 0), dtype=np.int64)
        if len(rows):
            freed = np.add.reduceat(self.rows * gpus[rows], first, axis=1)
        self.reach: IntArray = np.where(freed > 0, self.free + freed, 0)


class Gives:
    """Rows of `Staying` that would give way to each of A that ask, bool [A, S]."""

    def __init__(self, staying: Staying, rows: BoolArray, movable: BoolArray) -> None:
        self._staying, self._rows, self._movable = staying, rows, movable
        self._near: dict[tuple[Yard, int], Near] = {}

    @cached_property
    def wider(self) -> Gives:
        """The same with the rows of jobs that may move."""
        return Gives(self._staying, self._rows | self._movable, self._movable)

    def near(self, yard: Yard, cut: int) -> Near:
        """What of them stands on the nodes of a cut."""
        found = self._near.get((yard, cut))
        if found is None:
            found = self._near[yard, cut] = Near(self._rows, yard, self._staying.gpus, cut)
        return found


class Giving:
    """What gives way to jobs of a group and level, worked out for some groups together that ask one after the other."""

    def __init__(self, aftermath: Aftermath, ranks: Ranks, staying: Staying) -> None:
        s, job = aftermath.snapshot, staying.job
        self._ranks, self._staying = ranks, staying
        self._loose: BoolArray = ~s.budgeted[job]
        self._holder: IntArray = s.group[job]
        self._level: IntArray = s.level_rank[job]
        jobs, which = np.unique(job, return_inverse=True)
        moves = np.array([s.running[j] and may_move(s, j) for j in jobs.tolist()], dtype=bool)
        self._movable: BoolArray = moves.reshape(len(jobs))[which.reshape(-1)]
        self._to_loose = Gives(self._staying, self._loose[None, :], self._movable)
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
        first = np.array([self._ranks.view(g).first for g, _ in askers]).take(self._holder, axis=1)
        own = group == self._holder
        rows = ~(first | own) | (own & (self._level < level)) | self._loose
        return Gives(self._staying, rows, self._movable)
