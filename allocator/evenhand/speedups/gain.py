"""What a misreport gains: the fair target by what is declared and by the truth, both valued by the truth (rule V8)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from evenhand.entitlement import Entitlement, entitle
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

_DUST = 1e-9
_WRONG = (SpeedupFlag.OVERDECLARED, SpeedupFlag.UNDERDECLARED)


@dataclass(frozen=True, eq=False)
class _Reading:
    """A state as a round reads it, without its objective."""

    snapshot: Snapshot
    entitlement: Entitlement

    @staticmethod
    def of(state: ClusterState, policy: Policy) -> _Reading:
        snapshot = take_snapshot(state, policy)
        return _Reading(snapshot, entitle(snapshot))

    def bundles(self, objective: Objective) -> FloatArray:
        """The fair target by group, GPUs, float [G, T]; 0 for groups that are owed nothing."""
        asked = replace(self.snapshot, policy=self.snapshot.policy.model_copy(update={"objective": objective}))
        target = fair_target(asked, self.entitlement)
        found = np.zeros((len(asked.tree.ids), len(asked.types)))
        found[target.leaves] = target.x
        return found

    def values(self, bundles: FloatArray) -> FloatArray:
        """What each group's own budgeted jobs draw from its bundle, GPUs, float [G]."""
        jobs = np.flatnonzero(self.snapshot.budgeted)
        drawers = drawers_of(self.snapshot.group[jobs], self.snapshot.size[jobs], self.snapshot.speed_milli[jobs])
        return drawn_throughput(drawers, bundles)

    def below(self, group: str) -> BoolArray:
        """Whether each group is the one asked for or below it, bool [G]."""
        top = self.snapshot.tree.index(group)
        return np.array([top in path for path in self.snapshot.tree.path], dtype=bool)


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
        If there is no such group.
    """
    (found,) = misreport_gains(state, policy, group, factors=factors, honest=honest, objectives=[policy.objective])
    return found


def misreport_gains(
    state: ClusterState,
    policy: Policy,
    group: str,
    *,
    factors: Mapping[str, float] | None = None,
    honest: Mapping[str, Mapping[str, float]] | None = None,
    objectives: Iterable[Objective] = tuple(Objective),
) -> tuple[MisreportGain, ...]:
    """Measure the same under several objectives, in their order; all there are if left out."""
    if (factors is None) == (honest is None):
        raise ValueError("give either factors or honest")
    if group not in {g.id for g in state.groups}:
        raise InvalidInput([FieldError("/group", f"there is no group {group!r}.")])
    if factors is not None:
        truth, told = state, with_factors(state, group, factors)
    else:
        truth, told = with_vectors(state, group, honest or {}), state
    true, false = _Reading.of(truth, policy), _Reading.of(told, policy)
    return tuple(_gain(group, objective, true, false.bundles(objective)) for objective in objectives)


def gains_of_flagged(
    state: ClusterState, report: SpeedupReport, policy: Policy, *, objectives: Iterable[Objective] = tuple(Objective)
) -> tuple[MisreportGain, ...]:
    """Measure what those who declare wrongly gain, the observed speedups taken for the truth.

    A group is measured if it was flagged, or a job of its own was; at most `report.policy.most_gains` of them, the
    worst first.
    """
    groups = flagged_groups(state, report)[: report.policy.most_gains]
    if not groups:
        return ()
    truth = observed_vectors(state, report)
    told = _Reading.of(state, policy)
    skewed = {objective: told.bundles(objective) for objective in objectives}
    found = []
    for group in groups:
        true = _Reading.of(with_vectors(state, group, truth), policy)
        found += [_gain(group, objective, true, bundles) for objective, bundles in skewed.items()]
    return tuple(found)


def flagged_groups(state: ClusterState, report: SpeedupReport) -> tuple[str, ...]:
    """Groups of the tree that declare wrongly, or a job of theirs does: the worst first, then by id."""
    worst: dict[str, float] = {}
    own = ((entry.group, ratio) for entry in report.jobs for ratio in entry.measured)
    for group, entry in [*((entry.group, entry) for entry in report.groups), *own]:
        if entry.flag in _WRONG:
            worst[group] = max(worst.get(group, 0.0), entry.severity)
    known = {g.id for g in state.groups}
    return tuple(sorted(worst.keys() & known, key=lambda group: (-worst[group], group)))


def found_wrong(report: SpeedupReport) -> bool:
    """Whether anything declared was found wrong: a speedup of a group or job, or a claim to be resumable."""
    own = (ratio for entry in report.jobs for ratio in entry.measured)
    return bool(report.refuted) or any(entry.flag in _WRONG for entry in (*report.groups, *own))


def with_gains(state: ClusterState, report: SpeedupReport, policy: Policy) -> SpeedupReport:
    """Write what those who declare wrongly gain into a report."""
    left = max(0, len(flagged_groups(state, report)) - report.policy.most_gains)
    found = gains_of_flagged(state, report, policy)
    return report.model_copy(update={"gains": found, "gains_left_out": left})


def _gain(group: str, objective: Objective, true: _Reading, skewed: FloatArray) -> MisreportGain:
    """Value both targets by the truth."""
    fair, got = true.values(true.bundles(objective)), true.values(skewed)
    inside = true.below(group)
    mine, yours = float(fair[inside].sum()), float(fair[~inside].sum())
    declared, left = float(got[inside].sum()), float(got[~inside].sum())
    return MisreportGain(
        group=group,
        objective=objective,
        honest=mine,
        declared=declared,
        gain=_share(declared, mine),
        others=_share(left, yours),
    )


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


def _share(after: float, before: float) -> float | None:
    """By how much one figure exceeds another, as a share of it; dust of the solvers is none."""
    if before <= _DUST:
        return None
    gain = after / before - 1.0
    return gain if abs(gain) > _DUST else 0.0
