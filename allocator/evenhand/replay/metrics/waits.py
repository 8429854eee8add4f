"""How long jobs waited, ran and were slowed down, by kind and by size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.replay.result import IntArray, JobTable
from evenhand.replay.rules import JobEnd

SIZE_CLASSES = ((1, 1), (2, 4), (5, 8), (9, 32), (33, 127), (128, None))
"""Gangs by size, GPUs from and to."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """Some figures of a number of values; None where there are none."""

    count: int
    mean: float | None
    p50: float | None
    p90: float | None
    p99: float | None
    most: float | None


@dataclass(frozen=True, slots=True)
class WaitClass:
    """Waits of a class of jobs, in seconds; whoever never started counts with what it has waited so far.

    Attributes
    ----------
    name : kind, or size class in GPUs.
    first_wait_s : from submission to the first start; total_wait_s : all waits, after preemptions too.
    never_started : how many of `first_wait_s` are still waiting for their first start.
    """

    name: str
    first_wait_s: Distribution
    total_wait_s: Distribution
    never_started: int


def distribution(values: npt.NDArray[np.float64] | IntArray) -> Distribution:
    """Describe values; a percentile is the least value that so many are not above."""
    if not values.size:
        return Distribution(0, None, None, None, None, None)
    p50, p90, p99 = np.percentile(values, [50, 90, 99], method="inverted_cdf").tolist()
    return Distribution(int(values.size), float(values.mean()), p50, p90, p99, float(values.max()))


def first_waits(jobs: JobTable, end_s: int) -> IntArray:
    """Seconds from submission to the first start, or to the end of the replay, int [J]."""
    return np.where(jobs.first_start_s >= 0, jobs.first_start_s, end_s) - jobs.submit_s


def wait_classes(jobs: JobTable, end_s: int) -> tuple[tuple[WaitClass, ...], tuple[WaitClass, ...]]:
    """Waits by kind (by name) and by size class; infeasible jobs are left out."""
    ran = jobs.end != JobEnd.INFEASIBLE
    kinds = np.array(jobs.kind, dtype=object)
    by_kind = tuple(
        _class(name or "unknown", jobs, end_s, ran & (kinds == name))
        for name in sorted({str(k) for k in kinds[ran].tolist()})
    )
    by_size = tuple(
        _class(_size_name(low, high), jobs, end_s, ran & (jobs.size >= low) & (jobs.size <= (high or jobs.size)))
        for low, high in SIZE_CLASSES
    )
    return by_kind, by_size


def _size_name(low: int, high: int | None) -> str:
    if high is None:
        return f">={low}"
    return str(low) if low == high else f"{low}-{high}"


def _class(name: str, jobs: JobTable, end_s: int, chosen: npt.NDArray[np.bool_]) -> WaitClass:
    return WaitClass(
        name=name,
        first_wait_s=distribution(first_waits(jobs, end_s)[chosen]),
        total_wait_s=distribution(jobs.waited_s[chosen]),
        never_started=int((chosen & (jobs.first_start_s < 0)).sum()),
    )


def completion_times(jobs: JobTable) -> npt.NDArray[np.float64]:
    """JCT of the jobs that completed: seconds from submission to completion, float [n]."""
    done = jobs.end == JobEnd.COMPLETED
    return np.asarray((jobs.end_s - jobs.submit_s)[done], dtype=np.float64)


def slowdowns(jobs: JobTable) -> npt.NDArray[np.float64]:
    """JCT over the time the job needs by itself, at least 10 s (bounded slowdown), of completed jobs, float [n]."""
    done = jobs.end == JobEnd.COMPLETED
    return np.asarray(np.maximum(1.0, completion_times(jobs) / np.maximum(10, jobs.work_s[done])), dtype=np.float64)
