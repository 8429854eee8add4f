"""Owed against received, by group and hour: what Ai2 reports of its scheduler.

Owed in an hour = min(what the group's budgeted jobs wanted, its product of shares times the capacity), nothing
redistributed. Received = what its budgeted jobs held. Both in charged GPUs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.replay.metrics.integrals import by_hour, hour_lengths
from evenhand.replay.result import Capacity, IntArray, ReplayResult
from evenhand.replay.rules import JobEnd
from evenhand.tree import ROOT, Tree

FloatArray = npt.NDArray[np.float64]
_MILLI_SECONDS = 3_600_000.0
"""Thousandths of a GPU, times seconds, in a GPU-hour."""


@dataclass(frozen=True, eq=False)
class HourlyDelivery:
    """Charged GPU-hours by group of the tree (everything below included) and hour, float [G, H]."""

    demanded: FloatArray
    owed: FloatArray
    received: FloatArray


@dataclass(frozen=True, slots=True)
class GroupDelivery:
    """One group's account in charged GPU-hours; shares are None where nothing was owed."""

    group: str
    demanded_gpu_hours: float
    owed_gpu_hours: float
    received_gpu_hours: float
    over_period: float | None
    in_hour: float | None


@dataclass(frozen=True, slots=True)
class Delivery:
    """Owed against received over the groups of one level of the tree.

    Attributes
    ----------
    level : depth in the tree, 0 at the top.
    over_period : sum of min(received, owed) of whole periods, over the sum of owed; None: nothing was owed.
    in_hour : the same hour by hour.
    worst_over_period, worst_in_hour : the least of any group.
    """

    level: int
    over_period: float | None
    in_hour: float | None
    worst_over_period: float | None
    worst_in_hour: float | None
    groups: tuple[GroupDelivery, ...]

    def at_least(self, share: float) -> int:
        """How many groups got at least that share of what they were owed over the period."""
        return sum(g.over_period is not None and g.over_period >= share for g in self.groups)


def entitled_share(tree: Tree, own_jobs: npt.NDArray[np.bool_]) -> FloatArray:
    """Product of shares down to each group, float [G]; where a group with children has jobs, they are one more child."""
    share = np.zeros(len(tree.ids))
    for node in (ROOT, *reversed(tree.bottom_up)):
        children = tree.top if node == ROOT else tree.children[node]
        own = tree.own_weight(node) if node != ROOT and children and own_jobs[node] else 0.0
        total = sum(tree.weight[k] for k in children) + own
        above = 1.0 if node == ROOT else share[node]
        for k in children:
            share[k] = above * tree.weight[k] / total if total else 0.0
    return share


def capacity_by_hour(capacity: Capacity, end_s: int) -> FloatArray:
    """GPU-hours that were there by type, float [T, H]."""
    ends = np.append(capacity.at_s[1:], end_s)
    kinds = len(capacity.types)
    rows = [
        by_hour(capacity.at_s, ends, capacity.gpus[:, t], np.zeros(len(ends), dtype=np.int64), 1, end_s)[0]
        for t in range(kinds)
    ]
    return np.array(rows, dtype=np.float64).reshape(kinds, -1) / 3_600.0


def summed_up(tree: Tree, own: npt.NDArray[np.float64]) -> FloatArray:
    """Sums over each group and all below it, along the first axis."""
    total = own.astype(np.float64)
    for c in tree.bottom_up:
        if tree.parent[c] != ROOT:
            total[tree.parent[c]] += total[c]
    return total


def hourly(result: ReplayResult) -> HourlyDelivery:
    """Work out what every group was owed and received in every hour."""
    jobs, stays, tree, end = result.jobs, result.stays, result.tree, result.end_s
    groups = len(tree.ids)
    wants = jobs.budgeted & (jobs.group >= 0) & (jobs.end != JobEnd.INFEASIBLE)
    until = np.where(jobs.end_s >= 0, jobs.end_s, end)
    demanded = by_hour(jobs.submit_s[wants], until[wants], jobs.demand_milli[wants], jobs.group[wants], groups, end)
    held = stays.charged & (stays.group >= 0)
    charged = stays.gpus * result.capacity.rate_milli[stays.gpu_type]
    received = by_hour(stays.start_s[held], stays.end_s[held], charged[held], stays.group[held], groups, end)
    demand = summed_up(tree, demanded / _MILLI_SECONDS)
    own_jobs = np.bincount(jobs.group[wants], minlength=groups) > 0
    there = result.capacity.rate_milli / 1000.0 @ capacity_by_hour(result.capacity, end)
    slices = entitled_share(tree, own_jobs)[:, None] * there[None, :]
    return HourlyDelivery(demand, np.minimum(demand, slices), summed_up(tree, received / _MILLI_SECONDS))


def delivery(tree: Tree, hours: HourlyDelivery) -> tuple[Delivery, ...]:
    """Sum up by level of the tree, from the top down."""
    depth = np.array([len(path) - 1 for path in tree.path], dtype=np.int64)
    return tuple(
        _level(tree, hours, level, np.flatnonzero(depth == level)) for level in range(int(depth.max(initial=-1)) + 1)
    )


def _level(tree: Tree, hours: HourlyDelivery, level: int, chosen: IntArray) -> Delivery:
    owed, received = hours.owed[chosen], hours.received[chosen]
    met = np.minimum(owed, received).sum(axis=1)
    whole = np.minimum(owed.sum(axis=1), received.sum(axis=1))
    groups = tuple(
        GroupDelivery(
            tree.ids[c],
            float(hours.demanded[c].sum()),
            float(owed[i].sum()),
            float(received[i].sum()),
            _ratio(whole[i], owed[i].sum()),
            _ratio(met[i], owed[i].sum()),
        )
        for i, c in enumerate(chosen.tolist())
    )
    total = float(owed.sum())
    return Delivery(
        level, _ratio(whole.sum(), total), _ratio(met.sum(), total),
        min((g.over_period for g in groups if g.over_period is not None), default=None),
        min((g.in_hour for g in groups if g.in_hour is not None), default=None),
        groups,
    )  # fmt: skip


def _ratio(part: float, whole: float) -> float | None:
    return float(part / whole) if whole > 0 else None


def length_weights(end_s: int) -> FloatArray:
    """Hours as parts of an hour, float [H]."""
    return hour_lengths(end_s) / 3_600.0
