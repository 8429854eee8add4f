"""The fair target of a round: bundles by type, throughput to aim at, and what other divisions would bring (rules T1 to T5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.entitlement import Entitlement
from evenhand.fairness.drawn import drawers_of, drawn_throughput
from evenhand.fairness.envy_free import envy_free
from evenhand.fairness.group_value import FloatArray, GroupValues, group_values, value_of
from evenhand.shapes import IntArray
from evenhand.snapshot import Snapshot
from evenhand.subset_sums import largest_sum_not_above, limit_milli


@dataclass(frozen=True, eq=False)
class Target:
    """What every leaf that is owed something should get; L leaves, T types, throughput in GPUs.

    Attributes
    ----------
    leaves, entitled, weights, cap, slices, floor, pi : as in `GroupValues`.
    x : the fair bundles, GPUs, float [L, T] (T4).
    value : v_i(x_i), float [L] (T1); drawn : V_i, float [L] (T5).
    aim_milli : largest throughput of whole gangs not above V_i, thousandths, int [L] (T5).
    throughput : sum of V, what the certificate measures gaps by.
    """

    values: GroupValues
    leaves: IntArray
    entitled: FloatArray
    weights: FloatArray
    cap: IntArray
    slices: FloatArray
    floor: FloatArray
    pi: FloatArray
    x: FloatArray
    value: FloatArray
    drawn: FloatArray
    aim_milli: IntArray
    throughput: float


def fair_target(snapshot: Snapshot, entitlement: Entitlement) -> Target:
    """Divide the usable GPUs by the policy's objective."""
    values = group_values(snapshot, entitlement)
    x = envy_free(values)
    jobs, at = _jobs_of_leaves(snapshot, values)
    drawn = drawn_throughput(drawers_of(at, snapshot.size[jobs], snapshot.speed_milli[jobs]), x)
    return Target(
        values=values, leaves=values.leaves, entitled=values.entitled, weights=values.weights, cap=values.cap,
        slices=values.slices, floor=values.floor, pi=values.pi, x=x, value=value_of(values, x), drawn=drawn,
        aim_milli=_aims(snapshot, jobs, at, drawn), throughput=float(drawn.sum()),
    )  # fmt: skip


def _jobs_of_leaves(snapshot: Snapshot, values: GroupValues) -> tuple[IntArray, IntArray]:
    """Budgeted jobs of the target's leaves, and the position of the leaf of each."""
    place = np.full(len(snapshot.tree.ids), -1, dtype=np.int64)
    place[values.leaves] = np.arange(len(values.leaves))
    jobs = np.flatnonzero(snapshot.budgeted)
    at = place[snapshot.group[jobs]]
    return jobs[at >= 0], at[at >= 0]


def _aims(snapshot: Snapshot, jobs: IntArray, at: IntArray, drawn: FloatArray) -> IntArray:
    """Whole gangs not above what could be drawn, thousandths, int [L]."""
    best = snapshot.size[jobs] * snapshot.speed_milli[jobs].max(axis=1, initial=0)
    order = np.argsort(at, kind="stable")
    ends = np.cumsum(np.bincount(at, minlength=len(drawn)))
    parts = np.split(best[order], ends[:-1]) if len(drawn) else []
    return np.array(
        [largest_sum_not_above(part, limit_milli(float(v))) for part, v in zip(parts, drawn, strict=True)],
        dtype=np.int64,
    )
