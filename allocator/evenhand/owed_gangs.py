"""Gangs larger than their group's entitlement, owed at an ancestor when their group stands first there (rule O3)."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from evenhand.entitlement import Entitlement
from evenhand.snapshot import Snapshot
from evenhand.tree import ROOT

SLACK_GPUS = 1e-6


def owed_gangs(snapshot: Snapshot, entitlement: Entitlement) -> tuple[int, ...]:
    """Jobs that are owed whole this round: at most one for each ancestor, ascending; depends on nothing that runs."""
    tree = snapshot.tree
    jobs = np.flatnonzero(snapshot.budgeted)
    leaves = sorted({int(g) for g in snapshot.group[jobs]})
    large: dict[int, list[int]] = defaultdict(list)
    for j in jobs.tolist():
        owner = _owner(snapshot, entitlement, j)
        if owner is not None:
            large[owner].append(j)
    found = []
    for c, gangs in large.items():
        below = [g for g in leaves if c == ROOT or c in tree.path[g]]
        first = min(below, key=lambda g: _place(snapshot, entitlement, c, g))
        mine = [j for j in gangs if snapshot.group[j] == first]
        if mine:
            gang = min(mine, key=snapshot.seniority)
            if _still_first(snapshot, entitlement, c, gang, leaves):
                found.append(gang)
    return tuple(sorted({*found, *_robbed(snapshot)}))


def _robbed(snapshot: Snapshot) -> list[int]:
    """Jobs that lost a node inside their contract: they keep their claim."""
    s = snapshot
    inside = s.now_s < np.nan_to_num(s.started_s) + s.contract_s
    return np.flatnonzero(s.budgeted & s.running & s.hit & inside).tolist()


def _still_first(
    snapshot: Snapshot, entitlement: Entitlement, ancestor: int, job: int, leaves: list[int]
) -> bool:
    """Whether the gang's leaf stands first even with one more contract of it charged, level by level."""
    tree, group = snapshot.tree, int(snapshot.group[job])
    charge = int(snapshot.demand_milli[job]) / 1000 * int(snapshot.contract_s[job]) / 3600
    busy = {c for g in leaves for c in tree.path[g]}
    owners = set(leaves)
    path = tree.path[group]
    way = [*(path if ancestor == ROOT else path[path.index(ancestor) + 1 :])]
    node = ancestor
    for step in [*way, *([None] if tree.children[group] else [])]:
        rivals = [
            (_ratio(float(entitlement.usage[k]), tree.weight[k]), tree.ids[k])
            for k in (tree.top if node == ROOT else tree.children[node])
            if k in busy and k != step
        ]
        if node != ROOT and node in owners and step is not None and tree.children[node]:
            rivals.append((_ratio(float(entitlement.own_usage[node]), tree.own_weight(node)), tree.ids[node]))
        if step is None:
            mine = (_ratio(float(entitlement.own_usage[group]) + charge, tree.own_weight(group)), tree.ids[group])
        else:
            mine = (_ratio(float(entitlement.usage[step]) + charge, tree.weight[step]), tree.ids[step])
        if any(rival < mine for rival in rivals):
            return False
        node = group if step is None else step
    return True


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


def _place(snapshot: Snapshot, entitlement: Entitlement, ancestor: int, group: int) -> tuple[tuple[float, str], ...]:
    """How a leaf stands below an ancestor: usage over share, then id, level by level."""
    tree = snapshot.tree
    path = tree.path[group]
    below = path if ancestor == ROOT else path[path.index(ancestor) + 1 :]
    steps = [(_ratio(float(entitlement.usage[c]), tree.weight[c]), tree.ids[c]) for c in below]
    if tree.children[group]:
        steps.append((_ratio(float(entitlement.own_usage[group]), tree.own_weight(group)), tree.ids[group]))
    return tuple(steps)


def _ratio(usage: float, weight: float) -> float:
    return usage / weight if weight > 0 else float("inf")
