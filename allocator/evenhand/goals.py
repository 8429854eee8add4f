"""What a plan reaches of the ranked goals, in exact arithmetic, from its decisions (rules O1 to O8)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.entitlement import Entitlement
from evenhand.fairness.group_value import wished_of
from evenhand.fairness.target import Target
from evenhand.outcome import ARRIVALS, Decision, Move, Outcome, Places
from evenhand.program.constraints.entitlement import GRAIN, demands_below, grains, whole_gangs
from evenhand.program.prices import (
    WEIGHT_ENVY,
    WEIGHT_LEAF,
    Prices,
    Worth,
    guarantee_weight,
    inner_weight,
)
from evenhand.snapshot import Snapshot

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Standing:
    """What a plan gives: to every group by type (budgeted, unallocated), and throughput of every leaf.

    allocated, unallocated : GPUs by group's own jobs and type, int [G, T]; throughput : of the group's own budgeted jobs,
    [G]; reserved ones count in the three last only (rule O8): charged GPUs and throughput in grains as GPUs, as O1 to O3
    count them, and exact throughput.
    """

    allocated: npt.NDArray[np.int64]
    unallocated: npt.NDArray[np.int64]
    throughput: FloatArray
    counted_charged: FloatArray
    counted_useful: FloatArray
    counted_throughput: FloatArray


def standing(snapshot: Snapshot, outcome: Outcome) -> Standing:
    """Add up what every group's own jobs hold under a plan."""
    s = snapshot
    shape = (len(s.tree.ids), len(s.types))
    allocated, unallocated = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    useful, charged, grained, counted = (np.zeros(shape[0]) for _ in range(4))
    for j, d in sorted(outcome.decisions.items()):
        g = int(s.group[j])
        if g < 0:
            continue
        if d.reserved_type >= 0:
            charged[g] += grains(int(s.size[j]) * int(s.rate_milli[d.reserved_type])) / GRAIN
            grained[g] += grains(int(s.size[j]) * int(s.speed_milli[j, d.reserved_type])) / GRAIN
            counted[g] += int(s.size[j]) * int(s.speed_milli[j, d.reserved_type]) / 1000
        if not d.places:
            continue
        if not s.budgeted[j]:
            unallocated[g, d.gpu_type] += d.gpus
            continue
        allocated[g, d.gpu_type] += d.gpus
        gain = d.gpus * int(s.speed_milli[j, d.gpu_type]) / 1000
        useful[g] += gain
        counted[g] += gain
        charged[g] += grains(d.gpus * int(s.rate_milli[d.gpu_type])) / GRAIN
        grained[g] += grains(d.gpus * int(s.speed_milli[j, d.gpu_type])) / GRAIN
    return Standing(allocated, unallocated, useful, charged, grained, counted)


@dataclass(frozen=True)
class GoalValue:
    """One goal: what the plan reaches, its unit, the weight of a unit (0: the value is already weighted)."""

    name: str
    value: float
    unit: str
    weight: float

    @property
    def part(self) -> float:
        """What it adds to the objective."""
        return self.value * self.weight


def below(snapshot: Snapshot, own: FloatArray) -> FloatArray:
    """Sums over each group and all groups below it, float [G]."""
    total = own.copy()
    for c in snapshot.tree.bottom_up:
        parent = snapshot.tree.parent[c]
        if parent >= 0:
            total[parent] += total[c]
    return total


def shortfalls(
    snapshot: Snapshot, entitled: Entitlement, target: Target, owed: tuple[int, ...], outcome: Outcome
) -> tuple[float, float, float]:
    """Weighted shortfall of guarantees, inner levels, leaves and owed gangs (O1 to O3), each 0 or more."""
    s, tree = snapshot, snapshot.tree
    got = standing(s, outcome)
    held = below(s, got.counted_charged)
    demands = demands_below(s)
    top = max(tree.height, default=0)
    guarantees = inner = leaves = 0.0
    for c in range(len(tree.ids)):
        if tree.groups[c].guaranteed_gpus is not None and entitled.guaranteed[c] > 0:
            need = whole_gangs(demands[c], float(entitled.guaranteed[c])) / GRAIN
            guarantees += guarantee_weight(top) * max(0.0, need - held[c])
        if tree.children[c]:
            need = whole_gangs(demands[c], float(entitled.entitled[c])) / GRAIN
            inner += inner_weight(tree.height[c]) * max(0.0, need - held[c])
    for i, g in enumerate(target.leaves):
        leaves += WEIGHT_LEAF * max(0.0, grains(int(target.aim_milli[i])) / GRAIN - got.counted_useful[int(g)])
    for j in owed:
        d = outcome.decisions[j]
        if not d.places and d.reserved_type < 0:
            leaves += WEIGHT_LEAF * int(s.size[j])
    return guarantees, inner, leaves


def largest_gangs(snapshot: Snapshot) -> FloatArray:
    """big: each group's largest own budgeted gang at its best type (GPUs), float [G]."""
    found = np.zeros(len(snapshot.tree.ids))
    jobs = np.flatnonzero(snapshot.budgeted)
    if jobs.size:
        np.maximum.at(
            found, snapshot.group[jobs], snapshot.size[jobs] * snapshot.speed_milli[jobs].max(axis=1, initial=0) / 1000
        )
    return found


def excess(snapshot: Snapshot, target: Target, got: Standing) -> FloatArray:
    """E1 by pair: GPUs that leaf l holds beyond what leaf i would accept and one gang, float [L, L]; i first."""
    leaves = target.leaves
    if not len(leaves):
        return np.zeros((0, 0))
    e = target.entitled
    bundles = got.allocated[leaves].astype(np.float64)
    biggest = largest_gangs(snapshot)[leaves]
    beyond = wished_of(target.values, bundles) - (got.counted_throughput[leaves] + biggest)[:, None]
    found = np.maximum(beyond * (e[None, :] / e[:, None]), 0.0)
    np.fill_diagonal(found, 0.0)
    return np.asarray(found)


def worth_of(prices: Prices, snapshot: Snapshot, job: int, d: Decision) -> Worth:
    """O4 to O6 of one decision."""
    s = snapshot
    if d.move is Move.WAIT:
        return Worth()
    if d.move is Move.PREEMPT:
        return prices.stops(job)
    runs = prices.runs(job, d.gpu_type, d.gpus, arrives=d.move in ARRIVALS)
    if d.move is Move.RESIZE:
        return runs + prices.resizes(int(s.held[job]), d.gpus)
    if d.move in {Move.MIGRATE, Move.REPAIR}:
        replaced = replaced_by_repair(s, job, d.places)
        return runs + (prices.moves_away(job) if replaced is None else prices.repairs(replaced))
    return runs


def replaced_by_repair(snapshot: Snapshot, job: int, places: Places) -> int | None:
    """GPUs that a placement replaces if it repairs a hit job, None if it is no repair (rule R2)."""
    s = snapshot
    if not s.hit[job]:
        return None
    stays = {n: g for n, g in s.placement[job] if n >= 0 and s.room[n] > 0 and not s.overfull[n]}
    if not stays:
        return None
    lost = Counter(g for n, g in s.placement[job] if n not in stays)
    after = dict(places)
    same_type = all(int(s.node_type[n]) == int(s.held_type[job]) for n in after)
    if not same_type or sum(after.values()) != int(s.held[job]) or any(after.get(n, 0) < g for n, g in stays.items()):
        return None
    added = {n: g - stays.get(n, 0) for n, g in after.items() if g > stays.get(n, 0)}
    worker = s.jobs[job].worker_gpus
    if worker is not None:
        mended = all(g % worker == 0 for g in added.values())
    else:
        mended = not (added.keys() & stays.keys()) and Counter(added.values()) == lost
    return sum(added.values()) if mended else None


def goals(
    snapshot: Snapshot, entitled: Entitlement, target: Target, owed: tuple[int, ...], outcome: Outcome
) -> tuple[GoalValue, ...]:
    """All goals of a plan in rank order; their parts sum to the objective."""
    prices = Prices(snapshot)
    guarantees, inner, leaves = shortfalls(snapshot, entitled, target, owed, outcome)
    envied = excess(snapshot, target, standing(snapshot, outcome))
    budgeted, spare = Worth(), 0.0
    for j, d in sorted(outcome.decisions.items()):
        if not snapshot.live[j]:
            continue
        worth = worth_of(prices, snapshot, j, d)
        if snapshot.budgeted[j]:
            budgeted = budgeted + worth
        else:
            spare += worth.total
    order = budgeted.order + _handovers(prices, snapshot, outcome.decisions)
    gpus = "GPUs short x weight of the level"
    return (
        GoalValue("guarantees", guarantees, gpus, -1.0),
        GoalValue("inner_levels", inner, gpus, -1.0),
        GoalValue("leaves", leaves, gpus, -1.0),
        GoalValue(
            "envy", float(envied.max(axis=0, initial=0.0).sum()), "GPUs held beyond what others accept", -WEIGHT_ENVY
        ),
        GoalValue("order", order, "GPUs x place in line", 1.0),
        GoalValue("work", budgeted.work, "GPUs at their best type for lookahead_s", 1.0),
        GoalValue("least_change", -budgeted.change, "price of stops, moves and resizes", -1.0),
        GoalValue("unallocated_use", spare, "order, work and change of unallocated jobs", prices.epsilon),
    )


def objective(values: tuple[GoalValue, ...]) -> float:
    """The weighted sum the round maximises (rule A4)."""
    return sum(v.part for v in values)


def _handovers(prices: Prices, snapshot: Snapshot, decisions: Mapping[int, Decision]) -> float:
    """O4: GPUs that higher priorities took over from lower ones of their group, per cut."""
    s = snapshot
    started: dict[tuple[int, int], int] = defaultdict(int)
    stopped: dict[tuple[int, int], int] = defaultdict(int)
    levels: dict[int, int] = {}
    for j, d in decisions.items():
        if not s.budgeted[j] or s.level_count[j] < 2:
            continue
        g, count = int(s.group[j]), int(s.level_count[j])
        levels[g] = count
        for cut in range(1, count):
            arrives = d.move is Move.START or (s.hit[j] and d.move in ARRIVALS)
            if arrives and s.level_rank[j] >= cut:
                started[g, cut] += d.gpus
            if d.move is Move.PREEMPT and not s.hit[j] and s.level_rank[j] < cut:
                stopped[g, cut] += int(s.held[j])
    return sum(prices.handover(levels[g]) * min(gpus, stopped[g, cut]) for (g, cut), gpus in sorted(started.items()))
