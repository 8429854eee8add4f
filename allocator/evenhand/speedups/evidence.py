"""Observations as arrays: rates per GPU, by gang and type, each with what it is known to.

A *gang* here is one job at one size: a job that ran on 2 GPUs of one type and on 8 of another tells
nothing about the types, since it need not scale. A *cell* is one gang on one type.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from math import log

import numpy as np

from evenhand.speedups.robust import HUBER_COST, FloatArray, IntArray, locations, medians, spread
from evenhand_models import ClusterState, DeclaredJob, Job, Observation, SpeedupAuditRequest

NOISE_WEIGHT = 4.0
"""The noise expected beforehand counts as so many degrees of freedom."""

Declared = Job | DeclaredJob


@dataclass(frozen=True)
class Cell:
    """One gang on one type.

    Attributes
    ----------
    job, gpus, gpu_type : which; declared : its declared speedup there, 0 if none.
    count : observations; seconds : their sum.
    rate : log of work per GPU and second, robust over observations; share : its variance over the noise's.
    """

    job: str
    gpus: int
    gpu_type: str
    declared: float
    count: int
    seconds: float
    rate: float
    share: float


@dataclass(frozen=True)
class GroupEvidence:
    """What was observed of the jobs of one group.

    Attributes
    ----------
    gangs : the cells of each gang, by type.
    variance : of the logarithm of one observed rate; freedom : degrees of freedom it is known to.
    """

    group: str
    gangs: tuple[Mapping[str, Cell], ...]
    variance: float
    freedom: float


def declared_jobs(request: SpeedupAuditRequest) -> dict[str, Declared]:
    """All jobs whose declarations are known, by id: those of the state and those that have left it."""
    known: dict[str, Declared] = {job.id: job for job in request.state.jobs}
    known.update((job.id, job) for job in request.ended_jobs)
    return known


def gather(request: SpeedupAuditRequest) -> list[GroupEvidence]:
    """Sort observations by group, gang and type; groups by id. Depends on no order of the input."""
    known = declared_jobs(request)
    floor = request.policy.shortest_observation_s
    by_group: dict[str, dict[tuple[str, int, str], list[Observation]]] = defaultdict(lambda: defaultdict(list))
    for seen in request.observations:
        job = known.get(seen.job)
        if job is not None and seen.seconds >= floor:
            by_group[job.group][seen.job, seen.gpus, seen.gpu_type].append(seen)
    return [_of_group(name, by_group[name], known, request.policy.noise) for name in sorted(by_group)]


def _of_group(
    group: str,
    observed: Mapping[tuple[str, int, str], list[Observation]],
    known: Mapping[str, Declared],
    noise: float,
) -> GroupEvidence:
    """Fit the noise of one group and the rate of each of its cells."""
    keys = sorted(observed)
    parts = [sorted(log(o.work_done) - log(o.gpus) - log(o.seconds) for o in observed[key]) for key in keys]
    sizes = np.array([len(part) for part in parts], dtype=np.int64)
    owner = np.repeat(np.arange(len(keys)), sizes)
    values = np.concatenate([np.array(part, dtype=np.float64) for part in parts])
    variance, freedom = _noise(values, owner, sizes, noise)
    rates, weight = locations(values, owner, len(keys), np.full(len(values), variance))
    gangs: dict[tuple[str, int], dict[str, Cell]] = defaultdict(dict)
    for i, (job, gpus, gpu_type) in enumerate(keys):
        gangs[job, gpus][gpu_type] = Cell(
            job=job,
            gpus=gpus,
            gpu_type=gpu_type,
            declared=float(known[job].speedup.get(gpu_type, 0.0)),
            count=int(sizes[i]),
            seconds=float(sum(sorted(o.seconds for o in observed[job, gpus, gpu_type]))),
            rate=float(rates[i]),
            share=HUBER_COST / (float(weight[i]) * variance) if sizes[i] > 2 else 1.0 / int(sizes[i]),
        )
    return GroupEvidence(group, tuple(gangs[key] for key in sorted(gangs)), variance, freedom)


def _noise(values: FloatArray, owner: IntArray, sizes: IntArray, expected: float) -> tuple[float, float]:
    """Variance of one observation about its cell, drawn towards what is expected, and its degrees of freedom."""
    repeated = sizes[owner] > 1
    freedom = int((sizes - 1).sum())
    if not freedom:
        return expected**2, NOISE_WEIGHT
    residuals = (values - medians(values, owner, len(sizes))[owner])[repeated]
    found = spread(residuals, freedom)
    total = NOISE_WEIGHT + freedom
    return (NOISE_WEIGHT * expected**2 + freedom * found**2) / total, total


def unknown_jobs(request: SpeedupAuditRequest) -> tuple[str, ...]:
    """Ids of observed jobs that are declared nowhere, ascending."""
    known = declared_jobs(request)
    return tuple(sorted({seen.job for seen in request.observations if seen.job not in known}))


def vectors_of(state: ClusterState) -> dict[str, dict[str, float]]:
    """Declared speedups above 0 of all jobs of a state, by job and type."""
    return {job.id: {t: float(x) for t, x in job.speedup.items() if x > 0} for job in state.jobs}
