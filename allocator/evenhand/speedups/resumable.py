"""Jobs declared resumable that came back from a requeue without their progress.

Told by `progress` and `requeues` of observations: what a job had to its credit before a requeue, and with
what it began after it. Losing what was done since the last checkpoint is no breach; losing more than
`checkpoint_s` worth of work and having kept less than `min_progress_kept` of it is. The last requeue that can
be judged decides: who keeps its progress again has proven it (rule V7).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from evenhand.speedups.in_use import vectors_in_use
from evenhand.speedups.sift import Declared
from evenhand_models import (
    ClusterState,
    Job,
    Observation,
    RefutedResume,
    SpeedupPolicy,
    SpeedupReport,
)

_MOST_HOURS = 1e15


@dataclass(frozen=True)
class _Return:
    """One requeue: the share of progress kept, and GPU-hours of work lost; whether it was a breach."""

    kept: float
    lost_gpu_hours: float
    breach: bool


def resumable_in_use(state: ClusterState, report: SpeedupReport) -> tuple[tuple[str, ...], ClusterState]:
    """Ids of jobs whose claim to be resumable is refuted, ascending, and the state in which it counts for nothing.

    Their checkpoints are taken out: what they have done since their start counts as lost by a stop. They are
    requeued all the same, and so can prove that they resume.
    """
    refuted = {entry.job for entry in report.refuted}
    doubted = {job.id for job in state.jobs if job.id in refuted and job.contract.resumable}
    jobs = tuple(job.model_copy(update={"checkpointed_at": None}) if job.id in doubted else job for job in state.jobs)
    return tuple(sorted(doubted)), state.model_copy(update={"jobs": jobs})


def state_in_use(state: ClusterState, report: SpeedupReport, policy: SpeedupPolicy | None = None) -> ClusterState:
    """Return the state as the next round should see it: what was found of speedups and of claims to be resumable.

    Parameters
    ----------
    state : the cluster now; it may be later than the one the report is about.
    report : what was found.
    policy : what to make of it; the report's if left out.
    """
    return resumable_in_use(vectors_in_use(state, report, policy), report)[1]


def refuted_claims(
    observations: Iterable[Observation], known: Mapping[str, Declared], policy: SpeedupPolicy
) -> tuple[RefutedResume, ...]:
    """Find the jobs, by id; also those that have left the state."""
    seen: dict[str, list[Observation]] = defaultdict(list)
    for one in observations:
        if one.progress is not None and one.requeues is not None and one.job in known:
            seen[one.job].append(one)
    found = []
    for name in sorted(seen):
        if not _claims(known[name]):
            continue
        returns = _returns(seen[name], policy)
        if returns and returns[-1].breach:
            failed = [r for r in returns if r.breach]
            found.append(
                RefutedResume(
                    job=name,
                    group=known[name].group,
                    requeues=len(returns),
                    failed=len(failed),
                    kept=returns[-1].kept,
                    lost_gpu_hours=min(_MOST_HOURS, sum(r.lost_gpu_hours for r in failed)),
                )
            )
    return tuple(found)


def _claims(job: Declared) -> bool:
    return job.contract.resumable if isinstance(job, Job) else job.resumable


def _returns(seen: Sequence[Observation], policy: SpeedupPolicy) -> list[_Return]:
    """All requeues of a job that can be judged, in order."""
    runs: dict[int, list[Observation]] = defaultdict(list)
    for one in seen:
        runs[one.requeues or 0].append(one)
    found = []
    numbers = sorted(runs)
    for before, after in pairwise(numbers):
        had = max(one.progress or 0.0 for one in runs[before])
        began = min(max(0.0, (one.progress or 0.0) - one.work_done) for one in runs[after])
        if had > 0:
            found.append(_judged(had, min(began, had), runs[before], policy))
    return found


def _judged(had: float, began: float, run: Sequence[Observation], policy: SpeedupPolicy) -> _Return:
    """Hold what is left of progress against what a checkpoint may lose, at the pace of the run before."""
    work = sum(sorted(one.work_done for one in run))
    seconds = sum(sorted(one.seconds for one in run))
    held = sum(sorted(one.seconds * one.gpus for one in run))
    lost, kept = had - began, began / had
    runs = lost / work if work > 0 else 0.0  # without a pace nobody can say how long it took
    breach = kept < policy.min_progress_kept and runs * seconds > policy.checkpoint_s
    return _Return(kept=kept, lost_gpu_hours=runs * held / 3600, breach=breach)
