"""Entitlements between full rounds: rules D1 to D4 in floating point, a millisecond for hundreds of groups."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from evenhand.claims import Claims, weigh_claims
from evenhand.entitlement import largest_flows
from evenhand.replay.world import World
from evenhand.tree import ROOT

FRESH_S = 60
"""Entitlements this old are worked out again though nothing but time has passed."""


@dataclass(slots=True, eq=False)
class Owed:
    """Charged GPUs each group is owed at a moment, [G]; `leaf`: its own jobs alone. `claims`: what a GPU short weighs."""

    at_s: int
    group: list[float]
    leaf: list[float]
    usage: list[float]
    claims: Claims


def owed_now(world: World) -> Owed:
    """Work out who is owed what, as `evenhand.entitlement.entitle` does, to about 1e-9."""
    tree = world.tree
    groups = len(tree.ids)
    own, demand, limit, floor = _needs(world)
    usage_own = world.window.gpu_hours(world.now_s).tolist()
    usage = list(usage_own)
    for c in tree.bottom_up:
        if tree.parent[c] != ROOT:
            usage[tree.parent[c]] += usage[c]
    horizon_h = world.policy.horizon_s / 3600.0
    amount = [0.0] * groups
    leaf = [0.0] * groups
    total = sum(c * r for c, r in zip(world.ground.capacity, world.rates, strict=True)) / 1000.0
    for node in (ROOT, *reversed(tree.bottom_up)):
        children = tree.top if node == ROOT else tree.children[node]
        if not children:
            leaf[node] = amount[node]
            continue
        kids = [k for k in children if demand[k] > 0 and limit[k] > 0 and tree.weight[k] > 0]
        there = total if node == ROOT else amount[node]
        if there <= 0:
            continue
        weights = [tree.weight[k] for k in kids]
        past = [usage[k] / horizon_h for k in kids]
        low, high = [floor[k] for k in kids], [min(demand[k], limit[k]) for k in kids]
        if node != ROOT and own[node] > 0:
            weights.append(tree.own_weight(node))
            past.append(usage_own[node] / horizon_h)
            low.append(0.0)
            high.append(own[node])
        parts = level(there, weights, past, low, high)
        for k, part in zip(kids, parts, strict=False):
            amount[k] = part
        if len(parts) > len(kids):
            leaf[node] = parts[-1]
    claims = weigh_claims(
        tree, world.policy.urgency, usage, usage_own, lambda g: demand[g] > 0 and limit[g] > 0, [x > 0 for x in own]
    )
    return Owed(world.now_s, amount, leaf, usage, claims)


def _needs(world: World) -> tuple[list[float], list[float], list[float], list[float]]:
    """Own demand, demand, limit and guarantee of every group in charged GPUs (rules D1, D2)."""
    tree = world.tree
    groups = len(tree.ids)
    keys = sorted(key for key, row in world.wanted_milli.items() if any(row))
    below = [list(world.wanted_milli[key]) for key in keys]
    for row in below:
        for c in tree.bottom_up:
            if tree.parent[c] != ROOT:
                row[tree.parent[c]] += row[c]
    capacity = [c * r for c, r in zip(world.ground.capacity, world.rates, strict=True)]
    own_flow = _flows(world, keys, [world.wanted_milli[key] for key in keys], capacity)
    flow = _flows(world, keys, below, capacity)
    own, demand = [x / 1000.0 for x in own_flow], [0.0] * groups
    limit, floor = [inf] * groups, [0.0] * groups
    for g in tree.bottom_up:
        kids, asked = tree.children[g], tree.groups[g]
        if not flow[g]:
            continue
        inside = own[g] + sum(min(demand[k], limit[k]) for k in kids)
        demand[g] = min(flow[g] / 1000.0, inside)
        promised = 0.0
        if asked.max_gpus is not None or asked.guaranteed_gpus is not None:
            used = [world.rates[t] for key, row in zip(keys, below, strict=True) if row[g] > 0 for t in key]
            if asked.max_gpus is not None:
                limit[g] = asked.max_gpus * max(used) / 1000.0
            promised = (asked.guaranteed_gpus or 0) * min(used) / 1000.0
        floor[g] = min(max(promised, sum(floor[k] for k in kids)), demand[g], limit[g])
    return own, demand, limit, floor


def _flows(world: World, keys: list[tuple[int, ...]], wanted: list[list[int]], capacity: list[int]) -> list[int]:
    """Largest flow of each group through the types its jobs can use, thousandths [G]."""
    if not keys:
        return [0] * len(world.tree.ids)
    if len(keys) == 1:
        there = sum(capacity[t] for t in keys[0])
        return [min(x, there) for x in wanted[0]]
    masks = np.zeros((len(keys), len(capacity)), dtype=bool)
    for i, key in enumerate(keys):
        masks[i, list(key)] = True
    table = np.array(wanted, dtype=np.int64).T
    return [int(x) for x in largest_flows(np.ascontiguousarray(table), masks, np.array(capacity, dtype=np.int64))]


def level(there: float, weight: list[float], past: list[float], low: list[float], high: list[float]) -> list[float]:
    """Divide an amount: clip(lambda weight - past, low, high) with the sum that there is (rule D4)."""
    if sum(high) <= there:
        return high
    if there <= 0:
        return [0.0] * len(high)
    if sum(low) >= there:
        return [x * there / sum(low) for x in low]
    bends = sorted(
        [((lo + p) / w, w, lo + p) for w, p, lo in zip(weight, past, low, strict=True)]
        + [((hi + p) / w, -w, -(hi + p)) for w, p, hi in zip(weight, past, high, strict=True)]
    )
    total, slope, at = sum(low), 0.0, bends[0][0]
    for bend, change, _ in bends:
        step = slope * (bend - at)
        if total + step >= there:
            break
        total, at, slope = total + step, bend, slope + change
    if slope > 0:
        at += (there - total) / slope
    return [min(max(at * w - p, lo), hi) for w, p, lo, hi in zip(weight, past, low, high, strict=True)]
