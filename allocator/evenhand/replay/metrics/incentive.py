"""Sharing incentive over time: does every group do at least as well as with its own slice of every type?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.replay.metrics.delivery import (
    FloatArray,
    HourlyDelivery,
    capacity_by_hour,
    entitled_share,
)
from evenhand.replay.metrics.integrals import by_hour
from evenhand.replay.result import ReplayResult
from evenhand.replay.rules import JobEnd

TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class SharingIncentive:
    """Throughput of groups with jobs of their own against that of their slice, over groups and hours with a slice.

    Attributes
    ----------
    kept_hours : share of (group, hour) pairs in which the group had at least the throughput of its slice.
    delivered : sum of min(throughput, slice) over the sum of slices.
    by_hour : the same for each hour; None where no slice was owed.
    """

    kept_hours: float | None
    delivered: float | None
    by_hour: tuple[float | None, ...]


def sharing_incentive(result: ReplayResult, hours: HourlyDelivery) -> SharingIncentive:
    """Compare with slices in proportion to nominal shares; demand and speeds are those of the hour."""
    floor, got = slice_throughput(result), throughput(result)
    some = floor > TOLERANCE
    met = np.minimum(got, floor)
    total = floor.sum(axis=0)
    by_hour = tuple(
        float(m / t) if t > TOLERANCE else None for m, t in zip(met.sum(axis=0).tolist(), total.tolist(), strict=True)
    )
    if not some.any():
        return SharingIncentive(None, None, by_hour)
    kept = got[some] >= floor[some] * (1 - 1e-6)
    return SharingIncentive(float(kept.mean()), float(met.sum() / floor.sum()), by_hour)


def throughput(result: ReplayResult) -> FloatArray:
    """GPU-hours at true speed of each group's own budgeted jobs, float [G, H]."""
    stays, jobs = result.stays, result.jobs
    held = stays.charged & (stays.group >= 0)
    work = stays.gpus * jobs.speed_milli[stays.job, stays.gpu_type] if stays.job.size else stays.gpus
    rows = by_hour(
        stays.start_s[held], stays.end_s[held], work[held], stays.group[held], len(result.tree.ids), result.end_s
    )
    return rows / 3_600_000.0


def slice_throughput(result: ReplayResult) -> FloatArray:
    """What the group's own jobs of the hour would do on its slice of every type, best types first, float [G, H]."""
    jobs, end, groups = result.jobs, result.end_s, len(result.tree.ids)
    wants = jobs.budgeted & (jobs.group >= 0) & (jobs.end != JobEnd.INFEASIBLE)
    until = np.where(jobs.end_s >= 0, jobs.end_s, end)[wants]
    start, group, size = jobs.submit_s[wants], jobs.group[wants], jobs.size[wants]
    left = by_hour(start, until, size, group, groups, end) / 3_600.0
    own_jobs = np.bincount(group, minlength=groups) > 0
    share = entitled_share(result.tree, own_jobs)
    for g in np.flatnonzero(own_jobs).tolist():
        if result.tree.children[g]:
            kids = sum(result.tree.weight[k] for k in result.tree.children[g])
            share[g] *= result.tree.own_weight(g) / (kids + result.tree.own_weight(g))
    demand = np.maximum(left, 1e-12)
    there = capacity_by_hour(result.capacity, end)
    speeds = [
        by_hour(start, until, size * jobs.speed_milli[wants, t], group, groups, end) / 3_600_000.0 / demand
        for t in range(len(result.capacity.types))
    ]
    table = np.array(speeds).reshape(len(speeds), *left.shape)
    order = np.argsort(-table, axis=0, kind="stable")
    total = np.zeros_like(left)
    for rank in range(len(speeds)):
        t = order[rank]
        speed = np.take_along_axis(table, t[None], axis=0)[0]
        slices = share[:, None] * there[t, np.arange(left.shape[1])[None, :]]
        used = np.where(speed > 0, np.minimum(slices, left), 0.0)
        total += used * speed
        left = left - used
    return np.asarray(total, dtype=np.float64)


def turnover(result: ReplayResult, hours: HourlyDelivery) -> float:
    """How much shares swing: GPU-hours that change hands from one hour to the next, over GPU-hours received."""
    lowest = [c for c in range(len(result.tree.ids)) if not result.tree.children[c]]
    received = hours.received[lowest]
    total = float(received.sum())
    return float(np.abs(np.diff(received, axis=1)).sum() / 2 / total) if total else 0.0
