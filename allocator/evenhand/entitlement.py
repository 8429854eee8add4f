"""Who is owed how much this round: the tree hands charged GPUs down, level by level (rules D1 to D5)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import networkx as nx
import numpy as np
import numpy.typing as npt

from evenhand.shapes import BoolArray, IntArray
from evenhand.snapshot import Snapshot
from evenhand.splitting import split
from evenhand.tree import ROOT

FloatArray = npt.NDArray[np.float64]

_MOST_TYPES_BY_CUTS = 10
"""Up to so many (kinds of) types every cut is tried; beyond, a maximum flow is computed."""
_CHUNK = 1 << 22
_NO_RATE = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class Entitlement:
    """What each group is owed; G groups in the order of `snapshot.tree`, charged GPUs unless said otherwise.

    Attributes
    ----------
    demand : D_c, what the budgeted jobs below could hold, float [G] (D1).
    own_demand : the same of the group's own jobs alone, float [G].
    limit : M_c, infinity where none is set, float [G] (D1).
    guaranteed : p_c after all cuts, scaling where they exceed what there is included, float [G] (D2, D4).
    usage : charged GPU-hours of the group and all below, float [G]; own_usage : its own only (D3).
    entitled : e_c, float [G] (D4).
    leaf_entitled : what the group's own budgeted jobs are owed (by its own-jobs child, or itself), float [G].
    standing : rank among siblings, from 1, int [G] (D5).
    available : what the groups without parent share.
    own_jobs : whether the group has budgeted jobs of its own, bool [G]; jobs_below : it or one below.
    scaled : whether its guarantee was cut in proportion with its siblings', bool [G] (D4).
    """

    demand: FloatArray
    own_demand: FloatArray
    limit: FloatArray
    guaranteed: FloatArray
    usage: FloatArray
    own_usage: FloatArray
    entitled: FloatArray
    leaf_entitled: FloatArray
    standing: IntArray
    available: float
    own_jobs: BoolArray
    jobs_below: BoolArray
    scaled: BoolArray


def entitle(snapshot: Snapshot) -> Entitlement:
    """Compute what every group is owed; depends on what wants to run and on usage, not on what runs."""
    tree = snapshot.tree
    groups = len(tree.ids)
    needs = _Needs(snapshot)
    own_usage, usage = _usage(snapshot)
    available = int((snapshot.capacity * snapshot.rate_milli).sum())
    there = {ROOT: Fraction(available)}  # thousandths, exact: nobody is owed what rounding left over
    entitled, own_entitled = np.zeros(groups), np.zeros(groups)
    guarantee = np.array(needs.guarantee, dtype=np.float64) / 1000
    scaled = np.zeros(groups, dtype=bool)
    cap = [int(min(d, m)) for d, m in zip(needs.demand, needs.limit, strict=True)]
    for node in (ROOT, *reversed(tree.bottom_up)):
        children = tree.top if node == ROOT else tree.children[node]
        kids = [k for k in children if cap[k] > 0 and tree.weight[k] > 0]
        own = node != ROOT and bool(tree.children[node]) and needs.own_demand[node] > 0
        if not kids and not own:
            continue
        amount = there.get(node, Fraction(0))
        parts = split(
            amount,
            [needs.guarantee[k] for k in kids] + [0] * own,
            [cap[k] for k in kids] + [needs.own_demand[node]] * own,
            [tree.weight[k] for k in kids] + [tree.own_weight(node)] * own,
            [float(usage[k]) for k in kids] + [float(own_usage[node])] * own,
            horizon_s=snapshot.policy.horizon_s,
        )
        if own:
            own_entitled[node] = _gpus(parts.pop())
        floors = sum(needs.guarantee[k] for k in kids)
        for k, part in zip(kids, parts, strict=True):
            there[k], entitled[k] = part, _gpus(part)
            if floors > amount and needs.guarantee[k] > 0:
                guarantee[k], scaled[k] = entitled[k], True
    inner = np.array([bool(kids) for kids in tree.children], dtype=bool)
    leaf = np.where(inner, own_entitled, entitled)
    return Entitlement(
        demand=np.array(needs.demand, dtype=np.float64) / 1000,
        own_demand=np.array(needs.own_demand, dtype=np.float64) / 1000,
        limit=np.array([m / 1000 for m in needs.limit], dtype=np.float64).reshape(groups),
        guaranteed=guarantee,
        usage=usage,
        own_usage=own_usage,
        entitled=entitled,
        leaf_entitled=np.where(needs.own_jobs, leaf, 0.0),
        standing=_standing(snapshot, usage),
        available=available / 1000,
        own_jobs=needs.own_jobs,
        jobs_below=needs.jobs_below,
        scaled=scaled,
    )


def _gpus(thousandths: Fraction) -> float:
    """The number next to it."""
    return thousandths.numerator / (1000 * thousandths.denominator)


class _Needs:
    """Rules D1 and D2 in whole thousandths of a charged GPU, by group."""

    def __init__(self, snapshot: Snapshot) -> None:
        tree = snapshot.tree
        groups = len(tree.ids)
        wanted = _wanted_by_mask(snapshot)
        own, masks = wanted
        below = own.copy()
        for g in tree.bottom_up:
            if tree.parent[g] != ROOT:
                below[tree.parent[g]] += below[g]
        present = np.zeros((groups, len(masks)), dtype=bool)
        jobs = np.flatnonzero(snapshot.budgeted)
        self.own_jobs: BoolArray = np.bincount(snapshot.group[jobs], minlength=groups)[:groups] > 0
        self.jobs_below = self.own_jobs.copy()
        present = own > 0
        for g in tree.bottom_up:
            if tree.parent[g] != ROOT:
                present[tree.parent[g]] |= present[g]
                self.jobs_below[tree.parent[g]] |= self.jobs_below[g]
        capacity = snapshot.capacity * snapshot.rate_milli
        own_flow, flow = largest_flows(own, masks, capacity), largest_flows(below, masks, capacity)
        types_below = present @ masks
        rates = snapshot.rate_milli
        highest = np.where(types_below, rates, 0).max(axis=1, initial=0)
        lowest = np.where(types_below, rates, _NO_RATE).min(axis=1, initial=_NO_RATE)
        self.own_demand = [int(d) for d in own_flow]
        self.demand = [0] * groups
        self.limit: list[float] = [math.inf] * groups
        self.guarantee = [0] * groups
        for g in tree.bottom_up:
            kids, asked = tree.children[g], tree.groups[g]
            inside = self.own_demand[g] + sum(min(self.demand[k], self.limit[k]) for k in kids)
            self.demand[g] = int(min(int(flow[g]), inside))
            if asked.max_gpus is not None:
                self.limit[g] = asked.max_gpus * int(highest[g])
            if self.demand[g]:
                promised = (asked.guaranteed_gpus or 0) * int(lowest[g])
                floor = max(promised, sum(self.guarantee[k] for k in kids))
                self.guarantee[g] = int(min(floor, self.demand[g], self.limit[g]))


def _wanted_by_mask(snapshot: Snapshot) -> tuple[IntArray, BoolArray]:
    """Demand of each group's own budgeted jobs by the set of types they can use: int [G, K], bool [K, T]."""
    jobs = np.flatnonzero(snapshot.budgeted)
    fits = snapshot.fits[jobs].copy()
    stray = np.flatnonzero(~fits.any(axis=1) & (snapshot.held_type[jobs] >= 0))
    fits[stray, snapshot.held_type[jobs[stray]]] = True
    masks, kind = distinct_rows(fits)
    groups = len(snapshot.tree.ids)
    flat = np.zeros(groups * len(masks), dtype=np.int64)
    np.add.at(flat, snapshot.group[jobs] * len(masks) + kind, snapshot.demand_milli[jobs])
    return flat.reshape(groups, len(masks)), masks


def distinct_rows(table: BoolArray) -> tuple[BoolArray, IntArray]:
    """Distinct rows of a table of bits and, for each row, which it is: bool [K, T], int [n]."""
    if table.shape[1] > 62:
        rows, which = np.unique(table, axis=0, return_inverse=True)
        return rows, which.reshape(-1).astype(np.int64)
    codes = table @ (1 << np.arange(table.shape[1], dtype=np.int64))
    found, which = np.unique(codes, return_inverse=True)
    bits = (found[:, None] >> np.arange(table.shape[1], dtype=np.int64)) & 1
    return bits.astype(bool), which.reshape(-1).astype(np.int64)


def largest_flows(wanted: IntArray, masks: BoolArray, capacity: IntArray) -> IntArray:
    """Largest flow from each group's demands through the types they can use into their capacities (rule D1).

    The minimum over all cuts: types on the near side cost their capacity, demands that reach beyond them
    their amount.

    Parameters
    ----------
    wanted : demand by group and set of types, int [G, K].
    masks : which types each set holds, bool [K, T].
    capacity : of the types in the same unit, int [T].
    """
    columns, kind = distinct_rows(np.ascontiguousarray(masks.T))
    merged = np.zeros(len(columns), dtype=np.int64)
    np.add.at(merged, kind, capacity)
    some = columns.any(axis=1)
    columns, merged = columns[some], merged[some]
    if len(merged) > _MOST_TYPES_BY_CUTS:
        return np.array([_flow_by_network(row, columns, merged) for row in wanted], dtype=np.int64)
    bits = 1 << np.arange(len(merged), dtype=np.int64)
    sets = 1 << len(merged)
    near = np.array([int(merged[(a & bits) > 0].sum()) for a in range(sets)], dtype=np.int64)
    codes = bits @ columns
    flows = np.zeros(len(wanted), dtype=np.int64)
    step = max(1, _CHUNK // sets)
    for first in range(0, len(wanted), step):
        part = wanted[first : first + step]
        inside = np.zeros((len(part), sets), dtype=np.int64)
        np.add.at(inside.T, codes, part.T)
        for bit in bits:
            grid = inside.reshape(len(part), -1, 2, int(bit))
            grid[:, :, 1, :] += grid[:, :, 0, :]
        beyond = part.sum(axis=1, keepdims=True) - inside
        flows[first : first + step] = (beyond + near).min(axis=1)
    return flows


def _flow_by_network(wanted: IntArray, columns: BoolArray, capacity: IntArray) -> int:
    """Compute the same with a maximum flow, for many types."""
    network = nx.DiGraph()
    network.add_nodes_from(("from", "to"))
    for k in np.flatnonzero(wanted):
        network.add_edge("from", ("set", int(k)), capacity=int(wanted[k]))
        for t in np.flatnonzero(columns[:, k]):
            network.add_edge(("set", int(k)), ("type", int(t)))
    for place, there in enumerate(capacity.tolist()):
        network.add_edge(("type", place), "to", capacity=there)
    return int(nx.maximum_flow_value(network, "from", "to"))


def _usage(snapshot: Snapshot) -> tuple[FloatArray, FloatArray]:
    """Own and summed usage by group in charged GPU-hours (rules D3, S4)."""
    tree = snapshot.tree
    entries: list[list[float]] = [[] for _ in tree.ids]
    for used in snapshot.state.usage or ():
        at = tree.nearest_named(used.group)
        if at is not None:
            entries[at].append(max(0.0, used.charged_gpu_hours))
    own = [math.fsum(e) for e in entries]
    total = [0.0] * len(own)
    for g in tree.bottom_up:
        total[g] = math.fsum([own[g], *(total[k] for k in tree.children[g])])
    return np.array(own, dtype=np.float64), np.array(total, dtype=np.float64)


def _standing(snapshot: Snapshot, usage: FloatArray) -> IntArray:
    """Rank among siblings by usage over weight, then id (rule D5)."""
    tree = snapshot.tree
    rank = np.zeros(len(tree.ids), dtype=np.int64)
    for siblings in (tree.top, *tree.children):
        order = sorted(siblings, key=lambda g: (*rank_key(float(usage[g]), tree.weight[g]), g))
        for place, g in enumerate(order, 1):
            rank[g] = place
    return rank


def rank_key(usage: float, weight: float) -> tuple[bool, float]:
    """Sort key of who stands first: usage over weight, weight 0 last (rule D5)."""
    return (weight == 0.0, usage / weight if weight else 0.0)
