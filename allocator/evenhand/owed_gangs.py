"""Gangs larger than their group's entitlement, owed at an ancestor when their group stands first there (rule O3)."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np

from evenhand.entitlement import Entitlement
from evenhand.snapshot import Snapshot
from evenhand.tree import ROOT

SLACK_GPUS = 1e-6


def owed_gangs(snapshot: Snapshot, entitlement: Entitlement) -> tuple[int, ...]:
    """Jobs that are owed whole this round: at most one for each ancestor, ascending; depends on nothing that runs."""
    jobs = np.flatnonzero(snapshot.budgeted)
    leaves = sorted({int(g) for g in snapshot.group[jobs]})
    large: dict[int, list[int]] = defaultdict(list)
    for j in jobs.tolist():
        owner = _owner(snapshot, entitlement, j)
        if owner is not None:
            large[owner].append(j)
    short = frozenset(g for g in leaves if _wants_more(snapshot, entitlement, g))
    content: dict[int, list[float]] = defaultdict(list)  # what is owed below each group to leaves that want no more
    for g in leaves:
        if g not in short:
            for c in (ROOT, *snapshot.tree.path[g]):
                content[c].append(float(entitlement.leaf_entitled[g]))
    hungry, everybody = _Rivals(snapshot, short), _Rivals(snapshot, frozenset(leaves))
    found = set()
    for c, gangs in large.items():
        owed = entitlement.available if c == ROOT else float(entitlement.entitled[c])
        beside = owed - math.fsum(content[c])
        small = [j for j in gangs if int(snapshot.demand_milli[j]) / 1000 <= beside + SLACK_GPUS]
        for rivals, asked in ((hungry, small), (everybody, gangs)):
            gang = _asked(snapshot, entitlement, c, asked, rivals)
            if gang is not None:
                found.add(gang)
                break
    return tuple(sorted({*found, *_robbed(snapshot)}))


def _wants_more(snapshot: Snapshot, entitlement: Entitlement, group: int) -> bool:
    """Whether a group's own jobs could hold more than they are owed."""
    if snapshot.tree.children[group]:
        wanted = float(entitlement.own_demand[group])
    else:
        wanted = min(float(entitlement.demand[group]), float(entitlement.limit[group]))
    return wanted > float(entitlement.leaf_entitled[group]) + SLACK_GPUS


class _Rivals:
    """Leaves that compete, and the groups above them."""

    def __init__(self, snapshot: Snapshot, leaves: frozenset[int]) -> None:
        self.leaves = leaves
        self.busy = {c for g in leaves for c in snapshot.tree.path[g]}


def _asked(
    snapshot: Snapshot, entitlement: Entitlement, ancestor: int, gangs: list[int], rivals: _Rivals
) -> int | None:
    """The gang that is owed at an ancestor: of the leaf that stands first of its rivals, and does so still with it."""
    first = _first_leaf(snapshot, entitlement, ancestor, rivals.busy, rivals.leaves)
    mine = [j for j in gangs if snapshot.group[j] == first]
    if not mine:
        return None
    gang = min(mine, key=snapshot.seniority)
    return gang if _still_first(snapshot, entitlement, ancestor, gang, rivals.busy, rivals.leaves) else None


def _first_leaf(
    snapshot: Snapshot, entitlement: Entitlement, ancestor: int, busy: set[int], owners: frozenset[int]
) -> int | None:
    """The leaf of `owners` below a group that stands first, level by level; None if there is none."""
    node = ancestor
    while True:
        ranks = _ranks(snapshot, entitlement, node, busy, owners)
        if not ranks:
            return None
        _, _, side = min(ranks)
        if side == node or not snapshot.tree.children[side]:
            return side
        node = side


def _ranks(
    snapshot: Snapshot, entitlement: Entitlement, node: int, busy: set[int], owners: frozenset[int]
) -> list[tuple[float, str, int]]:
    """Usage over share, id and group of the children of a node that have work; its own-jobs child is the node itself."""
    tree = snapshot.tree
    ranks = [
        (_ratio(float(entitlement.usage[k]), tree.weight[k]), tree.ids[k], k)
        for k in (tree.top if node == ROOT else tree.children[node])
        if k in busy
    ]
    if node in owners and tree.children[node]:
        ranks.append((_ratio(float(entitlement.own_usage[node]), tree.own_weight(node)), tree.ids[node], node))
    return ranks


def _still_first(
    snapshot: Snapshot, entitlement: Entitlement, ancestor: int, job: int, busy: set[int], owners: frozenset[int]
) -> bool:
    """Whether the gang's leaf stands first even with one more contract of it charged, level by level."""
    tree, group = snapshot.tree, int(snapshot.group[job])
    charge = int(snapshot.demand_milli[job]) / 1000 * int(snapshot.contract_s[job]) / 3600
    path = tree.path[group]
    way = [
        *(path if ancestor == ROOT else path[path.index(ancestor) + 1 :]),
        *([group] if tree.children[group] else []),
    ]
    node = ancestor
    for step in way:
        own = step == node
        used = float(entitlement.own_usage[step] if own else entitlement.usage[step]) + charge
        mine = (_ratio(used, tree.own_weight(step) if own else tree.weight[step]), tree.ids[step])
        rivals = _ranks(snapshot, entitlement, node, busy, owners)
        if any((key, name) < mine for key, name, side in rivals if side != step):
            return False
        node = step
    return True


def _robbed(snapshot: Snapshot) -> list[int]:
    """Jobs that lost a node inside their contract: they keep their claim."""
    s = snapshot
    inside = s.now_s < np.nan_to_num(s.started_s) + s.contract_s
    return np.flatnonzero(s.budgeted & s.running & s.hit & inside).tolist()


def _owner(snapshot: Snapshot, entitlement: Entitlement, job: int) -> int | None:
    """The lowest ancestor entitled to the gang, `ROOT` if none is; None if its own leaf is."""
    tree, group = snapshot.tree, int(snapshot.group[job])
    gang = int(snapshot.demand_milli[job]) / 1000
    if gang <= float(entitlement.leaf_entitled[group]) + SLACK_GPUS:
        return None
    for c in reversed(tree.path[group]):
        if (c != group or tree.children[group]) and float(entitlement.entitled[c]) >= gang - SLACK_GPUS:
            return c
    return ROOT


def _ratio(usage: float, weight: float) -> float:
    return usage / weight if weight > 0 else float("inf")
