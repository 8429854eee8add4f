"""The organisation tree as the audit walks it: parents, children, heights, weights and claims (S7, O2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from evenhand_models import Group


@dataclass(frozen=True, slots=True)
class Tree:
    """The groups, linked both ways.

    Attributes
    ----------
    parent : mapping of str to str or None
        The group above each group; None at the top.
    children : mapping of str or None to tuple of str
        The groups right below each group, by id; None holds those at the top.
    order : tuple of str
        All groups, parents before their children.
    height : mapping of str to int
        0 for a group without child groups, else one more than its highest child (O2).
    weight : mapping of str to float
        Share among siblings; 1 each where all siblings have 0 (S7).
    claim : mapping of str to bool
        Whether neither the group nor one above it has share 0 while a sibling has more (S7).
    """

    parent: Mapping[str, str | None]
    children: Mapping[str | None, tuple[str, ...]]
    order: tuple[str, ...]
    height: Mapping[str, int]
    weight: Mapping[str, float]
    claim: Mapping[str, bool]

    def below(self, group: str | None) -> tuple[str, ...]:
        """Return the child groups of a group (None: those at the top)."""
        return self.children.get(group, ())

    def path(self, group: str) -> tuple[str, ...]:
        """Return the group and all above it, from the bottom up."""
        path = []
        at: str | None = group
        while at is not None:
            path.append(at)
            at = self.parent[at]
        return tuple(path)

    @property
    def top(self) -> int:
        """The largest height in the tree, 0 without groups."""
        return max(self.height.values(), default=0)

    def own_weight(self, group: str) -> float:
        """Return the weight of a group's own-jobs child: the mean share of its child groups (D4)."""
        below = self.below(group)
        return sum(self.weight[child] for child in below) / len(below) if below else 1.0


def grow(groups: Iterable[Group]) -> Tree:
    """Build the tree of the groups of a valid state."""
    shares = {group.id: group.share for group in sorted(groups, key=lambda group: group.id)}
    parent = {group.id: group.parent for group in groups}
    listed: dict[str | None, list[str]] = {}
    for group in shares:
        listed.setdefault(parent[group], []).append(group)
    order = list(listed.get(None, []))
    for group in order:  # grows while it is read: parents before children
        order.extend(listed.get(group, []))
    height = dict.fromkeys(order, 0)
    for group in reversed(order):
        if (above := parent[group]) is not None:
            height[above] = max(height[above], height[group] + 1)
    weight: dict[str, float] = {}
    claim: dict[str, bool] = {}
    for siblings in listed.values():
        all_zero = all(shares[group] == 0 for group in siblings)
        for group in siblings:
            weight[group] = 1.0 if all_zero else shares[group]
    for group in order:
        above = parent[group]
        claim[group] = weight[group] > 0 and (above is None or claim[above])
    children = {above: tuple(below) for above, below in listed.items()}
    return Tree(parent, children, tuple(order), height, weight, claim)
