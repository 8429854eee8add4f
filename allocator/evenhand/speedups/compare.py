"""log(observed / declared) between types: of each job, and of each group over its jobs (rules V2, V3)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from evenhand.speedups.evidence import Cell, GroupEvidence, Noise
from evenhand.speedups.robust import HUBER_COST, locations, spread, student

SPREAD_WEIGHT = 2.0
"""The spread from job to job expected beforehand counts as so many degrees of freedom."""
SPREAD_SHARE = 0.25
"""It is so much of the noise of one observation."""


@dataclass(frozen=True)
class Contrast:
    """One job on one type against the same job, at the same size, on the reference type.

    Attributes
    ----------
    ratio : log(observed / declared); share : its variance over that of one observation.
    variance : of one observation of the job; freedom : degrees of freedom it is known to.
    count, reference_count : observations; seconds, reference_seconds : their sums.
    """

    job: str
    ratio: float
    share: float
    variance: float
    freedom: float
    count: int
    reference_count: int
    seconds: float
    reference_seconds: float


@dataclass(frozen=True)
class Estimate:
    """A ratio and what it is known to.

    Attributes
    ----------
    ratio : log(observed / declared); error : standard error; freedom : its degrees of freedom.
    spread : standard deviation from job to job, 0 if the estimate is of one job.
    """

    ratio: float
    error: float
    freedom: float
    spread: float = 0.0

    def interval(self, confidence: float) -> tuple[float, float]:
        """Ends of the two-sided interval."""
        half = student(confidence, self.freedom) * self.error
        return self.ratio - half, self.ratio + half


def contrasts(evidence: GroupEvidence, reference: str) -> dict[str, tuple[Contrast, ...]]:
    """Compare every declared type with the reference, job by job; jobs of a type in the order of their ids."""
    found: dict[str, dict[str, list[Contrast]]] = defaultdict(lambda: defaultdict(list))
    for gang in evidence.gangs:
        base = gang.get(reference)
        if base is None or not base.declared:
            continue
        for name, cell in gang.items():
            if name != reference and cell.declared:
                found[name][cell.job].append(_contrast(cell, base, evidence.noise[cell.job]))
    return {name: tuple(_joined(by_job[job]) for job in sorted(by_job)) for name, by_job in sorted(found.items())}


def of_job(contrast: Contrast) -> Estimate:
    """What one job's own observations say."""
    return Estimate(contrast.ratio, sqrt(contrast.share * contrast.variance), contrast.freedom)


def of_group(found: Sequence[Contrast], expected_noise: float) -> Estimate:
    """What the jobs of a group say together: a robust mean over jobs that may differ among themselves.

    Random effects: each job is off by a ratio of its own about the group's. A job far from the others weighs
    little. Both variances are drawn towards what is expected, the less the more is seen; degrees of freedom
    after Satterthwaite.
    """
    ratios = np.array([c.ratio for c in found])
    noise = np.array([c.share * c.variance for c in found])
    expected = SPREAD_SHARE**2 * expected_noise**2
    freedom = float(len(found) - 1)
    between = expected
    if freedom:
        seen = spread(ratios - np.median(ratios), len(found) - 1) ** 2 - float(noise.mean())
        between = (SPREAD_WEIGHT * expected + freedom * max(0.0, seen)) / (SPREAD_WEIGHT + freedom)
    one = np.zeros(len(found), dtype=np.int64)
    centre, weight = locations(ratios, one, 1, noise + between)
    variance = (HUBER_COST if len(found) > 2 else 1.0) / float(weight[0])
    lean = 1.0 / (noise + between)
    lean /= lean.sum()
    by_noise, by_jobs = lean**2 * noise, float((lean**2).sum() * between)
    doubt = float((by_noise**2 / np.array([c.freedom for c in found])).sum()) + by_jobs**2 / (SPREAD_WEIGHT + freedom)
    total = (float(by_noise.sum()) + by_jobs) ** 2 / doubt
    return Estimate(float(centre[0]), sqrt(variance), max(2.0, total), sqrt(between))


def _contrast(cell: Cell, base: Cell, noise: Noise) -> Contrast:
    observed = cell.rate - base.rate
    return Contrast(
        job=cell.job,
        ratio=observed - (log(cell.declared) - log(base.declared)),
        share=cell.share + base.share,
        variance=noise.variance,
        freedom=noise.freedom,
        count=cell.count,
        reference_count=base.count,
        seconds=cell.seconds,
        reference_seconds=base.seconds,
    )


def _joined(parts: Sequence[Contrast]) -> Contrast:
    """One job seen at several sizes: each size compared with itself, weighed by what it is known to."""
    if len(parts) == 1:
        return parts[0]
    weights = [1.0 / part.share for part in parts]
    total = sum(weights)
    return Contrast(
        job=parts[0].job,
        ratio=sum(w * part.ratio for w, part in zip(weights, parts, strict=True)) / total,
        share=1.0 / total,
        variance=parts[0].variance,
        freedom=parts[0].freedom,
        count=sum(part.count for part in parts),
        reference_count=sum(part.reference_count for part in parts),
        seconds=sum(part.seconds for part in parts),
        reference_seconds=sum(part.reference_seconds for part in parts),
    )
