"""What claims weigh: the further behind its siblings' usage for their shares, the more lost work a GPU may cost (rule O2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evenhand.debug_runs import is_debug
from evenhand.entitlement import Entitlement
from evenhand.owed_gangs import SLACK_GPUS
from evenhand.program.prices import WEIGHT_CLAIM, WEIGHT_DEBUG, FloatArray, height_factor
from evenhand.snapshot import Snapshot
from evenhand.tree import ROOT, Tree


@dataclass(frozen=True, slots=True)
class Claims:
    """What a GPU short weighs, [G]: at inner groups (O2), and at the leaf of each group (O3)."""

    inner: tuple[float, ...]
    leaf: tuple[float, ...]


def claims(snapshot: Snapshot, entitlement: Entitlement) -> Claims:
    """Weigh the claims of a round; depends on usage and on what wants to run, not on what runs."""
    e = entitlement
    return weigh_claims(
        snapshot.tree, snapshot.policy.urgency, e.usage.tolist(), e.own_usage.tolist(),
        lambda g: e.demand[g] > 0 and e.limit[g] > 0, (e.own_demand > 0).tolist(),
    )  # fmt: skip


def owed_weights(
    snapshot: Snapshot, entitlement: Entitlement, weighed: Claims, owed: Sequence[int]
) -> dict[int, float]:
    """What a GPU of each job that is owed whole weighs (O3): as one short at all levels that do not cover it.

    At least `WEIGHT_DEBUG` where it counts as a debug run, the most there is where it lost a node in its contract.
    """
    debug, found = is_debug(snapshot), {}
    for j in owed:
        gang = int(snapshot.demand_milli[j]) / 1000 - SLACK_GPUS
        weight = weight_below(snapshot.tree, weighed, int(snapshot.group[j]), gang, entitlement.entitled)
        found[j] = WEIGHT_CLAIM if snapshot.hit[j] else max(weight, WEIGHT_DEBUG) if debug[j] else weight
    return found


def weight_below(tree: Tree, weighed: Claims, group: int, gang: float, entitled: Sequence[float] | FloatArray) -> float:
    """Weight of a GPU short at a leaf and at every inner group above it up to the first that is entitled to a gang."""
    weight = weighed.leaf[group]
    for c in reversed(tree.path[group]):
        if tree.children[c]:
            if entitled[c] >= gang:
                break
            weight += weighed.inner[c]
    return weight


def weigh_claims(
    tree: Tree, urgency: float, usage: Sequence[float], own_usage: Sequence[float], active: Callable[[int], bool],
    own: Sequence[bool],
) -> Claims:  # fmt: skip
    """Weigh claims by usage.

    Parameters
    ----------
    usage, own_usage : charged GPU-hours in the window, of each group and all below, and of its own jobs alone, [G].
    active : whether a group may hold anything (D4); own : whether its own jobs want anything, [G].
    """
    groups = len(tree.ids)
    group, own_jobs = [1.0] * groups, [1.0] * groups
    for node in (ROOT, *range(groups)):
        kids = [k for k in (tree.top if node == ROOT else tree.children[node]) if tree.weight[k] > 0 and active(k)]
        mine = node != ROOT and bool(tree.children[node]) and own[node]
        used = math.fsum([*(usage[k] for k in kids), *((own_usage[node],) if mine else ())])
        share = math.fsum([*(tree.weight[k] for k in kids), *((tree.own_weight(node),) if mine else ())])
        for k in kids:
            group[k] = weight_of(tree.weight[k] * used, usage[k] * share, urgency)
        if mine:
            own_jobs[node] = weight_of(tree.own_weight(node) * used, own_usage[node] * share, urgency)
    return Claims(
        tuple(weight * height_factor(tree.height[g]) for g, weight in enumerate(group)),
        tuple(own_jobs[g] if tree.children[g] else group[g] for g in range(groups)),
    )


def weight_of(due: float, had: float, urgency: float) -> float:
    """Weight of a claim, in whole thousandths: (due / had) ^ urgency between 1 and `WEIGHT_CLAIM`."""
    if had <= 0:
        return WEIGHT_CLAIM
    if due <= had:
        return 1.0
    power = urgency * math.log(due / had)
    return WEIGHT_CLAIM if power >= math.log(WEIGHT_CLAIM) else round(1000 * math.exp(power)) / 1000
