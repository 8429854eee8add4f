"""Few jobs without which a gang would stand, among those that would give way to it (rules C1, G3)."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from evenhand.explain.gauge import gauge_of
from evenhand.explain.giving import Gives
from evenhand.explain.ground import Domain, Shape
from evenhand.explain.yard import Staying, Yard
from evenhand.shapes import BoolArray, IntArray

_NONE: tuple[int, ...] = ()


class Clearing:
    """Clears nodes of a yard for gangs of one shape; what is asked again for the same rows is remembered."""

    def __init__(self, staying: Staying, yard: Yard, unit: int, shape: Shape, domain: Domain) -> None:
        self._staying = staying
        self._yard = yard
        self._unit = unit
        self._alone = unit == shape.least
        self._gauge = gauge_of(yard.free, shape, domain)
        self._known: list[dict[bytes, tuple[int, ...]]] = [{} for _ in yard.cuts]

    def victims(self, gives: Gives, asker: int) -> tuple[int, ...]:
        """Jobs on as few nodes as will do, those that lose least first; none if no room can be made.

        Parameters
        ----------
        gives : which rows would give way to whom; asker : the row in it of who asks.
        """
        yard, found = self._yard, _NONE
        for cut, known in enumerate(self._known):
            rows, keys = gives.near(yard, cut)
            key = keys[asker]
            seen = known.get(key)
            found = known[key] = self._search(rows[asker], yard.cuts[cut][0]) if seen is None else seen
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
