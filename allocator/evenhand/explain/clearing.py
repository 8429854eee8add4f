"""Few jobs without which a gang would stand, among those that would give way to it (rules C1, G3)."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from evenhand.explain.gauge import gauge_of
from evenhand.explain.ground import Domain, Ground
from evenhand.shapes import BoolArray, IntArray

_FIRST_ROWS = 128
_FURTHER = 8
"""So many rows are looked at first, and then so many times as many: most gangs find room at once."""


@dataclass(frozen=True, eq=False)
class Staying:
    """GPUs of one job on one node each that are past protection; S rows.

    Attributes
    ----------
    job, node, gpus : int [S].
    loss : of each job of the state the work that its stop would lose, GPU-seconds.
    """

    job: IntArray
    node: IntArray
    gpus: IntArray
    loss: list[float]

    def by_loss(self, jobs: Iterable[int]) -> list[int]:
        """Jobs by the work that a stop would lose, then id."""
        loss = self.loss
        return sorted(jobs, key=lambda j: (loss[j], j))


class Yard:
    """Nodes of one domain that could hold a piece of a gang, in the order in which they are cleared: most free first.

    Attributes
    ----------
    free : GPUs free on each, int [q].
    row, at : rows of `Staying` by node in this order, and the place of their node, int [r].
    cuts : pairs (nodes, rows) that are looked at together, each more than the one before, the last all.
    """

    def __init__(self, staying: Staying, nodes: IntArray, free: IntArray) -> None:
        order = np.lexsort((nodes, -free[nodes]))
        nodes = nodes[order]
        self.free: IntArray = free[nodes]
        place = np.full(len(free), -1, dtype=np.int64)
        place[nodes] = np.arange(len(nodes))
        at = place[staying.node]
        rows = np.flatnonzero(at >= 0)
        self.row: IntArray = rows[np.argsort(at[rows], kind="stable")]
        self.at: IntArray = at[self.row]
        self.cuts: list[tuple[int, int]] = []
        ends, most = np.searchsorted(self.at, np.arange(len(nodes)), side="right"), _FIRST_ROWS
        while not self.cuts or self.cuts[-1][0] < len(nodes):
            count = max(1, int(np.searchsorted(ends, most, side="right")))
            self.cuts.append((count, int(ends[count - 1])) if len(nodes) else (0, 0))
            most *= _FURTHER
            if not len(nodes):
                break
        self._asked: deque[tuple[BoolArray, list[tuple[BoolArray, bytes]]]] = deque(maxlen=2)

    def giving(self, gives: BoolArray, cut: int) -> tuple[BoolArray, bytes]:
        """Which rows of a cut would give way, and the same in few bytes; gangs of many shapes ask with the same array.

        Parameters
        ----------
        gives : which rows of `Staying` would give way, bool [S]; it is not changed once it was given.
        """
        giving = next((found for asked, found in self._asked if asked is gives), None)
        if giving is None:
            giving = []
            self._asked.append((gives, giving))
        for _, rows in self.cuts[len(giving) : cut + 1]:
            found = gives[self.row[:rows]]
            giving.append((found, np.packbits(found).tobytes() + rows.to_bytes(8)))
        return giving[cut]


class Clearing:
    """Clears nodes of a yard for gangs of one shape; what is asked again for the same rows is remembered."""

    def __init__(self, staying: Staying, yard: Yard, ground: Ground, domain: Domain) -> None:
        self._staying = staying
        self._yard = yard
        self._unit = ground.unit
        self._alone = ground.unit == ground.shape.least
        self._gauge = gauge_of(yard.free, ground.shape, domain)
        self._known: dict[bytes, tuple[int, ...]] = {}

    def victims(self, gives: BoolArray) -> tuple[int, ...]:
        """Jobs on as few nodes as will do, those that lose least first; none if no room can be made.

        Parameters
        ----------
        gives : which rows would give way, bool [S].
        """
        found: tuple[int, ...] = ()
        for cut, (nodes, _) in enumerate(self._yard.cuts):
            giving, key = self._yard.giving(gives, cut)
            known = self._known.get(key)
            found = self._known[key] = self._search(giving, nodes) if known is None else known
            if found:
                break
        return found

    def _search(self, giving: BoolArray, nodes: int) -> tuple[int, ...]:
        yard, given = self._yard, np.flatnonzero(giving)
        at, gpus = yard.at[given], self._staying.gpus[yard.row[given]]
        free = yard.free[:nodes]
        freed = np.bincount(at, gpus, nodes).astype(np.int64)
        useful = np.flatnonzero((freed > 0) & (free + freed >= self._unit))
        if not useful.size:
            return ()
        if self._alone:
            on = yard.row[given[at == useful[0]]]
            return self._on_one(on, int(self._unit - free[useful[0]]))
        gauge = self._gauge.copy()
        for count, (before, more) in enumerate(
            zip(free[useful].tolist(), freed[useful].tolist(), strict=True), start=1
        ):
            if gauge.risen(before, before + more):
                return self._on_some(set(useful[:count].tolist()), at, yard.row[given])
        return ()

    def _on_one(self, rows: IntArray, missing: int) -> tuple[int, ...]:
        """Jobs on one node that together hold what is missing there."""
        on: dict[int, int] = {}
        for j, held in zip(self._staying.job[rows].tolist(), self._staying.gpus[rows].tolist(), strict=True):
            on[j] = on.get(j, 0) + held
        found = []
        for j in self._staying.by_loss(on):
            if missing > 0:
                found.append(j)
                missing -= on[j]
        return tuple(found)

    def _on_some(self, nodes: set[int], at: IntArray, rows: IntArray) -> tuple[int, ...]:
        """The fewest of the jobs on some nodes of the yard, those that lose least first."""
        near = np.flatnonzero(at <= max(nodes))
        rows, parts = rows[near], defaultdict(list)
        held = zip(self._staying.job[rows].tolist(), at[near].tolist(), self._staying.gpus[rows].tolist(), strict=True)
        for j, node, gpus in held:
            if node in nodes:
                parts[j].append((node, gpus))
        gauge, free, found = self._gauge.copy(), self._yard.free[: max(nodes) + 1].tolist(), []
        for j in self._staying.by_loss(parts):
            found.append(j)
            enough = False
            for node, gpus in parts[j]:
                enough = gauge.risen(free[node], free[node] + gpus)
                free[node] += gpus
            if enough:
                break
        return tuple(found)
