"""Whose claims are firm: who has used so little for its share that it is served at any price (rule O2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evenhand.entitlement import Entitlement
from evenhand.program.prices import claim_weight
from evenhand.snapshot import Snapshot
from evenhand.tree import ROOT, Tree


@dataclass(frozen=True, slots=True)
class Claims:
    """What a charged GPU short weighs, [G]: at inner groups (O2), and at the leaf of each group (O3)."""

    inner: tuple[float, ...]
    leaf: tuple[float, ...]


def claims(snapshot: Snapshot, entitlement: Entitlement) -> Claims:
    """Weigh the claims of a round; depends on usage and on what wants to run, not on what runs."""
    e = entitlement
    return weigh_claims(
        snapshot.tree, snapshot.policy.firm_below, e.usage.tolist(), e.own_usage.tolist(),
        lambda g: e.demand[g] > 0 and e.limit[g] > 0, (e.own_demand > 0).tolist(),
    )  # fmt: skip


def weigh_claims(
    tree: Tree, firm_below: float, usage: Sequence[float], own_usage: Sequence[float], active: Callable[[int], bool],
    own: Sequence[bool],
) -> Claims:  # fmt: skip
    """Weigh claims by usage.

    Parameters
    ----------
    usage, own_usage : charged GPU-hours in the window, of each group and all below, and of its own jobs alone, [G].
    active : whether a group may hold anything (D4); own : whether its own jobs want anything, [G].
    """
    groups = len(tree.ids)
    firm, own_firm = [False] * groups, [False] * groups
    for node in (ROOT, *range(groups)):
        kids = [k for k in (tree.top if node == ROOT else tree.children[node]) if tree.weight[k] > 0 and active(k)]
        mine = node != ROOT and bool(tree.children[node]) and own[node]
        used = math.fsum([usage[k] for k in kids] + [own_usage[node]] * mine)
        share = math.fsum([tree.weight[k] for k in kids] + [tree.own_weight(node)] * mine)
        for k in kids:
            firm[k] = usage[k] * share <= firm_below * tree.weight[k] * used
        if mine:
            own_firm[node] = own_usage[node] * share <= firm_below * tree.own_weight(node) * used
    return Claims(
        tuple(claim_weight(tree.height[g], firm=firm[g]) for g in range(groups)),
        tuple(claim_weight(0, firm=own_firm[g] if tree.children[g] else firm[g]) for g in range(groups)),
    )
