"""Whether a gang stands, while nodes gain free GPUs one after the other (rules C1, G3)."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Protocol, Self

from evenhand.explain.ground import Domain, Shape
from evenhand.shapes import IntArray


class Gauge(Protocol):
    """Follows what is free on the nodes of one domain."""

    def copy(self) -> Self:
        """The same, to go on from here."""

    def risen(self, before: int, after: int) -> bool:
        """Let one node have more GPUs free than before; say whether the gang stands now."""


class Pieces:
    """Of gangs in workers, or of so many GPUs a node: pieces that stand."""

    def __init__(self, piece: int, *, many: bool, missing: int) -> None:
        """Prepare.

        Parameters
        ----------
        piece : GPUs of one; many : whether a node may hold more than one; missing : pieces that do not stand yet.
        """
        self._piece, self._many, self._missing = piece, many, missing

    def copy(self) -> Pieces:
        """The same, to go on from here."""
        return Pieces(self._piece, many=self._many, missing=self._missing)

    def risen(self, before: int, after: int) -> bool:
        """Let one node have more GPUs free than before; say whether the gang stands now."""
        if self._many:
            self._missing -= after // self._piece - before // self._piece
        elif before < self._piece <= after:
            self._missing -= 1
        return self._missing <= 0


class Largest:
    """Of other gangs, which stand on so many nodes: what is free on the nodes that have most."""

    def __init__(self, needs: tuple[tuple[int, int], ...], free: list[int]) -> None:
        """Prepare.

        Parameters
        ----------
        needs : sizes it may have, and nodes each must use.
        free : GPUs free on the nodes that have most, ascending, as many as the largest number of nodes.
        """
        self._needs, self._free = needs, free
        self._sum = sum(free)

    def copy(self) -> Largest:
        """The same, to go on from here."""
        return Largest(self._needs, self._free.copy())

    def risen(self, before: int, after: int) -> bool:
        """Let one node have more GPUs free than before; say whether the gang stands now."""
        free = self._free
        if after > free[0]:
            at = bisect_left(free, before) if before > free[0] else 0
            self._sum += after - free[at]
            del free[at]
            insort(free, after)
        if len(self._needs) == 1:
            return self._sum >= self._needs[0][0]
        return any(sum(free[-k:]) >= size for size, k in self._needs)


def gauge_of(free: IntArray, shape: Shape, domain: Domain) -> Gauge:
    """Start from what is free on the nodes that could hold a piece, most free first; nothing stands yet."""
    piece = shape.worker or shape.per_node
    if piece is not None:
        many = shape.worker is not None
        whole = int((free // piece).sum()) if many else int((free >= piece).sum())
        return Pieces(piece, many=many, missing=-(-shape.least // piece) - whole)
    needs = tuple((size, k) for size, k in domain.needs if k <= domain.nodes.size)
    most = max((k for _, k in needs), default=1)
    largest = free[:most].tolist()
    return Largest(needs, [0] * (most - len(largest)) + largest[::-1])
