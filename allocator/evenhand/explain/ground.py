"""What a waiting gang asks for, and whether free GPUs would hold it (rules C1, G3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.explain.words import gpus
from evenhand.program.index import Index
from evenhand.program.pools import Ask
from evenhand.shapes import BoolArray, IntArray
from evenhand.snapshot import Snapshot


@dataclass(frozen=True)
class Shape:
    """All that decides where a waiting job could stand; jobs of one shape share their physical causes.

    `types` are those it fits, `sizes` those it may have, ascending; `worker` and `per_node` as the job says.
    """

    ask: Ask
    types: tuple[int, ...]
    sizes: tuple[int, ...]
    worker: int | None
    per_node: int | None

    @property
    def least(self) -> int:
        """The fewest GPUs it starts with."""
        return self.sizes[0]

    @property
    def wanted(self) -> str:
        """Return `8 GPUs`, `4 to 8 GPUs`."""
        return f"{self.least} to {gpus(self.sizes[-1])}" if len(self.sizes) > 1 else gpus(self.least)


@dataclass(frozen=True)
class Domain:
    """Nodes of one type that may stand for a gang together, any status.

    `needs` pairs sizes with the nodes each must use; empty for gangs in workers or of so many a node.
    """

    gpu_type: int
    value: str | None
    nodes: IntArray
    needs: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Stand:
    """A domain that holds a gang, at the smallest size that stands there."""

    domain: Domain
    size: int


@dataclass(frozen=True)
class Missing:
    """GPUs that would have to come free for the least size, and on which nodes."""

    gpus: int
    gpu_type: int
    nodes: tuple[int, ...]


class Ground:
    """Where a shape could stand.

    Attributes
    ----------
    domains : by type in order, then shared value.
    eligible : open nodes it could start on, bool [n]; usable : those that could ever hold a piece of it.
    unit : GPUs that must stand on one node together.
    """

    def __init__(self, snapshot: Snapshot, index: Index, shape: Shape) -> None:
        self._s = snapshot
        self._index = index
        self.shape = shape
        self.domains = self._domains(shape.types)
        self.eligible: BoolArray = np.zeros(len(snapshot.nodes), dtype=bool)
        for t in shape.types:
            for _, nodes in index.pools.eligible(shape.ask, t):
                self.eligible[nodes] = True
        whole = [k for d in self.domains for size, k in d.needs if size == shape.least]
        alone = shape.least if whole and max(whole) == 1 else 1
        self.unit = shape.worker or shape.per_node or alone
        self.usable: BoolArray = self.eligible & (snapshot.room >= self.unit)

    def _domains(self, types: tuple[int, ...]) -> tuple[Domain, ...]:
        s, shape = self._s, self.shape
        found = []
        for t in types:
            needs: tuple[tuple[int, int], ...] = ()
            if shape.worker is None and shape.per_node is None:
                counts = ((size, s.sites.nodes_needed(shape.ask.where, t, size)) for size in shape.sizes)
                needs = tuple((size, k) for size, k in counts if k is not None)
            found += [Domain(t, value, nodes, needs) for value, nodes in s.sites.domains(shape.ask.where, t)]
        return tuple(found)

    def other_types(self) -> tuple[tuple[Domain, IntArray], ...]:
        """Domains of types it does not run on, and the open nodes in each."""
        others = tuple(t for t in range(len(self._s.types)) if t not in self.shape.types)
        found = []
        for d in self._domains(others):
            open_to = dict(self._index.pools.eligible(self.shape.ask, d.gpu_type)).get(d.value)
            if open_to is not None:
                found.append((d, open_to))
        return tuple(found)

    def masked(self, available: IntArray) -> IntArray:
        """GPUs available on nodes it could start on, 0 elsewhere, int [n]."""
        return np.where(self.eligible, available, 0)

    def stands(self, available: IntArray) -> Stand | None:
        """The first domain in which GPUs available by node, int [n], hold the gang."""
        for domain in self.domains:
            size = self.size_in(domain, available)
            if size is not None:
                return Stand(domain, size)
        return None

    def size_in(self, domain: Domain, available: IntArray) -> int | None:
        """The smallest size that stands in a domain."""
        left, shape = available[domain.nodes], self.shape
        if shape.worker is not None:
            return shape.least if int((left // shape.worker).sum()) * shape.worker >= shape.least else None
        if shape.per_node is not None:
            return shape.least if int((left >= shape.per_node).sum()) * shape.per_node >= shape.least else None
        if len(domain.needs) == 1 and domain.needs[0][1] == 1:
            size = domain.needs[0][0]
            return size if left.size and int(left.max()) >= size else None
        reach = np.cumsum(-np.sort(-left))
        return next((size for size, k in domain.needs if k <= reach.size and reach[k - 1] >= size), None)

    def missing(self, available: IntArray) -> Missing | None:
        """The fewest GPUs that would have to come free on nodes it could use for its least size."""
        found = [m for d in self.domains if (m := self._missing_in(d, available)) is not None]
        return min(found, key=lambda m: (m.gpus, m.gpu_type, m.nodes), default=None)

    def _missing_in(self, domain: Domain, available: IntArray) -> Missing | None:
        nodes = domain.nodes[self.usable[domain.nodes]]
        left, room, shape = available[nodes], self._s.room[nodes], self.shape
        if shape.worker is not None:
            return self._missing_workers(domain, nodes, left, shape.worker)
        if shape.per_node is not None:
            need = shape.least // shape.per_node
            cost = np.maximum(shape.per_node - left, 0)
            chosen = np.argsort(cost, kind="stable")[:need]
            if chosen.size < need:
                return None
            return self._chosen(domain, nodes, chosen[cost[chosen] > 0], int(cost[chosen].sum()))
        need = dict(domain.needs).get(shape.least, 0)
        if not need or nodes.size < need:
            return None
        chosen = np.lexsort((nodes, -left))[:need]
        if int(room[chosen].sum()) < shape.least:
            chosen = np.lexsort((nodes, -left, -room))[:need]
            if int(room[chosen].sum()) < shape.least:
                return None
        extra = max(0, shape.least - int(left[chosen].sum()))
        return self._chosen(domain, nodes, chosen[left[chosen] < room[chosen]], extra)

    def _missing_workers(self, domain: Domain, nodes: IntArray, left: IntArray, worker: int) -> Missing | None:
        """Workers are completed where they lack least, then set on what else a node holds."""
        whole, most = left // worker, self._s.room[nodes] // worker
        need = self.shape.least // worker - int(whole.sum())
        growing = np.flatnonzero(most > whole)
        order = growing[np.argsort((worker - left % worker)[growing], kind="stable")][:need]
        rest = need - order.size
        if rest > int((most - whole - 1)[order].sum()):
            return None
        extra = int((worker - left % worker)[order].sum()) + rest * worker
        return self._chosen(domain, nodes, order, extra)

    def _chosen(self, domain: Domain, nodes: IntArray, chosen: IntArray, extra: int) -> Missing | None:
        return Missing(extra, domain.gpu_type, tuple(sorted(int(n) for n in nodes[chosen]))) if extra else None
