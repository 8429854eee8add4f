"""Few jobs without which a gang would stand, among those that would give way to it (rules C1, G3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

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


class Clearing:
    """Clears nodes of a yard for gangs of one shape; what is asked again for the same rows is remembered."""

    def __init__(self, staying: Staying, yard: Yard, ground: Ground, domain: Domain) -> None:
        self._staying = staying
        self._yard = yard
        self._unit = ground.unit
        self._alone = ground.unit == ground.shape.least
        self._enough = _measure(yard, ground, domain)
        self._known: dict[bytes, tuple[int, ...]] = {}

    def victims(self, gives: BoolArray) -> tuple[int, ...]:
        """Jobs on as few nodes as will do, those that lose least first; none if no room can be made.

        Parameters
        ----------
        gives : which rows would give way, bool [S].
        """
        found: tuple[int, ...] = ()
        for nodes, rows in self._yard.cuts:
            giving = gives[self._yard.row[:rows]]
            key = np.packbits(giving).tobytes() + rows.to_bytes(8)
            known = self._known.get(key)
            found = self._known[key] = self._search(giving, nodes) if known is None else known
            if found:
                break
        return found

    def _search(self, giving: BoolArray, nodes: int) -> tuple[int, ...]:
        yard, given = self._yard, np.flatnonzero(giving)
        at, gpus = yard.at[given], self._staying.gpus[yard.row[given]]
        freed = np.bincount(at, gpus, nodes).astype(np.int64)
        after = yard.free[:nodes] + freed
        useful = np.flatnonzero((freed > 0) & (after >= self._unit))
        if not useful.size:
            return ()
        if self._alone:
            on = given[at == useful[0]]
            return self._on_one(yard.row[on], int(self._unit - yard.free[useful[0]]))
        count = _fewest(useful.size, lambda k: self._enough(useful[:k], after[useful[:k]]))
        if count is None:
            return ()
        return self._on_some(useful[:count], yard.row[given], at)

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

    def _on_some(self, nodes: IntArray, rows: IntArray, at: IntArray) -> tuple[int, ...]:
        """The fewest of the jobs on some nodes of the yard, those that lose least first."""
        place = np.full(int(nodes[-1]) + 1, -1, dtype=np.int64)
        place[nodes] = np.arange(len(nodes))
        near = np.flatnonzero(at < len(place))
        near = near[place[at[near]] >= 0]
        rows, where = rows[near], place[at[near]]
        holders, which = np.unique(self._staying.job[rows], return_inverse=True)
        jobs = self._staying.by_loss(holders.tolist())
        rank = np.empty(len(jobs), dtype=np.int64)
        rank[np.searchsorted(holders, jobs)] = np.arange(len(jobs))
        rank, gpus, free = rank[which.reshape(-1)], self._staying.gpus[rows], self._yard.free[nodes]

        def enough(k: int) -> bool:
            stop = rank < k
            return self._enough(nodes, free + np.bincount(where[stop], gpus[stop], len(nodes)).astype(np.int64))

        return tuple(jobs[: _fewest(len(jobs), enough)])


def _measure(yard: Yard, ground: Ground, domain: Domain) -> Callable[[IntArray, IntArray], bool]:
    """Whether a gang stands in a domain once some nodes of the yard have so many GPUs free."""
    free, shape = yard.free, ground.shape
    if shape.worker is not None or shape.per_node is not None:
        worker = shape.worker or shape.per_node or 1

        def pieces(available: IntArray) -> IntArray:
            return available // worker if shape.worker is not None else (available >= worker).astype(np.int64)

        missing = -(-shape.least // worker) - int(pieces(free).sum())
        return lambda nodes, after: int((pieces(after) - pieces(free[nodes])).sum()) >= missing
    needs = [(size, k) for size, k in domain.needs if k <= domain.nodes.size]
    sizes, counts = np.array(needs, dtype=np.int64).reshape(len(needs), 2).T
    most = int(counts.max(initial=0))

    def enough(nodes: IntArray, after: IntArray) -> bool:
        others = np.ones(min(len(free), most + len(nodes)), dtype=bool)
        others[nodes[nodes < len(others)]] = False
        left = np.concatenate((after, free[: len(others)][others][:most]))
        reach = np.cumsum(-np.sort(-left)[:most])
        return bool((reach[np.minimum(counts, len(reach)) - 1] >= sizes).any())

    return enough


def _fewest(most: int, enough: Callable[[int], bool]) -> int | None:
    """Return the least k from 1 to `most` with enough(k), given that it stays true from then on; None if there is none."""
    low, high = 1, 1
    while not enough(high):
        if high == most:
            return None
        low, high = high + 1, min(most, 2 * high)
    while low < high:
        middle = (low + high) // 2
        if enough(middle):
            high = middle
        else:
            low = middle + 1
    return low
