"""Open nodes in classes that no job of the round can tell apart (rule C1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.shapes import Filter, IntArray
from evenhand.snapshot import Snapshot, seconds


@dataclass(frozen=True)
class Ask:
    """What makes two jobs see different nodes: their filter, and how long they must be able to stay.

    One without a contract stays 0 seconds for sure: it may be stopped when maintenance begins.
    """

    where: Filter
    stay_s: int


class Pools:
    """Pools of nodes, and which pools an ask may use.

    Attributes
    ----------
    of_node : pool of each node, -1 for nodes that take no work, int [nodes].
    nodes : node indices of each pool, ascending.
    """

    def __init__(self, snapshot: Snapshot, asks: list[Ask]) -> None:
        self._s = snapshot
        self._until = np.array(
            [np.inf if n.available_until_at is None else seconds(n.available_until_at) for n in snapshot.nodes]
        )
        self._takes = snapshot.opened & (snapshot.room > 0)
        self._eligible: dict[tuple[Ask, int], tuple[tuple[str | None, IntArray], ...]] = {}
        rows = [snapshot.node_type]
        for ask in sorted(set(asks), key=repr):
            for t in range(len(snapshot.types)):
                for _, nodes in self.eligible(ask, t):
                    member = np.zeros(len(snapshot.nodes), dtype=np.int64)
                    member[nodes] = 1
                    rows.append(member)
        taking = np.flatnonzero(self._takes)
        self.of_node: IntArray = np.full(len(snapshot.nodes), -1, dtype=np.int64)
        self.nodes: list[IntArray] = []
        if taking.size:
            _, first, which = np.unique(np.array(rows)[:, taking], axis=1, return_index=True, return_inverse=True)
            order = np.argsort(np.argsort(first))
            self.of_node[taking] = order[which.reshape(-1)]
            self.nodes = [np.flatnonzero(self.of_node == p) for p in range(len(first))]

    def among(self, nodes: IntArray) -> tuple[int, ...]:
        """The pools that some nodes are of, ascending."""
        return tuple(np.unique(self.of_node[nodes]).tolist())

    def eligible(self, ask: Ask, gpu_type: int) -> tuple[tuple[str | None, IntArray], ...]:
        """Open nodes the ask may use, by value of the shared label: pairs (value, node indices)."""
        key = (ask, gpu_type)
        if key not in self._eligible:
            fits = self._takes & (self._until >= self._s.now_s + ask.stay_s)
            found = []
            for value, nodes in self._s.sites.domains(ask.where, gpu_type):
                chosen = nodes[fits[nodes]]
                if chosen.size:
                    found.append((value, chosen))
            self._eligible[key] = tuple(found)
        return self._eligible[key]
