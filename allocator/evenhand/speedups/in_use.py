"""Which speedups the next rounds go by, and which jobs are refused for what they declare (rule V5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import exp, log1p

from evenhand_models import (
    ClusterState,
    GroupSpeedup,
    Job,
    JobSpeedup,
    JobState,
    SpeedupConsequence,
    SpeedupFlag,
    SpeedupPolicy,
    SpeedupRatio,
    SpeedupReport,
    SpeedupUse,
)

_LEAST, _MOST = 1e-300, 1e30
_STEEPEST = 700.0
"""Logarithm of the largest factor that arithmetic holds."""
_WRONG = (SpeedupFlag.OVERDECLARED, SpeedupFlag.UNDERDECLARED)


@dataclass(frozen=True)
class Found:
    """What was found, ready to look up.

    Attributes
    ----------
    groups : by group and type; own : of jobs themselves, by job.
    """

    groups: Mapping[tuple[str, str], GroupSpeedup]
    own: Mapping[str, tuple[SpeedupRatio, ...]]

    @staticmethod
    def of(groups: Iterable[GroupSpeedup], own: Mapping[str, tuple[SpeedupRatio, ...]]) -> Found:
        """Index entries of a report, made or in the making."""
        return Found({(entry.group, entry.gpu_type): entry for entry in groups}, own)

    def about(self, job: Job, gpu_type: str) -> tuple[GroupSpeedup | None, SpeedupRatio | None]:
        """What is known of a job on a type: of its group, of itself; the group not where their references differ."""
        mine = self.own.get(job.id, ())
        group = self.groups.get((job.group, gpu_type))
        if group is not None and any(r.reference_type != group.reference_type for r in mine):
            group = None
        return group, next((r for r in mine if r.gpu_type == gpu_type), None)


def vectors_in_use(state: ClusterState, report: SpeedupReport, policy: SpeedupPolicy | None = None) -> ClusterState:
    """The state as the next round should see it: speedups replaced, refused jobs taken out.

    Parameters
    ----------
    state : the cluster now; it may be later than the one the report is about: new jobs are treated as their
        groups are.
    report : what was found.
    policy : what to make of it; the report's if left out.

    Returns
    -------
    ClusterState
        With the same jobs but those of `refused_jobs`; jobs that run or are on their way out always stay.
    """
    policy = policy or report.policy
    found = _found(report)
    refused = set(refused_jobs(state, report, policy))
    jobs = tuple(_with(job, _vector(job, found, policy)) for job in state.jobs if job.id not in refused)
    return state.model_copy(update={"jobs": jobs})


def refused_jobs(state: ClusterState, report: SpeedupReport, policy: SpeedupPolicy | None = None) -> tuple[str, ...]:
    """Ids of waiting jobs that are refused for what they declare, ascending; none unless the policy refuses.

    A job is refused if it was itself found to declare wrongly, or if its group was found to, on a type that
    the job declares too, and the job itself was not found to declare rightly.
    """
    policy = policy or report.policy
    found = _found(report)
    return tuple(sorted(job.id for job in state.jobs if _refused(job, found, policy)))


def observed_vectors(state: ClusterState, report: SpeedupReport) -> dict[str, dict[str, float]]:
    """Speedups of all jobs by what was observed, declared ones where nothing was, by job and type."""
    return best_known(state, _found(report), report.policy)


def best_known(state: ClusterState, found: Found, policy: SpeedupPolicy) -> dict[str, dict[str, float]]:
    """The same from what was found, whatever the policy says is to be used."""
    by_observation = policy.model_copy(update={"use": SpeedupUse.OBSERVED})
    return {job.id: _vector(job, found, by_observation) for job in state.jobs}


def job_speedups(state: ClusterState, found: Found, policy: SpeedupPolicy) -> tuple[JobSpeedup, ...]:
    """The report's entries for all jobs of a state, by id."""
    entries = []
    for job in sorted(state.jobs, key=lambda j: j.id):
        vector = _vector(job, found, policy)
        entries.append(
            JobSpeedup(
                job=job.id,
                group=job.group,
                speedup=vector,
                changed=vector != job.speedup,
                refused=_refused(job, found, policy),
                measured=found.own.get(job.id, ()),
            )
        )
    return tuple(entries)


def _found(report: SpeedupReport) -> Found:
    return Found.of(report.groups, {entry.job: entry.measured for entry in report.jobs if entry.measured})


def _with(job: Job, vector: dict[str, float]) -> Job:
    return job if vector == job.speedup else job.model_copy(update={"speedup": vector})


def _vector(job: Job, found: Found, policy: SpeedupPolicy) -> dict[str, float]:
    """Declared speedups times what the policy makes of the ratios; types the job cannot use stay so."""
    return {name: _speedup(job, name, float(x), found, policy) for name, x in job.speedup.items()}


def _speedup(job: Job, name: str, declared: float, found: Found, policy: SpeedupPolicy) -> float:
    """The speedup in use of one job on one type."""
    group, own = found.about(job, name)
    if not declared or not _comparable(job, group, own):
        return declared
    known = _combined(group, own)
    if known is None:
        return declared
    ratio, variance = known
    use = policy.use
    if policy.consequence is not SpeedupConsequence.WARN and _wrong(group, own, policy.tolerance):
        use = SpeedupUse.OBSERVED
    match use:
        case SpeedupUse.DECLARED:
            return declared
        case SpeedupUse.OBSERVED:
            part = 1.0
        case SpeedupUse.BLEND:
            part = policy.noise**2 / (policy.noise**2 + variance)
    return min(_MOST, max(_LEAST, declared * exp(max(-_STEEPEST, min(_STEEPEST, part * ratio)))))


def _comparable(job: Job, group: GroupSpeedup | None, own: SpeedupRatio | None) -> bool:
    """Whether the job declares the reference type too; a ratio means nothing without it."""
    entry = own or group
    return entry is not None and job.speedup.get(entry.reference_type, 0.0) > 0


def _combined(group: GroupSpeedup | None, own: SpeedupRatio | None) -> tuple[float, float] | None:
    """Ratio and variance for one job: its own observations and its group's, weighed by what each is known to."""
    parts = []
    if own is not None and own.ratio is not None and own.standard_error is not None:
        parts.append((own.ratio, own.standard_error**2))
    if group is not None and _speaks(group):
        spread, error = group.job_spread or 0.0, group.standard_error or 0.0
        parts.append((group.ratio or 0.0, error**2 + spread**2))
    elif own is None or not own.enough:
        return None
    total = sum(1.0 / variance for _, variance in parts)
    return sum(ratio / variance for ratio, variance in parts) / total, 1.0 / total


def _wrong(group: GroupSpeedup | None, own: SpeedupRatio | None, tolerance: float) -> bool:
    """Whether what is declared was found wrong: by the job's own observations if they settle it, else its group's."""
    if own is not None and own.enough and own.ratio is not None:
        if own.flag in _WRONG:
            return True
        if abs(own.ratio) <= log1p(tolerance):
            return False
    return group is not None and _speaks(group) and group.flag in _WRONG


def _speaks(group: GroupSpeedup) -> bool:
    """Whether what was found of a group says something about its other jobs; one job speaks for itself."""
    return group.enough and group.jobs > 1


def _refused(job: Job, found: Found, policy: SpeedupPolicy) -> bool:
    if policy.consequence is not SpeedupConsequence.REFUSE or job.state is not JobState.PENDING:
        return False
    for name, declared in job.speedup.items():
        group, own = found.about(job, name)
        if declared > 0 and _comparable(job, group, own) and _wrong(group, own, policy.tolerance):
            return True
    return False
