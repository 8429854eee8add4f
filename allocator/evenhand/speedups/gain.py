"""What a misreport gains: the fair target by what is declared and by the truth, both valued by the truth."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from evenhand.entitlement import entitle
from evenhand.fairness.drawn import drawers_of, drawn_throughput
from evenhand.fairness.group_value import FloatArray
from evenhand.fairness.target import fair_target
from evenhand.shapes import BoolArray
from evenhand.snapshot import Snapshot, take_snapshot
from evenhand.speedups.in_use import observed_vectors
from evenhand_models import (
    ClusterState,
    FieldError,
    InvalidInput,
    MisreportGain,
    Objective,
    Policy,
    SpeedupFlag,
    SpeedupReport,
)

_OBJECTIVE = "/policy/objective"
_DUST = 1e-9


def misreport_gain(
    state: ClusterState,
    policy: Policy,
    group: str,
    *,
    factors: Mapping[str, float] | None = None,
    honest: Mapping[str, Mapping[str, float]] | None = None,
) -> MisreportGain:
    """Measure what a group gains by what it declares, all others declaring what they do.

    Parameters
    ----------
    state, policy : as for a round; the policy names the objective.
    group : id of the group; all below it included.
    factors : what the group multiplies its speedups by, by type; the state is taken to hold the truth.
    honest : the group's true speedups by job and type; the state is taken to hold what is declared, and jobs
        that are not named, or of other groups, to declare the truth. Exactly one of the two is given.

    Returns
    -------
    MisreportGain
        Throughput that the group's jobs draw from its fractional target, if the target goes by what is declared
        and if it goes by the truth, in GPUs of the policy's unit and by true speedups both times.

    Raises
    ------
    InvalidInput
        If there is no such group, or the objective is one that this version does not have.
    """
    if (factors is None) == (honest is None):
        raise ValueError("give either factors or honest")
    if group not in {g.id for g in state.groups}:
        raise InvalidInput([FieldError("/group", f"there is no group {group!r}.")])
    if factors is not None:
        truth, told = state, with_factors(state, group, factors)
    else:
        truth, told = with_vectors(state, group, honest or {}), state
    true, false = take_snapshot(truth, policy), take_snapshot(told, policy)
    fair, skewed = _values(true, _bundles(true)), _values(true, _bundles(false))
    inside = _below(true, group)
    mine, yours = float(fair[inside].sum()), float(fair[~inside].sum())
    declared, left = float(skewed[inside].sum()), float(skewed[~inside].sum())
    return MisreportGain(
        group=group,
        objective=policy.objective,
        honest=mine,
        declared=declared,
        gain=_share(declared, mine),
        others=_share(left, yours),
    )


def misreport_gains(
    state: ClusterState,
    policy: Policy,
    group: str,
    *,
    factors: Mapping[str, float] | None = None,
    honest: Mapping[str, Mapping[str, float]] | None = None,
) -> tuple[MisreportGain, ...]:
    """The same under every objective there is, in the order of their list."""
    found = []
    for objective in Objective:
        asked = policy.model_copy(update={"objective": objective})
        try:
            found.append(misreport_gain(state, asked, group, factors=factors, honest=honest))
        except InvalidInput as refused:
            if any(error.pointer != _OBJECTIVE for error in refused.errors):
                raise
    return tuple(found)


def gains_of_flagged(state: ClusterState, report: SpeedupReport, policy: Policy) -> tuple[MisreportGain, ...]:
    """What every flagged group of a report gains under each objective, the observed speedups taken for the truth.

    Groups by id; only those that are in the tree.
    """
    wrong = (SpeedupFlag.OVERDECLARED, SpeedupFlag.UNDERDECLARED)
    known = {g.id for g in state.groups}
    flagged = sorted({entry.group for entry in report.groups if entry.flag in wrong} & known)
    truth = observed_vectors(state, report)
    return tuple(gain for name in flagged for gain in misreport_gains(state, policy, name, honest=truth))


def with_factors(state: ClusterState, group: str, factors: Mapping[str, float]) -> ClusterState:
    """The state if a group, all below it included, multiplied its speedups by type."""
    below = _ids_below(state, group)
    vectors = {
        job.id: {t: float(x) * factors.get(t, 1.0) for t, x in job.speedup.items()}
        for job in state.jobs
        if job.group in below
    }
    return _replaced(state, vectors)


def with_vectors(state: ClusterState, group: str, vectors: Mapping[str, Mapping[str, float]]) -> ClusterState:
    """The state if the jobs of a group, all below it included, declared these speedups, by job and type."""
    below = _ids_below(state, group)
    return _replaced(state, {j.id: vectors[j.id] for j in state.jobs if j.group in below and j.id in vectors})


def _replaced(state: ClusterState, vectors: Mapping[str, Mapping[str, float]]) -> ClusterState:
    """The state with some vectors replaced; values are validated as those of a job are."""
    jobs = tuple(
        type(job).model_validate(dict(job) | {"speedup": dict(vectors[job.id])}) if job.id in vectors else job
        for job in state.jobs
    )
    return state.model_copy(update={"jobs": jobs})


def _ids_below(state: ClusterState, group: str) -> set[str]:
    """Ids of a group and all groups below it."""
    parent = {g.id: g.parent for g in state.groups}
    found = set()
    for name in parent:
        at: str | None = name
        while at is not None and at != group:
            at = parent[at]
        if at is not None:
            found.add(name)
    return found


def _below(snapshot: Snapshot, group: str) -> BoolArray:
    """Whether each group is the one asked for or below it, bool [G]."""
    top = snapshot.tree.index(group)
    return np.array([top in path for path in snapshot.tree.path], dtype=bool)


def _bundles(snapshot: Snapshot) -> FloatArray:
    """The fair target by group, GPUs, float [G, T]; 0 for groups that are owed nothing."""
    target = fair_target(snapshot, entitle(snapshot))
    bundles = np.zeros((len(snapshot.tree.ids), len(snapshot.types)))
    bundles[target.leaves] = target.x
    return bundles


def _values(true: Snapshot, bundles: FloatArray) -> FloatArray:
    """What each group's own budgeted jobs draw from its bundle by true speedups, GPUs, float [G]."""
    jobs = np.flatnonzero(true.budgeted)
    drawers = drawers_of(true.group[jobs], true.size[jobs], true.speed_milli[jobs])
    return drawn_throughput(drawers, bundles)


def _share(after: float, before: float) -> float | None:
    """By how much one figure exceeds another, as a share of it; dust of the solvers is none."""
    if before <= _DUST:
        return None
    gain = after / before - 1.0
    return gain if abs(gain) > _DUST else 0.0
