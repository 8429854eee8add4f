"""Jobs with true speeds, what they declare of them, and observations with noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from cases.states import cluster, job

from evenhand_models import ClusterState, Observation, SpeedupAuditRequest, SpeedupPolicy

TYPES = ("V100", "A100", "H100")
HARDWARE = "2x8 V100, 2x8 A100, 2x8 H100"


def speeds(rng: np.random.Generator) -> dict[str, float]:
    """True speeds of one job, each type somewhat faster than the one before, on a scale of its own."""
    steps = np.cumsum(rng.uniform(0.1, 0.9, len(TYPES)))
    return dict(zip(TYPES, np.exp(steps + rng.uniform(-9, 9)).tolist(), strict=True))


def observed(
    rng: np.random.Generator,
    name: str,
    true: Mapping[str, float],
    counts: Mapping[str, int],
    *,
    noise: float = 0.1,
    gpus: int = 2,
    stalls: float = 0.0,
) -> list[Observation]:
    """So many observations of a job by type; `stalls` of them at a tenth of the pace."""
    found = []
    unit = float(np.exp(rng.uniform(-9, 9)))
    for gpu_type, count in counts.items():
        for _ in range(count):
            seconds = float(rng.uniform(120, 7200))
            pace = true[gpu_type] * unit * float(np.exp(rng.normal(0, noise)))
            pace *= 0.1 if rng.random() < stalls else 1.0
            found.append(
                Observation(job=name, gpu_type=gpu_type, gpus=gpus, work_done=pace * gpus * seconds, seconds=seconds)
            )
    return found


def declared(true: Mapping[str, float], factors: Mapping[str, float]) -> dict[str, float]:
    """What a job declares whose numbers are off by these factors."""
    return {name: value * factors.get(name, 1.0) for name, value in true.items()}


def world(
    seed: int,
    *,
    groups: Sequence[str] = ("A", "B", "C", "D"),
    jobs: tuple[int, int] = (1, 5),
    each: tuple[int, int] = (5, 12),
    factors: Mapping[str, Mapping[str, float]] | None = None,
    noise: float = 0.1,
    profile_error: float = 0.0,
    stalls: float = 0.0,
    policy: SpeedupPolicy | None = None,
) -> SpeedupAuditRequest:
    """Groups with `jobs` jobs each, seen `each` times on every type; `factors` by group and type are lies."""
    rng = np.random.default_rng(seed)
    work, seen = [], []
    for name in groups:
        for i in range(int(rng.integers(jobs[0], jobs[1] + 1))):
            true = speeds(rng)
            off = {t: float(np.exp(rng.normal(0, profile_error))) for t in TYPES}
            told = declared(declared(true, off), (factors or {}).get(name, {}))
            work.append(job(f"{name}{i}", name, 2, speedup=told))
            counts = {t: int(rng.integers(each[0], each[1] + 1)) for t in TYPES}
            seen += observed(rng, f"{name}{i}", true, counts, noise=noise, stalls=stalls)
    state: ClusterState = cluster(HARDWARE, dict.fromkeys(groups, 1.0), work)
    return SpeedupAuditRequest(state=state, observations=tuple(seen), policy=policy or SpeedupPolicy())


def shuffled(rng: np.random.Generator, request: SpeedupAuditRequest) -> SpeedupAuditRequest:
    """The same request, all lists in another order."""

    def mixed(items: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(items[i] for i in rng.permutation(len(items)))

    state = request.state
    other = state.model_copy(
        update={name: mixed(getattr(state, name)) for name in ("gpu_types", "nodes", "groups", "jobs")}
    )
    return request.model_copy(update={"state": other, "observations": mixed(request.observations)})
