"""Few jobs without which a gang would stand, among those that would give way to it (rules C1, G3)."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from evenhand.explain.gauge import gauge_of
from evenhand.explain.giving import Gives, Near
from evenhand.explain.ground import Domain, Shape
from evenhand.explain.yard import Staying, Yard

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
        found = _NONE
        for cut, known in enumerate(self._known):
            near = gives.near(self._yard, cut)
            key = near.keys[asker]
            seen = known.get(key)
            found = known[key] = self._search(near, near.number[asker]) if seen is None else seen
            if found:
                break
        return found

    def _search(self, near: Near, which: int) -> tuple[int, ...]:
        reach = near.reach[which]
        useful = np.flatnonzero(reach >= self._unit)  # what holds no job that gives way reaches 0
        if not useful.size:
            return ()
        if self._alone:
            node = int(useful[0])
            return self._on_one(self._given(near, which, node), self._unit - int(near.free[node]))
        gauge = self._gauge.copy()
        for count, (before, after) in enumerate(
            zip(near.free[useful].tolist(), reach[useful].tolist(), strict=True), start=1
        ):
            if gauge.risen(before, after):
                return self._on_some([(node, self._given(near, which, node)) for node in useful[:count].tolist()], near)
        return ()

    def _given(self, near: Near, which: int, node: int) -> list[tuple[int, int]]:
        """Jobs on a node that would give way, and the GPUs that they hold there, row by row."""
        start, end = near.starts[node : node + 2].tolist()
        rows = self._yard.row[start:end][near.rows[which, start:end]]
        return list(zip(self._staying.job[rows].tolist(), self._staying.gpus[rows].tolist(), strict=True))

    def _on_one(self, held: list[tuple[int, int]], missing: int) -> tuple[int, ...]:
        """Jobs on one node that together hold what is missing there."""
        on: dict[int, int] = {}
        for j, gpus in held:
            on[j] = on.get(j, 0) + gpus
        found = []
        for j in self._staying.by_loss(on):
            if missing > 0:
                found.append(j)
                missing -= on[j]
        return tuple(found)

    def _on_some(self, held: list[tuple[int, list[tuple[int, int]]]], near: Near) -> tuple[int, ...]:
        """The fewest of the jobs on some nodes with rows, those that lose least first."""
        parts: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for node, on in held:
            for j, gpus in on:
                parts[j].append((node, gpus))
        gauge, free, found = self._gauge.copy(), near.free.tolist(), []
        for j in self._staying.by_loss(parts):
            found.append(j)
            enough = False
            for node, gpus in parts[j]:
                enough = gauge.risen(free[node], free[node] + gpus)
                free[node] += gpus
            if enough:
                break
        return tuple(found)
