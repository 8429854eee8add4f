"""Nodes and the GPUs free on them, kept so that the fullest node that fits is found without looking at all (rule O9).

Nodes are bits of whole numbers: for every type and every count of free GPUs one number says which nodes have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from evenhand.outcome import Places
from evenhand.replay.facts import Shape
from evenhand.shapes import Filter, Sites
from evenhand_models import Node, NodeStatus

ANYWHERE = Filter((), None)
EVERY_NODE = -1
"""A mask that leaves out no node."""


class Ground:
    """The nodes of a moment; int masks have one bit for each node in the order of names.

    Attributes
    ----------
    room : GPUs our jobs may hold, 0 on nodes that are down or past their time (rule S3); free : of them not held.
    opened : takes new work; keeping : keeps what it has; until_s : start of its maintenance, None if none is planned.
    """

    def __init__(
        self, nodes: Sequence[Node], types: tuple[str, ...], until_s: Sequence[int | None], now_s: int
    ) -> None:
        type_at = {name: i for i, name in enumerate(types)}
        self.nodes = tuple(nodes)
        self.names = [n.name for n in nodes]
        self.index = {name: i for i, name in enumerate(self.names)}
        self.node_type = [type_at[n.gpu_type] for n in nodes]
        self.until_s = list(until_s)
        served = [u is None or u > now_s for u in until_s]
        self.opened = [ok and n.status is NodeStatus.UP for ok, n in zip(served, nodes, strict=True)]
        self.keeping = [ok and n.status is not NodeStatus.DOWN for ok, n in zip(served, nodes, strict=True)]
        self.room = [max(0, n.usable_gpus) if k else 0 for n, k in zip(nodes, self.keeping, strict=True)]
        self.free = list(self.room)
        self.limited = any(u is not None for u in until_s)
        most = max(self.room, default=0)
        self._at = [[0] * (most + 1) for _ in types]
        for n, gpus in enumerate(self.free):
            if self.opened[n]:
                self._at[self.node_type[n]][gpus] |= 1 << n
        self.capacity = [
            sum(self.room[n] for n in range(len(nodes)) if self.opened[n] and self.node_type[n] == t)
            for t in range(len(types))
        ]
        self.idle = list(self.capacity)
        """Free GPUs by type on nodes that take new work."""

    def trial(self) -> Ground:
        """A copy to try things on; it shares what never changes."""
        made = copy(self)
        made.free, made.idle = list(self.free), list(self.idle)
        made._at = [list(row) for row in self._at]
        return made

    def hold(self, places: Places) -> None:
        """Give GPUs away."""
        self._change(places, -1)

    def give_back(self, places: Places) -> None:
        """Take GPUs back."""
        self._change(places, 1)

    def _change(self, places: Places, sign: int) -> None:
        for n, gpus in places:
            before = self.free[n]
            after = self.free[n] = before + sign * gpus
            if self.opened[n]:
                row, bit = self._at[self.node_type[n]], 1 << n
                if before >= 0:
                    row[before] ^= bit
                if after >= 0:
                    row[after] |= bit
                self.idle[self.node_type[n]] += after - before

    def available(self, stay_s: int, now_s: int) -> int:
        """Mask of the nodes on which a contract of that length ends before maintenance begins (rule C1)."""
        if not self.limited:
            return EVERY_NODE
        mask = 0
        for n, until in enumerate(self.until_s):
            if until is None or until >= now_s + stay_s:
                mask |= 1 << n
        return mask

    def place(self, shape: Shape, gpu_type: int, sites: Sites, mask: int = EVERY_NODE) -> Places | None:
        """Where a gang can stand now on a type (rule G3), fullest nodes first; None if it cannot."""
        if self.idle[gpu_type] < shape.gpus:
            return None
        row = self._at[gpu_type]
        if shape.worker_gpus is not None:
            return self._workers(row, shape.gpus, shape.worker_gpus, mask)
        if shape.gpus_per_node is not None:
            return self._distinct(row, shape.gpus, shape.gpus_per_node, mask)
        need = sites.nodes_needed(ANYWHERE, gpu_type, shape.gpus)
        if need is None:
            return None
        if need == 1:
            return self._one(row, shape.gpus, mask)
        return self._fewest(row, shape.gpus, need, mask)

    def _one(self, row: list[int], gpus: int, mask: int) -> Places | None:
        for free in range(gpus, len(row)):
            bits = row[free] & mask
            if bits:
                return (((bits & -bits).bit_length() - 1, gpus),)
        return None

    def _fewest(self, row: list[int], gpus: int, need: int, mask: int) -> Places | None:
        chosen: list[tuple[int, int]] = []
        total = 0
        for free in range(len(row) - 1, 0, -1):
            bits = row[free] & mask
            while bits and len(chosen) < need:
                low = bits & -bits
                chosen.append((low.bit_length() - 1, free))
                total += free
                bits ^= low
        if len(chosen) < need or total < gpus:
            return None
        parts, left = [], gpus
        for i, (n, free) in enumerate(chosen):
            part = min(free, left - (need - 1 - i))
            parts.append((n, part))
            left -= part
        return tuple(sorted(parts))

    def _distinct(self, row: list[int], gpus: int, each: int, mask: int) -> Places | None:
        need = gpus // each
        chosen: list[tuple[int, int]] = []
        for free in range(each, len(row)):
            bits = row[free] & mask
            while bits and len(chosen) < need:
                low = bits & -bits
                chosen.append((low.bit_length() - 1, each))
                bits ^= low
        return tuple(sorted(chosen)) if len(chosen) == need else None

    def _workers(self, row: list[int], gpus: int, worker: int, mask: int) -> Places | None:
        left = gpus // worker
        chosen: list[tuple[int, int]] = []
        for free in range(worker, len(row)):
            bits = row[free] & mask
            while bits and left:
                low = bits & -bits
                here = min(left, free // worker)
                chosen.append((low.bit_length() - 1, here * worker))
                left -= here
                bits ^= low
        return tuple(sorted(chosen)) if not left else None
