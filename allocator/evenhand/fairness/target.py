"""The fair target of a round (rules T1 to T5): bundles, throughput to aim at, figures to compare with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.entitlement import Entitlement
from evenhand.fairness.drawn import drawers_of, drawn_throughput
from evenhand.fairness.envy_free import envy_free
from evenhand.fairness.equal_throughput import equal_throughput
from evenhand.fairness.fair_share import fair_share
from evenhand.fairness.forced import least_slack
from evenhand.fairness.group_value import FloatArray, GroupValues, group_values, value_of
from evenhand.fairness.max_min import max_min, max_min_throughput
from evenhand.fairness.max_throughput import max_throughput
from evenhand.fairness.nash import nash
from evenhand.shapes import IntArray, strides, worker_size
from evenhand.snapshot import Snapshot
from evenhand.subset_sums import largest_sum_not_above, limit_milli
from evenhand_models import Objective

FORCED_SHARE = 4
"""What pins force is only told, and decides nothing: it is given this part of the work that the target is."""


@dataclass(frozen=True, eq=False)
class Target:
    """What every leaf that is owed something should get; L leaves, T types, throughput in GPUs.

    Attributes
    ----------
    leaves, entitled, floor : as in `GroupValues`; job_class : class of each job, -1 for those of no leaf, int [J].
    x : the fair bundles, GPUs, float [L, T] (T4).
    value : v_i(x_i), float [L] (T1); drawn : V_i, float [L] (T5).
    aim_milli : largest throughput of whole gangs not above V_i, thousandths, int [L] (T5).
    throughput : sum of V, what the certificate measures gaps by.
    best : whether x is proven best by the objective; where leaves are too many for that it is merely fair.
    work : simplex iterations that each program was allowed.
    upper_bound : throughput that budgeted jobs cannot exceed in any plan, however GPUs are divided.
    equal_split : sum of floors; max_min : throughput of the max-min division, None where it was not computed.
    """

    values: GroupValues
    leaves: IntArray
    entitled: FloatArray
    floor: FloatArray
    job_class: IntArray
    x: FloatArray
    value: FloatArray
    drawn: FloatArray
    aim_milli: IntArray
    throughput: float
    best: bool
    work: int
    upper_bound: float
    equal_split: float
    max_min: float | None


def fair_target(snapshot: Snapshot, entitlement: Entitlement) -> Target:
    """Divide the usable GPUs by the policy's objective."""
    values, job_class = group_values(snapshot, entitlement)
    work = iterations_within(len(values.cap), snapshot.policy.time_limit_s)
    x, best = _divide(values, snapshot.policy.objective, work)
    jobs, at = _jobs_of_leaves(snapshot, values)
    drawn = drawn_throughput(drawers_of(at, snapshot.size[jobs], snapshot.speed_milli[jobs]), x)
    return Target(
        values=values,
        leaves=values.leaves,
        entitled=values.entitled,
        floor=values.floor,
        job_class=job_class,
        x=x,
        value=value_of(values, x),
        drawn=drawn,
        aim_milli=_aims(snapshot, jobs, at, drawn),
        throughput=float(drawn.sum()),
        best=best,
        work=work,
        upper_bound=_upper_bound(snapshot),
        equal_split=float(values.floor.sum()),
        max_min=max_min_throughput(values),
    )


def forced_slack(target: Target, pinned: FloatArray) -> FloatArray:
    """Envy that pinned jobs force on any division: throughput, envious first, float [L, L].

    Parameters
    ----------
    pinned : GPUs that protected jobs of each class hold, float [K, T].
    """
    return least_slack(target.values, target.x, pinned, target.work // FORCED_SHARE)


def iterations_within(classes: int, time_limit_s: float) -> int:
    """Simplex iterations that took about a third of the time limit when measured; no clock is asked."""
    return int(time_limit_s / 3 / (50e-6 + 130e-9 * classes))


def _divide(values: GroupValues, objective: Objective, work: int) -> tuple[FloatArray, bool]:
    """The bundles, and whether they are proven best (T4)."""
    match objective:
        case Objective.ENVY_FREE:
            return envy_free(values, work)
        case Objective.MAX_THROUGHPUT:
            return max_throughput(values, work)
        case Objective.FAIR_SHARE:
            return fair_share(values), True
        case Objective.NASH:
            return nash(values, work)
        case Objective.EQUAL_THROUGHPUT:
            return equal_throughput(values, work)
        case Objective.MAX_MIN:
            return max_min(values, work)


def _upper_bound(snapshot: Snapshot) -> float:
    """All budgeted jobs split at will over all nodes that may hold some, cordoned ones too."""
    there = np.zeros(len(snapshot.types))
    np.add.at(there, snapshot.node_type, snapshot.room)
    jobs = np.flatnonzero(snapshot.budgeted)
    one = np.zeros(len(jobs), dtype=np.int64)
    together = drawers_of(one, snapshot.size[jobs], snapshot.speed_milli[jobs])
    return float(drawn_throughput(together, there[None, :])[0])


def _jobs_of_leaves(snapshot: Snapshot, values: GroupValues) -> tuple[IntArray, IntArray]:
    """Budgeted jobs of the target's leaves, and the position of the leaf of each."""
    place = np.full(len(snapshot.tree.ids), -1, dtype=np.int64)
    place[values.leaves] = np.arange(len(values.leaves))
    jobs = np.flatnonzero(snapshot.budgeted)
    at = place[snapshot.group[jobs]]
    return jobs[at >= 0], at[at >= 0]


def _aims(snapshot: Snapshot, jobs: IntArray, at: IntArray, drawn: FloatArray) -> IntArray:
    """Whole gangs not above what could be drawn, thousandths, int [L]."""
    speed = snapshot.speed_milli[jobs].max(axis=1, initial=0)
    least, size = snapshot.least[jobs], snapshot.size[jobs]
    elastic = np.flatnonzero(least < size).tolist()
    pieces = [strides(int(least[k]), int(size[k]), worker_size(snapshot.jobs[jobs[k]])) for k in elastic]
    part = size.copy()
    part[elastic] = [p[0] for p in pieces]
    further = np.repeat(elastic, [len(p) - 1 for p in pieces]).astype(np.int64)
    best = np.append(part, [g for p in pieces for g in p[1:]]).astype(np.int64)
    best *= np.append(speed, speed[further])
    at = np.append(at, at[further])
    order = np.argsort(at, kind="stable")
    ends = np.cumsum(np.bincount(at, minlength=len(drawn)))
    parts = np.split(best[order], ends[:-1]) if len(drawn) else []
    return np.array(
        [largest_sum_not_above(part, limit_milli(float(v))) for part, v in zip(parts, drawn, strict=True)],
        dtype=np.int64,
    )
