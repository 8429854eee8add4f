"""The organisation tree as arrays: who stands below whom, with what share (rules S4, S7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evenhand_models import Group

ROOT = -1


@dataclass(frozen=True)
class Tree:
    """Groups in the order of their ids.

    Attributes
    ----------
    ids : group ids, ascending; every other tuple runs parallel to it.
    parent : index of the parent, `ROOT` at the top.
    children : indices of the child groups, ascending; ``top`` are those without parent.
    weight : share among siblings, 1 for all where every sibling has 0 (rule S7).
    claim : whether the group has a claim: no share of 0 on the way up beside a sibling with more.
    height : 0 for a group without child groups, else one more than its highest child.
    path : indices from the top down to the group, itself included.
    bottom_up : an order in which children come before their parents.
    """

    ids: tuple[str, ...]
    groups: tuple[Group, ...]
    parent: tuple[int, ...]
    children: tuple[tuple[int, ...], ...]
    top: tuple[int, ...]
    weight: tuple[float, ...]
    claim: tuple[bool, ...]
    height: tuple[int, ...]
    path: tuple[tuple[int, ...], ...]
    bottom_up: tuple[int, ...]
    levelled: tuple[int, ...]
    """Parents (`ROOT` for the top) whose children all have share 0 and are split equally."""

    def index(self, group: str) -> int | None:
        """Index of a group id, None if there is no such group."""
        return self._positions.get(group)

    @property
    def _positions(self) -> dict[str, int]:
        cached: dict[str, int] | None = self.__dict__.get("_index")
        if cached is None:
            cached = {name: i for i, name in enumerate(self.ids)}
            object.__setattr__(self, "_index", cached)
        return cached

    def own_weight(self, group: int) -> float:
        """Weight of a group's own-jobs child: the mean share of its child groups (rule D4)."""
        kids = self.children[group]
        if not kids or group in self.levelled:
            return 1.0
        return sum(self.weight[k] for k in kids) / len(kids)

    def nearest_named(self, group: str) -> int | None:
        """The group, else the nearest ancestor that its id names by its slashes (rule S4)."""
        name = group
        while name:
            at = self.index(name)
            if at is not None:
                return at
            name = name.rpartition("/")[0]
        return None


def build_tree(groups: Sequence[Group]) -> Tree:
    """Read the groups of a validated state (no cycles, parents known)."""
    ordered = tuple(sorted(groups, key=lambda g: g.id))
    at = {g.id: i for i, g in enumerate(ordered)}
    parent = tuple(ROOT if g.parent is None else at[g.parent] for g in ordered)
    kids: list[list[int]] = [[] for _ in ordered]
    top: list[int] = []
    for i, p in enumerate(parent):
        (top if p == ROOT else kids[p]).append(i)
    down = list(top)
    for i in down:
        down.extend(kids[i])
    weight = [float(g.share) for g in ordered]
    levelled: list[int] = []
    for p, siblings in [(ROOT, top), *enumerate(kids)]:
        if siblings and all(weight[k] == 0.0 for k in siblings):
            levelled.append(p)
            for k in siblings:
                weight[k] = 1.0
    claim = [True] * len(ordered)
    height = [0] * len(ordered)
    path: list[tuple[int, ...]] = [()] * len(ordered)
    for i in down:
        p = parent[i]
        above = p == ROOT or claim[p]
        claim[i] = above and weight[i] > 0.0
        path[i] = ((*path[p], i)) if p != ROOT else (i,)
    bottom_up = tuple(reversed(down))
    for i in bottom_up:
        if kids[i]:
            height[i] = 1 + max(height[k] for k in kids[i])
    return Tree(
        ids=tuple(g.id for g in ordered),
        groups=ordered,
        parent=parent,
        children=tuple(tuple(k) for k in kids),
        top=tuple(top),
        weight=tuple(weight),
        claim=tuple(claim),
        height=tuple(height),
        path=tuple(path),
        bottom_up=bottom_up,
        levelled=tuple(levelled),
    )
