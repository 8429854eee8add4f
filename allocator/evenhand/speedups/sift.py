"""Which observations say something about speedups; what is left out is counted and named (rule V1)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from evenhand_models import DeclaredJob, Job, LeftOut, LeftOutCode, Observation, SpeedupAuditRequest

Declared = Job | DeclaredJob


def declared_jobs(request: SpeedupAuditRequest) -> dict[str, Declared]:
    """All jobs whose declarations are known, by id: those of the state and those that have left it."""
    known: dict[str, Declared] = {job.id: job for job in request.state.jobs}
    known.update((job.id, job) for job in request.ended_jobs)
    return known


def sift(request: SpeedupAuditRequest) -> tuple[list[Observation], tuple[LeftOut, ...]]:
    """Part the observations that are used from the rest; the rest by code, names ascending."""
    known = declared_jobs(request)
    types = {t.name for t in request.state.gpu_types}
    kept: list[Observation] = []
    counts: Counter[LeftOutCode] = Counter()
    names: dict[LeftOutCode, set[str]] = defaultdict(set)
    stamped: set[Observation] = set()
    for one in request.observations:
        code = _why_not(one, known.get(one.job), types, request.policy.shortest_observation_s)
        if code is None and one.ended_at is not None:
            code = LeftOutCode.REPEATED if one in stamped else None
            stamped.add(one)
        if code is None:
            kept.append(one)
            continue
        counts[code] += 1
        names[code].add(one.gpu_type if code is LeftOutCode.UNKNOWN_TYPE else one.job)
    left = (LeftOut(code=c, observations=counts[c], names=tuple(sorted(names[c]))) for c in LeftOutCode if counts[c])
    return kept, tuple(left)


def _why_not(one: Observation, job: Declared | None, types: set[str], shortest_s: int) -> LeftOutCode | None:
    if job is None:
        return LeftOutCode.UNKNOWN_JOB
    if one.gpu_type not in types and not _declares(job.speedup, one.gpu_type):
        return LeftOutCode.UNKNOWN_TYPE
    if one.seconds < shortest_s:
        return LeftOutCode.TOO_SHORT
    return LeftOutCode.NO_WORK if one.work_done == 0 else None


def _declares(speedup: Mapping[str, float], gpu_type: str) -> bool:
    return speedup.get(gpu_type, 0.0) > 0
