"""The gangs below each group of the tree, and the most of them that fit what it is owed (rules O1, O2)."""

from __future__ import annotations

import numpy as np

from evenhand.program.sites import parts_of
from evenhand.shapes import IntArray
from evenhand.snapshot import Snapshot
from evenhand.subset_sums import largest_sum_not_above

GRAIN = 16
"""Parts of a GPU in which shortfalls are counted."""


def in_grains(milli: IntArray) -> IntArray:
    """Thousandths of a GPU in whole grains, rounded down: gangs that fit an entitlement still do."""
    return milli * GRAIN // 1000


def in_grains_held(milli: IntArray) -> IntArray:
    """Thousandths of a GPU that gangs hold in whole grains, rounded up: rounding alone makes nobody short."""
    return -(-milli * GRAIN // 1000)


class GangsBelow:
    """Whole gangs of the budgeted live jobs below each group, in grains of a charged GPU; subtrees are slices."""

    def __init__(self, snapshot: Snapshot) -> None:
        s, tree = snapshot, snapshot.tree
        jobs = np.flatnonzero(s.budgeted)
        rate = s.demand_milli[jobs] // np.maximum(1, s.size[jobs])
        rigid = s.least[jobs] >= s.size[jobs]
        parts = [s.size[jobs[rigid]] * rate[rigid]]
        groups = [s.group[jobs[rigid]]]
        for j, charge in zip(jobs[~rigid].tolist(), rate[~rigid].tolist(), strict=True):
            mine = np.array(parts_of(s, j), dtype=np.int64) * charge
            parts.append(mine)
            groups.append(np.full(len(mine), s.group[j]))
        place = np.zeros(len(tree.ids), dtype=np.int64)  # of each group in an order that keeps subtrees together
        place[[g for _, g in sorted((path, g) for g, path in enumerate(tree.path))]] = np.arange(len(tree.ids))
        at = place[np.concatenate(groups)]
        order = np.argsort(at, kind="stable")
        self._grains = in_grains(np.concatenate(parts)[order])
        below = np.ones(len(tree.ids), dtype=np.int64)
        for c in tree.bottom_up:
            if tree.parent[c] >= 0:
                below[tree.parent[c]] += below[c]
        self._first = np.searchsorted(at[order], place)
        self._end = np.searchsorted(at[order], place + below)

    def within(self, group: int, gpus: float) -> float:
        """a_c: the largest sum of gangs below a group not above what it is owed, in charged GPUs."""
        return self.grains_within(group, gpus) / GRAIN

    def grains_within(self, group: int, gpus: float) -> int:
        """The same in grains; what it is owed in charged GPUs."""
        mine = self._grains[self._first[group] : self._end[group]]
        return largest_sum_not_above(mine, int(np.floor(gpus * GRAIN + 1e-6)))
