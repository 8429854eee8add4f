"""Observations as arrays: rates per GPU, by gang and type, each with what it is known to (rule V2).

A *gang* here is one job at one size: a job that ran on 2 GPUs of one type and on 8 of another tells
nothing about the types, since it need not scale. A *cell* is one gang on one type.

The noise is fitted job by job: else a job that floods its group with scatter hides what others declare.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import log

import numpy as np

from evenhand.speedups.robust import HUBER_COST, FloatArray, IntArray, locations, medians, spread
from evenhand.speedups.sift import Declared
from evenhand_models import Observation

NOISE_WEIGHT = 4.0
"""The noise expected beforehand counts as so many degrees of freedom."""


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
class Noise:
    """How far single observations of one job lie from their cell's rate.

    Attributes
    ----------
    variance : of the logarithm of one observed rate, drawn towards what is expected; freedom : degrees of freedom
        it is known to, the expectation's included.
    scatter : standard deviation as observed, 0 if nothing was observed twice; repeats : its degrees of freedom.
    """

    variance: float
    freedom: float
    scatter: float
    repeats: int


@dataclass(frozen=True)
class GroupEvidence:
    """What was observed of the jobs of one group.

    Attributes
    ----------
    gangs : the cells of each gang, by type; noise : by job.
    """

    group: str
    gangs: tuple[Mapping[str, Cell], ...]
    noise: Mapping[str, Noise]


def gather(observations: Iterable[Observation], known: Mapping[str, Declared], noise: float) -> list[GroupEvidence]:
    """Sort observations by group, gang and type; groups by id. Depends on no order of the input."""
    by_group: dict[str, dict[tuple[str, int, str], list[Observation]]] = defaultdict(lambda: defaultdict(list))
    for seen in observations:
        by_group[known[seen.job].group][seen.job, seen.gpus, seen.gpu_type].append(seen)
    return [_of_group(name, by_group[name], known, noise) for name in sorted(by_group)]


def _of_group(
    group: str,
    observed: Mapping[tuple[str, int, str], list[Observation]],
    known: Mapping[str, Declared],
    expected: float,
) -> GroupEvidence:
    """Fit the noise of each job and the rate of each of its cells."""
    keys = sorted(observed)
    parts = [sorted(log(o.work_done) - log(o.gpus) - log(o.seconds) for o in observed[key]) for key in keys]
    sizes = np.array([len(part) for part in parts], dtype=np.int64)
    owner = np.repeat(np.arange(len(keys)), sizes)
    values = np.concatenate([np.array(part, dtype=np.float64) for part in parts])
    noise = _noise_by_job([job for job, _, _ in keys], values, owner, sizes, expected)
    variance = np.array([noise[job].variance for job, _, _ in keys])
    rates, weight = locations(values, owner, len(keys), variance[owner])
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
            share=HUBER_COST / float(weight[i] * variance[i]) if sizes[i] > 2 else 1.0 / int(sizes[i]),
        )
    return GroupEvidence(group, tuple(gangs[key] for key in sorted(gangs)), noise)


def _noise_by_job(
    jobs: list[str], values: FloatArray, owner: IntArray, sizes: IntArray, expected: float
) -> dict[str, Noise]:
    """Noise of each job from its observations about their cells.

    Parameters
    ----------
    jobs : id by cell, ascending; values : logarithms of rates, float [n]; owner : cell of each, int [n];
    sizes : observations by cell, int; expected : standard deviation expected beforehand.
    """
    off = values - medians(values, owner, len(sizes))[owner]
    repeated = sizes[owner] > 1
    names, of_cell = np.unique(np.array(jobs, dtype=object), return_inverse=True)
    of_value = of_cell.reshape(-1)[owner]
    freedom = np.bincount(of_cell.reshape(-1), weights=sizes - 1, minlength=len(names)).astype(np.int64)
    bounds = np.searchsorted(of_value, np.arange(len(names) + 1))
    found = {}
    for i, name in enumerate(names):
        part = slice(bounds[i], bounds[i + 1])
        seen = int(freedom[i])
        scatter = spread(off[part][repeated[part]], seen) if seen else 0.0
        total = NOISE_WEIGHT + seen
        found[str(name)] = Noise((NOISE_WEIGHT * expected**2 + seen * scatter**2) / total, total, scatter, seen)
    return found
