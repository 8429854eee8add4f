"""Nodes on shelves by what is free on them: the fullest that holds a gang is found without looking at all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush

FEW = 16
"""So many nodes are looked through one by one."""


class Floor:
    """GPUs left on every node while a plan is laid out.

    free : room less everything kept or already arrived; at_once : what is free before anybody has left.
    """

    def __init__(self, free: list[int], at_once: list[int]) -> None:
        self.free = free
        self.at_once = at_once
        self._watched: dict[int, list[Shelves]] = {}

    def take(self, node: int, gpus: int) -> None:
        """Give GPUs of a node away (or, below 0, back)."""
        self.free[node] -= gpus
        self.at_once[node] -= gpus
        for shelves in self._watched.get(node, ()):
            shelves.put(node)

    def shelves(self, nodes: Sequence[int]) -> Shelves:
        """Some nodes on shelves, kept in step with what is taken."""
        found = Shelves(self, nodes)
        if len(nodes) > FEW:
            for n in nodes:
                self._watched.setdefault(n, []).append(found)
        return found


class Shelves:
    """Some nodes, ascending, in heaps by (free, free at once); entries that are out of date are dropped when met."""

    def __init__(self, floor: Floor, nodes: Sequence[int]) -> None:
        self._free, self._at_once = floor.free, floor.at_once
        self._nodes = nodes
        self._heaps: dict[tuple[int, int], list[int]] = {}
        for n in nodes if len(nodes) > FEW else ():
            if self._free[n] > 0:
                self._heaps.setdefault((self._free[n], self._at_once[n]), []).append(n)
        for heap in self._heaps.values():
            heapify(heap)

    def put(self, node: int) -> None:
        """Put a node where it now belongs."""
        if self._free[node] > 0:
            heappush(self._heaps.setdefault((self._free[node], self._at_once[node]), []), node)

    def best_fit(self, gpus: int) -> int | None:
        """The fullest node that holds them: free at once before freed by leavers, then by index."""
        best: tuple[bool, int, int] | None = None
        if len(self._nodes) <= FEW:
            for n in self._nodes:
                left = self._free[n] - gpus
                if left >= 0:
                    key = (self._at_once[n] < gpus, left, n)
                    if best is None or key < best:
                        best = key
            return None if best is None else best[2]
        for (free, at_once), heap in list(self._heaps.items()):
            rank = (at_once < gpus, free - gpus)
            if free >= gpus and (best is None or rank <= best[:2]):
                top = self._top(free, at_once, heap)
                if top is not None and (best is None or (*rank, top) < best):
                    best = (*rank, top)
        return None if best is None else best[2]

    def _top(self, free: int, at_once: int, heap: list[int]) -> int | None:
        """The first node that still belongs to a heap; an empty heap is taken away."""
        while heap and (self._free[heap[0]] != free or self._at_once[heap[0]] != at_once):
            heappop(heap)
        if not heap:
            del self._heaps[free, at_once]
            return None
        return heap[0]

    def first(self, count: int, rank: Callable[[int, int], tuple[int, ...] | None]) -> list[int]:
        """The first nodes by rank of (free, free at once), then index; those of rank None left out."""
        ranked = [
            (r, n) for n in self._candidates(count, rank) if (r := rank(self._free[n], self._at_once[n])) is not None
        ]
        return [n for _, n in sorted(ranked)[:count]]

    def _candidates(self, count: int, rank: Callable[[int, int], tuple[int, ...] | None]) -> list[int]:
        """Nodes among which the first are: of each heap no more than are asked for, of the best heaps that have enough."""
        if len(self._nodes) <= FEW:
            return [n for n in self._nodes if self._free[n] > 0]
        found: list[int] = []
        by_rank: dict[tuple[int, ...], list[tuple[int, int]]] = {}
        for key in self._heaps:
            r = rank(*key)
            if r is not None:
                by_rank.setdefault(r, []).append(key)
        for r in sorted(by_rank):
            for key in by_rank[r]:
                found += self._smallest(count, *key)
            if len(found) >= count:
                break
        return found

    def _smallest(self, count: int, free: int, at_once: int) -> list[int]:
        """The first nodes of one heap, which stay in it."""
        heap = self._heaps[free, at_once]
        found: list[int] = []
        while heap and len(found) < count:
            n = heappop(heap)
            if self._free[n] == free and self._at_once[n] == at_once and (not found or found[-1] != n):
                found.append(n)
        for n in found:
            heappush(heap, n)
        return found
