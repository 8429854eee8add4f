"""Jobs declared resumable that came back from a requeue without their progress.

Told by `progress` and `requeues` of observations: what a job had to its credit before a requeue, and with
what it began after it. Losing what was done since the last checkpoint is no breach; losing more than
`checkpoint_s` worth of work and having kept less than `min_progress_kept` of it is. The last requeue that can
be judged decides: who keeps its progress again has proven it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from evenhand.speedups.evidence import Declared, declared_jobs
from evenhand_models import (
    ClusterState,
    Job,
    Observation,
    RefutedResume,
    SpeedupAuditRequest,
    SpeedupPolicy,
    SpeedupReport,
)


@dataclass(frozen=True)
class _Return:
    """One requeue: the share of progress kept, and GPU-hours of work lost; whether it was a breach."""

    kept: float
    lost_gpu_hours: float
    breach: bool


def resumable_in_use(state: ClusterState, report: SpeedupReport) -> tuple[tuple[str, ...], ClusterState]:
    """Ids of jobs whose claim to be resumable is refuted, ascending, and the state without those claims.

    What such a job has done since its start, checkpoints or not, counts as lost by a stop from then on.
    """
    refuted = {entry.job for entry in report.refuted}
    jobs = tuple(_without(job) if job.id in refuted else job for job in state.jobs)
    changed = tuple(sorted(job.id for job in state.jobs if job.id in refuted and job.contract.resumable))
    return changed, state.model_copy(update={"jobs": jobs})


def refuted_claims(request: SpeedupAuditRequest) -> tuple[RefutedResume, ...]:
    """Find the jobs, by id; also those that have left the state."""
    known = declared_jobs(request)
    seen: dict[str, list[Observation]] = defaultdict(list)
    for one in request.observations:
        if one.progress is not None and one.requeues is not None and one.job in known:
            seen[one.job].append(one)
    found = []
    for name in sorted(seen):
        if not _claims(known[name]):
            continue
        returns = _returns(seen[name], request.policy)
        if returns and returns[-1].breach:
            failed = [r for r in returns if r.breach]
            found.append(
                RefutedResume(
                    job=name,
                    group=known[name].group,
                    requeues=len(returns),
                    failed=len(failed),
                    kept=returns[-1].kept,
                    lost_gpu_hours=sum(r.lost_gpu_hours for r in failed),
                )
            )
    return tuple(found)


def _claims(job: Declared) -> bool:
    return job.contract.resumable if isinstance(job, Job) else job.resumable


def _without(job: Job) -> Job:
    return job.model_copy(update={"contract": job.contract.model_copy(update={"resumable": False})})


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
    breach = kept < policy.min_progress_kept and lost / work * seconds > policy.checkpoint_s
    return _Return(kept=kept, lost_gpu_hours=lost / work * held / 3600, breach=breach)
