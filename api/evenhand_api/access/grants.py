"""What a caller may do: scopes, clusters, and the part of the organisation tree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from evenhand_models import Group


class Scope(StrEnum):
    """What a token may do. None includes another."""

    READ = "read"
    """Ask what was decided, who used what, and for metrics."""
    SUBMIT = "submit"
    """Have rounds decided, report events."""
    ADMINISTER = "administer"
    """Write configurations and adjustments."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What one caller may do.

    Attributes
    ----------
    token : id of the token, empty for a caller without one where none is needed.
    label : what the token is called.
    scopes : what it may do.
    cluster : the only cluster it may do it in; None: all.
    groups : with all below them, the only groups it may ask about; None: the whole tree.
    """

    token: str
    label: str
    scopes: frozenset[Scope]
    cluster: str | None = None
    groups: frozenset[str] | None = None

    @property
    def whole_tree(self) -> bool:
        """Whether it covers every group."""
        return self.groups is None

    def reaches(self, cluster: str) -> bool:
        """Tell whether it covers (a part of) a cluster."""
        return self.cluster is None or self.cluster == cluster


EVERYTHING = Grant("", "this machine", frozenset(Scope))
"""What a caller on this machine may do where no tokens are required."""


def below(roots: Iterable[str], tree: Iterable[Group]) -> frozenset[str]:
    """Return the groups named and all groups below them, those that are in the tree."""
    children: dict[str | None, list[str]] = {}
    known = set()
    for group in tree:
        children.setdefault(group.parent, []).append(group.id)
        known.add(group.id)
    waiting = [root for root in roots if root in known]
    found: set[str] = set()
    while waiting:
        group_id = waiting.pop()
        if group_id not in found:
            found.add(group_id)
            waiting.extend(children.get(group_id, ()))
    return frozenset(found)


def nearest(group: str | None, tree: Mapping[str, object] | frozenset[str]) -> str | None:
    """Return the group, else the nearest ancestor its id names by its slashes that is in the tree; None: none is."""
    name = group or ""
    while name and name not in tree:
        name = name.rpartition("/")[0]
    return name or None
