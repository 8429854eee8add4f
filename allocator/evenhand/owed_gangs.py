"""What is owed whole: gangs larger than their group's entitlement, owed at an ancestor when their group stands first there,
debug runs, and what lost a node inside its contract (rule O3)."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np

from evenhand.debug_runs import debug_runs
from evenhand.entitlement import Entitlement
from evenhand.snapshot import Snapshot
from evenhand.tree import ROOT

SLACK_GPUS = 1e-6
Rank = tuple[float, str, int]
"""Usage over its part of the whole, to nine digits (infinity for who can hold nothing), id, and index of a leaf's group."""


def owed_gangs(snapshot: Snapshot, entitlement: Entitlement) -> tuple[int, ...]:
    """Jobs that are owed whole this round, ascending: at most one large gang for each ancestor; depends on nothing decided."""
    jobs = np.flatnonzero(snapshot.budgeted)
    leaves = sorted({int(g) for g in snapshot.group[jobs]})
    large: dict[int, list[int]] = defaultdict(list)
    for j in jobs.tolist():
        owner = _owner(snapshot, entitlement, j)
        if owner is not None:
            large[owner].append(j)
    always = {*_robbed(snapshot), *debug_runs(snapshot)}
    if not large:
        return tuple(sorted(always))
    standings = _Standings(snapshot, entitlement)
    below: dict[int, list[Rank]] = defaultdict(list)
    hungry: dict[int, list[Rank]] = defaultdict(list)
    content: dict[int, list[float]] = defaultdict(list)  # what is owed below each group to leaves that want no more
    for g in leaves:
        rank, wants_more = standings.rank(g), _wants_more(snapshot, entitlement, g)
        for c in (ROOT, *snapshot.tree.path[g]):
            if c in large:
                below[c].append(rank)
                if wants_more:
                    hungry[c].append(rank)
                else:
                    content[c].append(float(entitlement.leaf_entitled[g]))
    found: set[int] = set()
    for c, gangs in large.items():
        owed = entitlement.available if c == ROOT else float(entitlement.entitled[c])
        beside = owed - math.fsum(content[c])
        small = [j for j in gangs if int(snapshot.demand_milli[j]) / 1000 <= beside + SLACK_GPUS]
        for rivals, asked in ((hungry[c], small), (below[c], gangs)):
            gang = _asked(snapshot, standings, asked, rivals)
            if gang is not None:
                found.add(gang)
                break
    return tuple(sorted(found | always))


def _wants_more(snapshot: Snapshot, entitlement: Entitlement, group: int) -> bool:
    """Whether a group's own jobs could hold more than they are owed."""
    if snapshot.tree.children[group]:
        wanted = float(entitlement.own_demand[group])
    else:
        wanted = min(float(entitlement.demand[group]), float(entitlement.limit[group]))
    return wanted > float(entitlement.leaf_entitled[group]) + SLACK_GPUS


class _Standings:
    """Who has had least for its part of the whole: shares on the way down to the leaf, of siblings that may hold anything."""

    def __init__(self, snapshot: Snapshot, entitlement: Entitlement) -> None:
        self._s, self._e = snapshot, entitlement
        tree, e = snapshot.tree, entitlement
        self._part = [0.0] * len(tree.ids)
        for node in (ROOT, *reversed(tree.bottom_up)):
            children = tree.top if node == ROOT else tree.children[node]
            if not children:
                continue
            whole = 1.0 if node == ROOT else self._part[node]
            active = [k for k in children if min(e.demand[k], e.limit[k]) > 0 and tree.weight[k] > 0]
            own = tree.own_weight(node) if node != ROOT and e.own_demand[node] > 0 else 0.0
            shares = math.fsum([own, *(tree.weight[k] for k in active)])
            for k in active:
                self._part[k] = whole * tree.weight[k] / shares
            if node != ROOT:
                self._part[node] = whole * own / shares if own else 0.0

    def rank(self, group: int, charge: float = 0.0) -> Rank:
        """Where a group's own jobs stand, the first the least, with so many GPU-hours more charged."""
        part = self._part[group]
        used = (float(self._e.own_usage[group]) + charge) / part if part > 0 else math.inf
        return float(f"{used:.8e}"), self._s.tree.ids[group], group


def _asked(snapshot: Snapshot, standings: _Standings, gangs: list[int], rivals: list[Rank]) -> int | None:
    """The gang that is owed among rivals: of the leaf that stands first, and does so still with it."""
    if not rivals:
        return None
    _, _, first = min(rivals)
    mine = [j for j in gangs if snapshot.group[j] == first]
    if not mine:
        return None
    gang = min(mine, key=snapshot.seniority)
    charged = standings.rank(first, int(snapshot.demand_milli[gang]) / 1000 * int(snapshot.contract_s[gang]) / 3600)
    return gang if all(charged < other for other in rivals if other[2] != first) else None


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
