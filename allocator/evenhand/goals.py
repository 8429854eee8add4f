"""What a plan reaches of the ranked goals, in exact arithmetic, from its decisions (rules O1 to O8)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.claims import claims, owed_weights
from evenhand.entitlement import Entitlement
from evenhand.fairness.group_value import wished_of
from evenhand.fairness.target import Target
from evenhand.gangs_below import GRAIN, GangsBelow, in_grains, in_grains_held
from evenhand.outcome import ARRIVALS, Decision, Move, Outcome, Places, Table
from evenhand.program.prices import (
    WEIGHT_ENVY,
    Prices,
    Worth,
    guarantee_weight,
)
from evenhand.shapes import BoolArray, IntArray
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
    s, all_ = snapshot, outcome.table
    known = s.group[all_.job] >= 0
    runs = known & (all_.gpus > 0)
    reserved = known & (all_.reserved_type >= 0)
    spare = runs & ~s.budgeted[all_.job]
    mine = runs & ~spare
    counts = np.flatnonzero(mine | reserved)
    jobs = all_.job[counts]
    kind = np.where(reserved[counts], all_.reserved_type[counts], all_.gpu_type[counts])
    gpus = np.where(reserved[counts], s.size[jobs], all_.gpus[counts])
    speed = gpus * s.speed_milli[jobs, kind]
    group, own = s.group[jobs], mine[counts]
    return Standing(
        allocated=_by_type(s, all_, mine),
        unallocated=_by_type(s, all_, spare),
        throughput=_by_group(s, group[own], speed[own] / 1000),
        counted_charged=_by_group(s, group, in_grains_held(gpus * s.rate_milli[kind]) / GRAIN),
        counted_useful=_by_group(s, group, in_grains_held(speed) / GRAIN),
        counted_throughput=_by_group(s, group, speed / 1000),
    )


def _by_group(s: Snapshot, group: IntArray, values: FloatArray) -> FloatArray:
    """Sums by group, one value after the other in their order, float [G]."""
    return np.asarray(np.bincount(group, values, len(s.tree.ids)), dtype=np.float64)


def _by_type(s: Snapshot, table: Table, which: BoolArray) -> IntArray:
    """GPUs of some decisions by group and type, int [G, T]."""
    found = np.zeros((len(s.tree.ids), len(s.types)), dtype=np.int64)
    np.add.at(found, (s.group[table.job[which]], table.gpu_type[which]), table.gpus[which])
    return found


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
    """Sums over each group and all groups below it, float [G] or [G, n]."""
    total = own.copy()
    for c in snapshot.tree.bottom_up:
        parent = snapshot.tree.parent[c]
        if parent >= 0:
            total[parent] += total[c]
    return total


def largest_gangs(snapshot: Snapshot) -> FloatArray:
    """big: each group's largest own budgeted gang at its best type (GPUs), float [G]."""
    found = np.zeros(len(snapshot.tree.ids))
    jobs = np.flatnonzero(snapshot.budgeted)
    if jobs.size:
        np.maximum.at(
            found, snapshot.group[jobs], snapshot.size[jobs] * snapshot.speed_milli[jobs].max(axis=1, initial=0) / 1000
        )
    return found


def excess(
    snapshot: Snapshot, target: Target, allocated: IntArray | FloatArray, counted_throughput: FloatArray
) -> FloatArray:
    """E1 by pair: GPUs that leaf l holds beyond what leaf i would accept and one gang, float [L, L]; i first.

    Parameters
    ----------
    allocated : GPUs of groups by type, [G, T]; counted_throughput : of groups, float [G]; both as in `Standing`.
    """
    leaves = target.leaves
    if not len(leaves):
        return np.zeros((0, 0))
    e = target.entitled
    bundles = allocated[leaves].astype(np.float64)
    biggest = largest_gangs(snapshot)[leaves]
    beyond = wished_of(target.values, bundles) - (counted_throughput[leaves] + biggest)[:, None]
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


class Goals:
    """The goals of a round; what depends on no plan is worked out once."""

    def __init__(self, snapshot: Snapshot, entitled: Entitlement, target: Target, owed: tuple[int, ...]) -> None:
        self._s, self._target, self._prices = snapshot, target, Prices(snapshot)
        s = snapshot
        tree, gangs, weight = s.tree, GangsBelow(s), claims(s, entitled)
        top = guarantee_weight(max(tree.height, default=0))
        self._guarantees = [
            (c, gangs.within(c, float(entitled.guaranteed[c])), top)
            for c, group in enumerate(tree.groups)
            if group.guaranteed_gpus is not None and entitled.guaranteed[c] > 0
        ]
        self._inner = [
            (c, gangs.within(c, float(entitled.entitled[c])), weight.inner[c])
            for c, children in enumerate(tree.children)
            if children
        ]
        self._aims = in_grains(np.asarray(target.aim_milli, dtype=np.int64)) / GRAIN
        self._leaf_weights = [weight.leaf[g] for g in target.leaves.tolist()]
        self._owed = [(j, w * int(s.size[j])) for j, w in owed_weights(s, entitled, weight, owed).items()]

    def of(self, outcome: Outcome) -> tuple[GoalValue, ...]:
        """All goals of a plan in rank order; their parts sum to the objective."""
        s, target = self._s, self._target
        got = standing(s, outcome)
        guarantees, inner, leaves = self._shortfalls(outcome, got)
        envied = excess(s, target, got.allocated, got.counted_throughput)
        worths = _worths(self._prices, s, outcome)
        order, work, change = (_sum(column) for column in worths[:, s.budgeted[outcome.table.job]])
        spare = worths[:, (s.live & ~s.budgeted)[outcome.table.job]]
        order += _handovers(self._prices, s, outcome.table)
        gpus = "GPUs short x weight of the level"
        return (
            GoalValue("guarantees", guarantees, gpus, -1.0),
            GoalValue("inner_levels", inner, gpus, -1.0),
            GoalValue("leaves", leaves, gpus, -1.0),
            GoalValue(
                "envy",
                float(envied.max(axis=0, initial=0.0).sum()),
                "GPUs held beyond what others accept",
                -WEIGHT_ENVY,
            ),
            GoalValue("order", order, "GPUs x place in line", 1.0),
            GoalValue("work", work, "GPUs at their best type for lookahead_s", 1.0),
            GoalValue("least_change", -change, "price of stops, moves and resizes", -1.0),
            GoalValue(
                "unallocated_use",
                _sum(spare[0] + spare[1] + spare[2]),
                "order, work and change of unallocated jobs",
                self._prices.epsilon,
            ),
        )

    def _shortfalls(self, outcome: Outcome, got: Standing) -> tuple[float, float, float]:
        """Weighted shortfall of guarantees, inner levels, leaves and owed gangs (O1 to O3), each 0 or more."""
        held = below(self._s, got.counted_charged).tolist()
        guarantees = inner = leaves = 0.0
        for c, need, weight in self._guarantees:
            guarantees += weight * max(0.0, need - held[c])
        for c, need, weight in self._inner:
            inner += weight * max(0.0, need - held[c])
        missing = np.maximum(0.0, self._aims - got.counted_useful[self._target.leaves])
        for weight, short in zip(self._leaf_weights, missing.tolist(), strict=True):
            leaves += weight * short
        for j, weight in self._owed:
            d = outcome.decisions[j]
            if not d.places and d.reserved_type < 0:
                leaves += weight
        return guarantees, inner, leaves


def goals(
    snapshot: Snapshot, entitled: Entitlement, target: Target, owed: tuple[int, ...], outcome: Outcome
) -> tuple[GoalValue, ...]:
    """All goals of one plan."""
    return Goals(snapshot, entitled, target, owed).of(outcome)


def objective(values: tuple[GoalValue, ...]) -> float:
    """The weighted sum the round maximises (rule A4)."""
    return sum(v.part for v in values)


def _sum(values: FloatArray) -> float:
    """Add up one after the other, in the order of the jobs."""
    return float(np.cumsum(values)[-1]) if values.size else 0.0


def _worths(prices: Prices, snapshot: Snapshot, outcome: Outcome) -> FloatArray:
    """O4 to O6 of all decisions: order, work and change, float [3, D]; the few repairs and resizes singly."""
    s, all_ = snapshot, outcome.table
    found = np.zeros((3, len(all_.job)))
    live, starts, stops = s.live[all_.job], all_.among(Move.START), all_.among(Move.PREEMPT)
    moves = all_.among(Move.MIGRATE) & ~s.hit[all_.job]
    runs = np.flatnonzero((starts | moves | all_.among(Move.KEEP)) & live)
    jobs = all_.job[runs]
    worths = prices.all_run(jobs, all_.gpu_type[runs], all_.gpus[runs], (starts | moves)[runs])
    worths += prices.all_move_away(jobs).where(moves[runs])
    found[:, runs] = worths.order, worths.work, worths.change
    stopped = np.flatnonzero(stops & live)
    worths = prices.all_stop(all_.job[stopped])
    found[:, stopped] = worths.order, worths.work, worths.change
    others = ~(starts | moves | stops | all_.among(Move.KEEP, Move.WAIT)) & live
    for i in np.flatnonzero(others).tolist():
        j = int(all_.job[i])
        worth = worth_of(prices, s, j, outcome.decisions[j])
        found[:, i] = worth.order, worth.work, worth.change
    return found


def _handovers(prices: Prices, snapshot: Snapshot, table: Table) -> float:
    """O4: GPUs that higher priorities took over from lower ones of their group, per cut."""
    s = snapshot
    several = s.budgeted[table.job] & (s.level_count[table.job] > 1)
    hit = s.hit[table.job]
    comes = several & (table.among(Move.START) | (hit & table.among(*ARRIVALS)))
    goes = several & table.among(Move.PREEMPT) & ~hit
    group = s.group[table.job]
    total = 0.0
    for g in np.intersect1d(group[comes], group[goes]).tolist():
        here, there = comes & (group == g), goes & (group == g)
        levels = int(s.level_count[table.job[here][0]])
        started = np.bincount(s.level_rank[table.job[here]], table.gpus[here], levels)
        stopped = np.bincount(s.level_rank[table.job[there]], s.held[table.job[there]], levels)
        above, under = started[::-1].cumsum()[::-1][1:], stopped.cumsum()[:-1]
        for gpus in np.minimum(above, under).tolist():
            total += prices.handover(levels) * gpus
    return total
