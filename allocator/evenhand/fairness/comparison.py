"""Every objective on one state, at the same entitlements: what fairness costs and what each keeps of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from evenhand.entitlement import Entitlement, entitle
from evenhand.fairness.group_value import FloatArray, GroupValues
from evenhand.fairness.pareto import pareto_gap
from evenhand.fairness.swapped import over_floor, value_of_others
from evenhand.fairness.target import Target, fair_target
from evenhand.snapshot import Snapshot, take_snapshot
from evenhand_models import ClusterState, GroupOutcome, Objective, ObjectiveComparison, ObjectiveOutcome, Owed, Policy

_DUST = 1e-9
"""GPUs, and shares of a floor, that are the solver's rounding."""


def compare_objectives(state: ClusterState, policy: Policy | None = None) -> ObjectiveComparison:
    """Divide the usable GPUs by every objective and hold the divisions against each other.

    Parameters
    ----------
    state : the cluster; `state.now` is the only clock.
    policy : as for a round; its `objective` does not matter here. Defaults if left out.

    Returns
    -------
    ObjectiveComparison
        Fractional divisions (rule T4), before gangs and nodes come in. What protected jobs hold does not matter:
        a target ignores who came first. Equal input, equal answer.
    """
    snapshot = take_snapshot(state, policy or Policy())
    entitled = entitle(snapshot)
    targets = {objective: _target(snapshot, entitled, objective) for objective in Objective}
    one = targets[Objective.FAIR_SHARE]
    return ObjectiveComparison(
        now=snapshot.now,
        throughput_unit=snapshot.policy.throughput_unit,
        capacity=_by_type(snapshot, snapshot.capacity.astype(np.float64)),
        owed=_owed(snapshot, one.values),
        equal_split=one.equal_split,
        upper_bound=one.upper_bound,
        objectives=tuple(_outcome(snapshot, objective, found, one) for objective, found in targets.items()),
    )


def _target(snapshot: Snapshot, entitled: Entitlement, objective: Objective) -> Target:
    policy = snapshot.policy.model_copy(update={"objective": objective})
    return fair_target(replace(snapshot, policy=policy), entitled)


def _owed(snapshot: Snapshot, values: GroupValues) -> tuple[Owed, ...]:
    return tuple(
        Owed(
            group=snapshot.tree.ids[int(leaf)],
            entitled_gpus=float(values.entitled[i]),
            slice=_by_type(snapshot, values.slices[i]),
            floor=float(values.floor[i]),
        )
        for i, leaf in enumerate(values.leaves)
    )


def _outcome(snapshot: Snapshot, objective: Objective, found: Target, equal: Target) -> ObjectiveOutcome:
    """Judge one division."""
    values = found.values
    envy = np.maximum(over_floor(values, value_of_others(values, found.x) - found.value[:, None]), 0.0)
    envy = np.where(envy > _DUST, envy, 0.0)
    np.fill_diagonal(envy, 0.0)
    incentive = np.divide(found.value, values.floor, out=np.full(len(found.value), np.inf), where=values.floor > 0)
    served = values.floor > 0
    worst = int(incentive.argmin()) if served.any() else None
    pareto = pareto_gap(values, found.x, found.work)
    idle = np.maximum(values.capacity - found.x.sum(axis=0), 0.0)
    idle = np.where(idle > _DUST * np.maximum(values.capacity, 1), idle, 0.0)
    return ObjectiveOutcome(
        objective=objective,
        proven=found.best,
        throughput=found.throughput,
        value=float(found.value.sum()),
        over_equal_split=found.throughput / equal.throughput if equal.throughput > 0 else None,
        least_sharing_incentive=None if worst is None else float(incentive[worst]),
        least_served=None if worst is None else snapshot.tree.ids[int(values.leaves[worst])],
        max_envy=float(envy.max(initial=0.0)),
        pareto_gap=None if pareto is None else pareto.gap,
        idle=_by_type(snapshot, idle),
        idle_gpus=float(idle.sum()),
        groups=tuple(
            GroupOutcome(
                group=snapshot.tree.ids[int(leaf)],
                gpus=_by_type(snapshot, found.x[i]),
                throughput=float(found.drawn[i]),
                sharing_incentive=float(incentive[i]) if served[i] else None,
                max_envy=float(envy[i].max(initial=0.0)),
            )
            for i, leaf in enumerate(values.leaves)
        ),
    )


def _by_type(snapshot: Snapshot, amounts: FloatArray) -> dict[str, float]:
    """What there is of each type, types of which there is nothing left out."""
    return {name: float(n) for name, n in zip(snapshot.types, amounts, strict=True) if n > 0}
