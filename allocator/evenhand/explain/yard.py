"""What stands on the nodes that could hold a piece of a gang, in the order in which they are cleared (rule C1)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from evenhand.shapes import IntArray

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
