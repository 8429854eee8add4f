"""audit_speedups(): observations in, findings out (rule V4)."""

from __future__ import annotations

from collections.abc import Sequence
from math import expm1, log1p

from evenhand.speedups.compare import Contrast, Estimate, contrasts, of_group, of_job
from evenhand.speedups.evidence import GroupEvidence, gather
from evenhand.speedups.in_use import Found, best_known, job_speedups
from evenhand.speedups.like_jobs import undeclared_speedups
from evenhand.speedups.reference import hints_of, own_references, reference_of
from evenhand.speedups.resumable import refuted_claims
from evenhand.speedups.sift import declared_jobs, sift
from evenhand_models import (
    GroupSpeedup,
    ProfileHint,
    SpeedupAuditRequest,
    SpeedupFlag,
    SpeedupPolicy,
    SpeedupRatio,
    SpeedupReport,
)

_MOST_SEVERE = 34.0
"""In logarithms: no larger severity can be written."""


def audit_speedups(request: SpeedupAuditRequest) -> SpeedupReport:
    """Hold what jobs declare against what was observed of them.

    Parameters
    ----------
    request : SpeedupAuditRequest
        State, observations and how to judge.

    Returns
    -------
    SpeedupReport
        Equal input in any order, equal report. `gains` is left empty: see `gains_of_flagged`.
    """
    groups: list[GroupSpeedup] = []
    hints: list[ProfileHint] = []
    own: dict[str, tuple[SpeedupRatio, ...]] = {}
    known = declared_jobs(request)
    kept, left_out = sift(request)
    evidence = gather(kept, known, request.policy.noise)
    for part in evidence:
        reference = reference_of(part, request.policy)
        compared = contrasts(part, reference)
        entries = [
            _of_group(part, name, reference, compared.get(name, ()), request.policy) for name in _types(part, reference)
        ]
        groups += entries
        apart = own_references(part, reference)
        hints += hints_of(part, reference, entries, request.policy, apart)
        own.update(_of_jobs(reference, compared, request.policy))
        for alone in apart.values():
            its = reference_of(alone, request.policy)
            own.update(_of_jobs(its, contrasts(alone, its), request.policy))
    found = Found.of(groups, own)
    return SpeedupReport(
        now=request.state.now,
        policy=request.policy,
        groups=tuple(groups),
        jobs=job_speedups(request.state, found, request.policy),
        undeclared=undeclared_speedups(
            request.state, best_known(request.state, found, request.policy), evidence, request.policy
        ),
        refuted=refuted_claims(request.observations, known, request.policy),
        hints=tuple(hints),
        left_out=left_out,
    )


def _types(evidence: GroupEvidence, reference: str) -> list[str]:
    """Declared types that were observed, the reference aside, ascending."""
    names = {cell.gpu_type for gang in evidence.gangs for cell in gang.values() if cell.declared}
    return sorted(names - {reference})


def _of_group(
    evidence: GroupEvidence, name: str, reference: str, found: Sequence[Contrast], policy: SpeedupPolicy
) -> GroupSpeedup:
    """The entry of one group and type."""
    if not found:
        cells = [gang[name] for gang in evidence.gangs if name in gang and gang[name].declared]
        return GroupSpeedup(
            group=evidence.group,
            gpu_type=name,
            reference_type=reference,
            observations=sum(cell.count for cell in cells),
            seconds=sum(cell.seconds for cell in cells),
        )
    estimate = of_group(found, policy.noise)
    enough = len(found) >= policy.min_jobs and _enough(found, policy)
    ratio = _ratio(name, reference, found, estimate, enough, policy)
    return GroupSpeedup(**dict(ratio), group=evidence.group, jobs=len(found), job_spread=estimate.spread)


def _of_jobs(
    reference: str, compared: dict[str, tuple[Contrast, ...]], policy: SpeedupPolicy
) -> dict[str, tuple[SpeedupRatio, ...]]:
    """What each job's own observations say, by job; types ascending."""
    found: dict[str, list[SpeedupRatio]] = {}
    for name, of_type in compared.items():
        for contrast in of_type:
            enough = _enough([contrast], policy)
            estimate = of_job(contrast)
            found.setdefault(contrast.job, []).append(_ratio(name, reference, [contrast], estimate, enough, policy))
    return {job: tuple(ratios) for job, ratios in found.items()}


def _enough(found: Sequence[Contrast], policy: SpeedupPolicy) -> bool:
    """Whether both sides of a comparison were observed often and long enough."""
    return (
        min(sum(c.count for c in found), sum(c.reference_count for c in found)) >= policy.min_observations
        and min(sum(c.seconds for c in found), sum(c.reference_seconds for c in found)) >= policy.min_seconds
    )


def _ratio(
    name: str,
    reference: str,
    found: Sequence[Contrast],
    estimate: Estimate,
    enough: bool,
    policy: SpeedupPolicy,
) -> SpeedupRatio:
    low, high = estimate.interval(policy.confidence)
    flag = _flag(estimate.ratio, low, high, policy.tolerance) if enough else SpeedupFlag.NONE
    return SpeedupRatio(
        gpu_type=name,
        reference_type=reference,
        ratio=estimate.ratio,
        low=low,
        high=high,
        standard_error=estimate.error,
        observations=sum(c.count for c in found),
        reference_observations=sum(c.reference_count for c in found),
        seconds=sum(c.seconds for c in found),
        reference_seconds=sum(c.reference_seconds for c in found),
        enough=enough,
        flag=flag,
        severity=0.0 if flag is SpeedupFlag.NONE else expm1(min(_MOST_SEVERE, max(low, -high))),
    )


def _flag(ratio: float, low: float, high: float, tolerance: float) -> SpeedupFlag:
    """Say what an interval of log(observed / declared) means; equal for both signs."""
    allowed = log1p(tolerance)
    if low > allowed:
        return SpeedupFlag.UNDERDECLARED
    if high < -allowed:
        return SpeedupFlag.OVERDECLARED
    if max(low, -high) > 0 and abs(ratio) > allowed:
        return SpeedupFlag.SUSPECT
    return SpeedupFlag.NONE
