"""What a job would do on a type that it does not mention: measured, or guessed from jobs like it (rule V6)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt

import numpy as np

from evenhand.speedups.evidence import GroupEvidence, Noise
from evenhand.speedups.robust import FloatArray, IntArray, student
from evenhand_models import ClusterState, EstimateSource, SpeedupPolicy, UndeclaredSpeedup

UNSHARED = 0.5
"""A type of the job that the like job does not declare counts as differing by so much, in logarithms."""
NEAREST = 5
"""The nearest so many kinds of jobs weigh fully or nearly so."""
_PRIOR = 2.0
"""The noise expected beforehand counts as so many like kinds."""
_COUNTED = 0.1
_MOST = 1e30


@dataclass(frozen=True, eq=False)
class _Kinds:
    """Jobs of equal speedups (up to scale) as one; K kinds, T types of the cluster.

    Attributes
    ----------
    logs : log speedups about their mean, nan where not declared, float [K, T]; jobs : how many, int [K].
    """

    logs: FloatArray
    jobs: IntArray


def undeclared_speedups(
    state: ClusterState,
    vectors: Mapping[str, Mapping[str, float]],
    evidence: Sequence[GroupEvidence],
    policy: SpeedupPolicy,
) -> tuple[UndeclaredSpeedup, ...]:
    """Estimate the types of the cluster that jobs leave out, by job and type.

    Parameters
    ----------
    vectors : speedups in use, by job and type; a type given as 0 is not left out: it says "cannot run there".
    """
    types = sorted(t.name for t in state.gpu_types)
    measured = _measured(vectors, evidence, policy)
    rows = {job: _centred(vector, types) for job, vector in vectors.items()}
    kinds = _kinds([row for row, _ in rows.values()])
    guesses: dict[tuple[bytes, int], tuple[float, float, int] | None] = {}
    found = []
    for job in sorted(vectors):
        row, mean = rows[job]
        for t, name in enumerate(types):
            if name in vectors[job]:
                continue
            seen = measured.get((job, name))
            if seen is not None:
                found.append(_estimate(job, name, seen[0], seen[1], EstimateSource.MEASURED, 0))
                continue
            if not np.isfinite(row).any():
                continue
            key = (row.tobytes(), t)
            if key not in guesses:
                guesses[key] = _guess(row, t, kinds, policy)
            guess = guesses[key]
            if guess is not None:
                centre, half, like = guess
                found.append(_estimate(job, name, centre + mean, half, EstimateSource.LIKE_JOBS, like))
    return tuple(found)


def _estimate(
    job: str, gpu_type: str, centre: float, half: float, source: EstimateSource, like: int
) -> UndeclaredSpeedup:
    low, middle, high = (min(_MOST, exp(min(69.0, x))) for x in (centre - half, centre, centre + half))
    return UndeclaredSpeedup(
        job=job, gpu_type=gpu_type, speedup=middle, low=low, high=high, source=source, like_jobs=like
    )


def _measured(
    vectors: Mapping[str, Mapping[str, float]], evidence: Sequence[GroupEvidence], policy: SpeedupPolicy
) -> dict[tuple[str, str], tuple[float, float]]:
    """Log speedup and half width where a job was seen on a type it leaves out and on one it declares."""
    parts: dict[tuple[str, str], list[tuple[float, float, Noise]]] = defaultdict(list)
    for group in evidence:
        for gang in group.gangs:
            job = next(iter(gang.values())).job
            known = [
                (cell, vectors[job][name])
                for name, cell in sorted(gang.items())
                if vectors.get(job, {}).get(name, 0.0) > 0
            ]
            if not known:
                continue
            trust = sum(1.0 / cell.share for cell, _ in known)
            unit = sum((log(x) - cell.rate) / cell.share for cell, x in known) / trust
            for name, cell in gang.items():
                if name not in vectors[job]:
                    parts[job, name].append((cell.rate + unit, cell.share + 1.0 / trust, group.noise[job]))
    found = {}
    for key, several in parts.items():
        total = sum(1.0 / share for _, share, _ in several)
        noise = several[0][2]
        half = student(policy.confidence, noise.freedom) * sqrt(noise.variance / total)
        found[key] = (sum(value / share for value, share, _ in several) / total, half)
    return found


def _centred(vector: Mapping[str, float], types: Sequence[str]) -> tuple[FloatArray, float]:
    """Log speedups about their mean by type, nan where there is none, and the mean."""
    logs = np.array([log(vector[t]) if vector.get(t, 0.0) > 0 else np.nan for t in types])
    known = logs[np.isfinite(logs)]
    mean = float(known.mean()) if len(known) else 0.0
    return np.round(logs - mean, 9) + 0.0, mean


def _kinds(rows: Sequence[FloatArray]) -> _Kinds:
    """Count equal rows; kinds in one order whatever the order of jobs."""
    counted = Counter(tuple(None if np.isnan(x) else float(x) for x in row) for row in rows)
    ordered = sorted(counted, key=lambda row: [(x is None, x or 0.0) for x in row])
    logs = np.array([[np.nan if x is None else x for x in row] for row in ordered], dtype=np.float64)
    return _Kinds(logs, np.array([counted[row] for row in ordered], dtype=np.int64))


def _guess(row: FloatArray, t: int, kinds: _Kinds, policy: SpeedupPolicy) -> tuple[float, float, int] | None:
    """Centre and half width of log speedup about the row's mean, and like jobs; None if there are too few.

    Each kind that declares type t, shifted to agree with the row where both declare, says one value. Kinds
    weigh by how far they are from the row (Gaussian, as wide as the distance of the fifth nearest). The interval is for one
    more job: the weighted spread, drawn towards the noise, widened for few kinds.
    """
    mine = np.isfinite(row)
    shared = np.isfinite(kinds.logs) & mine
    candidates = np.flatnonzero(np.isfinite(kinds.logs[:, t]) & shared.any(axis=1))
    if int(kinds.jobs[candidates].sum()) < policy.min_like_jobs:
        return None
    logs, shared = kinds.logs[candidates], shared[candidates]
    count = shared.sum(axis=1)
    gap = np.where(shared, row - np.where(shared, logs, 0.0), 0.0)
    shift = gap.sum(axis=1) / count
    off = np.where(shared, gap - shift[:, None], 0.0)
    distance2 = ((off**2).sum(axis=1) + (mine.sum() - count) * UNSHARED**2) / mine.sum()
    width2 = max(policy.noise**2, float(np.sort(distance2)[min(NEAREST, len(candidates)) - 1]))
    weight = np.exp(-distance2 / (2 * width2))
    values = logs[:, t] + shift
    total = float(weight.sum())
    centre = float((weight * values).sum()) / total
    effective = total**2 / float((weight**2).sum())
    seen = float((weight * (values - centre) ** 2).sum()) / total * effective
    variance = (_PRIOR * policy.noise**2 + seen) / (_PRIOR + max(0.0, effective - 1))
    half = student(policy.confidence, _PRIOR + max(0.0, effective - 1)) * sqrt(variance * (1 + 1 / effective))
    like = int(kinds.jobs[candidates][weight >= _COUNTED * weight.max()].sum())
    return (centre, half, like) if like >= policy.min_like_jobs else None
