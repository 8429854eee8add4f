"""Who comes before whom: siblings at the first level where two groups part (rules D4, D5)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np

from evenhand.entitlement import Entitlement, rank_key
from evenhand.explain.aftermath import Aftermath, FloatArray
from evenhand.explain.words import number
from evenhand.shapes import BoolArray, IntArray

SLACK = 1e-6
"""Charged GPUs that count as none."""
MOST_RIVALS = 3
"""So many groups are described with their numbers; the others are counted."""
_AT_ONCE = 1 << 16
"""So many pairs of groups are compared together."""


@dataclass(frozen=True, eq=False)
class View:
    """How one group's own jobs see all groups, [G] each; of A groups together [A, G].

    first : whether the group's side stands better or is within its entitlement.
    place : where the sibling on the other side stands among all sides, behind them all if it is not first.
    rival : the sibling on the other side (a group index, or G + index for the own jobs of a group above).
    mine : the sibling on this side, in the same numbers.
    """

    first: BoolArray
    place: IntArray
    rival: IntArray
    mine: IntArray


class Leaders(NamedTuple):
    """As some groups see some others.

    Attributes
    ----------
    sides : of each group some distinct sides that stand first, by standing; counts : how many distinct ones there are.
    mine : the sibling of the first of them on the own side; first : which of the others stand first, bool [A, n].
    """

    sides: list[list[int]]
    counts: list[int]
    mine: list[int]
    first: BoolArray


class Ranks:
    """Standing, entitlement and holdings after the plan of groups and of groups' own jobs.

    Sides 0 to G - 1 are groups with all below, sides G to 2 G - 1 the own jobs of groups with child groups.
    """

    def __init__(self, aftermath: Aftermath, entitlement: Entitlement) -> None:
        tree = aftermath.snapshot.tree
        self._tree = tree
        self.entitlement = entitlement
        self.groups = len(tree.ids)
        self.held: FloatArray = np.concatenate([aftermath.held, aftermath.own_held])
        self.entitled: FloatArray = np.concatenate([entitlement.entitled, entitlement.leaf_entitled])
        keys = [rank_key(float(entitlement.usage[c]), tree.weight[c]) for c in range(self.groups)]
        keys += [rank_key(float(entitlement.own_usage[c]), tree.own_weight(c)) for c in range(self.groups)]
        self._key: FloatArray = np.array([np.inf if last else k for last, k in keys], dtype=np.float64)
        self._within: BoolArray = (self.held <= self.entitled + SLACK) & (self.entitled > SLACK)
        depth = max((len(p) for p in tree.path), default=0)
        self._above: IntArray = np.full((self.groups, depth + 1), -1, dtype=np.int64)
        for c, path in enumerate(tree.path):
            self._above[c, : len(path)] = path
        self._depth: IntArray = np.array([len(path) for path in tree.path], dtype=np.int64)
        sides = np.arange(2 * self.groups)
        self._sorted: IntArray = np.lexsort((sides, sides % max(1, self.groups), self._key))
        self._place: IntArray = np.argsort(self._sorted)
        self._at_once = max(1, _AT_ONCE // max(1, self.groups))
        self._views: dict[int, View] = {}
        self._fares: dict[int, str] = {}
        self._told: dict[int, str] = {}

    def leaf(self, group: int) -> int:
        """The side that a group's own jobs are."""
        return group + self.groups if self._tree.children[group] else group

    def view(self, group: int) -> View:
        """Compare all groups with one group's own jobs, level by level from the top."""
        part, row = divmod(group, self._at_once)
        seen = self._seen(part)
        return View(seen.first[row], seen.place[row], seen.rival[row], seen.mine[row])

    def _seen(self, part: int) -> View:
        """The views of so many groups as are compared at once."""
        found = self._views.get(part)
        if found is None:
            start = part * self._at_once
            some = np.arange(start, min(self.groups, start + self._at_once))
            found = self._views[part] = self._compared(some)
        return found

    def _compared(self, some: IntArray) -> View:
        """Compare all groups with each of some groups' own jobs."""
        mine_at, rows = self._above[some], np.arange(len(some))
        mine_at[rows, self._depth[some]] = [self.leaf(group) for group in some.tolist()]
        level = np.repeat(self._depth[some][:, None], self.groups, axis=1)
        for k in reversed(range(self._above.shape[1] - 1)):
            parted = self._above[:, k] != self._above[some, k][:, None]
            level[parted & (self._depth[some] > k)[:, None]] = k
        every = np.arange(self.groups)
        mine = mine_at[rows[:, None], level]
        rival = np.where(self._depth <= level, every + self.groups, self._above[every, level])
        rival[rows, some] = mine[rows, some]
        place = self._place[rival]
        first = (place < self._place[mine]) | self._within[rival]
        first[rows, some] = False
        place[~first] = 2 * self.groups
        return View(first, place, rival, mine)

    def order(self, sides: IntArray) -> IntArray:
        """Distinct sides by standing, then id."""
        return self._sorted[np.flatnonzero(np.bincount(self._place[sides]))]

    def leaders(self, group: int, groups: IntArray, others: IntArray) -> tuple[list[int], Leaders]:
        """Who stands first among others, as a group and those of some groups see it that are compared with it.

        Parameters
        ----------
        groups : int, ascending; others : int [n], one at least.

        Returns
        -------
        list of int and Leaders
            Those of `groups` for which it was found out.
        """
        part = group // self._at_once
        start = part * self._at_once
        some = groups[slice(*np.searchsorted(groups, (start, start + self._at_once)))]
        seen, rows = self._seen(part), some - start
        where = np.ix_(rows, others)
        place = seen.place[where]
        there = np.zeros((len(rows), 2 * self.groups + 1), dtype=bool)
        there[np.arange(len(rows))[:, None], place] = True
        there[:, -1] = False
        row, at = np.nonzero(there)
        counts = np.bincount(row, minlength=len(rows))
        starts, few = np.cumsum(counts) - counts, np.minimum(counts, MOST_RIVALS)
        eldest = at[np.repeat(starts - (np.cumsum(few) - few), few) + np.arange(few.sum())]
        distinct = iter(self._sorted[eldest].tolist())
        sides = [list(islice(distinct, n)) for n in few.tolist()]
        mine = seen.mine[rows, others[place.argmin(axis=1)]].tolist()
        return some.tolist(), Leaders(sides, counts.tolist(), mine, seen.first[where])

    def wanted(self, side: int) -> float:
        """Charged GPUs that a side could hold were it alone: demand within its limit (D1)."""
        e = self.entitlement
        if side >= self.groups:
            return float(e.own_demand[side - self.groups])
        return float(min(e.demand[side], e.limit[side]))

    def name(self, side: int) -> str:
        """Return `group A`, `the own jobs of group A`."""
        if side >= self.groups:
            return f"the own jobs of group {self._tree.ids[side - self.groups]}"
        return f"group {self._tree.ids[side]}"

    def ref(self, side: int) -> str:
        """The id of the group behind a side."""
        return self._tree.ids[side % self.groups]

    def hours(self, side: int) -> float:
        """Charged GPU-hours of a side in the window."""
        e = self.entitlement
        return float(e.own_usage[side - self.groups] if side >= self.groups else e.usage[side])

    def fares(self, side: int) -> str:
        """Return `holds 8 of its entitled 12 charged GPUs and stands 1 of 2`."""
        if side not in self._fares:
            text = f"holds {number(self.held[side])} of its entitled {number(self.entitled[side])} charged GPUs"
            self._fares[side] = text if side >= self.groups else f"{text} and stands {self.stands(side)}"
        return self._fares[side]

    def told(self, side: int) -> str:
        """Return `group A holds 8 of its entitled 12 charged GPUs and stands 1 of 2`."""
        found = self._told.get(side)
        if found is None:
            found = self._told[side] = f"{self.name(side)} {self.fares(side)}"
        return found

    def stands(self, group: int) -> str:
        """Return `1 of 2`: rank among siblings."""
        parent = self._tree.parent[group]
        siblings = self._tree.top if parent < 0 else self._tree.children[parent]
        return f"{int(self.entitlement.standing[group])} of {len(siblings)}"
