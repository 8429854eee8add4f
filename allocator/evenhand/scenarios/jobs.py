"""Other jobs: more or fewer of them, some otherwise, some on top. What is random, the seed and ids decide."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

from evenhand.scenarios.hardware import DAY_S
from evenhand_models import FieldError, InvalidInput
from evenhand_models.scenarios import JobChoice, JobFields, JobsOverlay, JobStream
from evenhand_models.traces import Trace, TraceJob

MOST_JOBS = 1_000_000
"""Most jobs an overlay may make."""
COPY_SPREAD_S = 3_600
"""A copy of a job comes up to so much earlier or later than the job itself."""


def changed_jobs(trace: Trace, overlay: JobsOverlay, seed: int) -> tuple[TraceJob, ...]:
    """Work out the jobs of a trace under an overlay: dropped, multiplied, moved, changed, added, in that order.

    Raises
    ------
    InvalidInput
        If an added job has the id of another, or there would be too many; pointers ``/jobs/...``.
    """
    if errors := _too_many(trace, overlay):
        raise InvalidInput(errors)
    jobs = [job for job in trace.jobs if not any(_fits(job, choice) for choice in overlay.drop)]
    if overlay.arrivals != 1.0:
        ids = {job.id for job in trace.jobs}
        jobs = [copy for job in jobs for copy in _copies(job, overlay.arrivals, seed, trace.end_s, ids)]
    if overlay.jitter_s:
        jobs = [_moved(job, overlay.jitter_s, seed, trace.end_s) for job in jobs]
    for change in overlay.change:
        jobs = [_changed(job, change.set) if _fits(job, change.where) else job for job in jobs]
    taken = {job.id for job in jobs}
    for i, stream in enumerate(overlay.add):
        added = list(_stream(stream, seed, trace.end_s))
        if clash := sorted(taken & {job.id for job in added}):
            errors.append(FieldError(f"/jobs/add/{i}/name", f"the id {clash[0]!r} is taken."))
        taken |= {job.id for job in added}
        jobs += added
    if errors:
        raise InvalidInput(errors)
    return tuple(sorted(jobs, key=lambda job: (job.submit_s, job.id)))


def _too_many(trace: Trace, overlay: JobsOverlay) -> list[FieldError]:
    """Say which parts would make more jobs than a replay could hold."""
    times = overlay.arrivals * len(trace.jobs)
    errors = []
    if times > max(MOST_JOBS, len(trace.jobs)):
        errors.append(FieldError("/jobs/arrivals", f"there would be {times:,.0f} jobs, more than {MOST_JOBS:,}."))
    for i, stream in enumerate(overlay.add):
        days = trace.end_s / DAY_S if stream.until_day is None else min(trace.end_s / DAY_S, stream.until_day)
        count = stream.per_day * max(0.0, days - stream.from_day)
        if count > MOST_JOBS:
            message = f"there would be {count:,.0f} jobs of {stream.name}, more than {MOST_JOBS:,}."
            errors.append(FieldError(f"/jobs/add/{i}/per_day", message))
    return errors


def _fits(job: TraceJob, choice: JobChoice) -> bool:
    return (
        choice.group in (None, job.group)
        and choice.user in (None, job.user)
        and choice.kind in (None, job.kind)
        and (choice.gpus_from is None or job.gpus >= choice.gpus_from)
        and (choice.gpus_to is None or job.gpus <= choice.gpus_to)
    )


def _copies(job: TraceJob, times: float, seed: int, end_s: int, ids: set[str]) -> Iterator[TraceJob]:
    """So many of the job on average: itself if it is still there, and copies near it."""
    rng = Random(f"copies {seed} {job.id}")
    count = int(times) + (rng.random() < times - int(times))
    if count:
        yield job
    for i in range(2, count + 1):
        name = f"{job.id}~{i}"
        while name in ids:
            name += "~"
        yield _moved(replace(job, id=name, started_s=None), COPY_SPREAD_S, seed, end_s)


def _moved(job: TraceJob, by_s: int, seed: int, end_s: int) -> TraceJob:
    moved = job.submit_s + Random(f"moved {seed} {job.id}").randint(-by_s, by_s)
    return replace(job, submit_s=min(max(0, moved), max(0, end_s - 1)))


def _changed(job: TraceJob, fields: JobFields) -> TraceJob:
    change: dict[str, Any] = fields.model_dump(exclude_none=True)
    factor = change.pop("run_time_factor", None)
    if factor is not None:
        change["duration_s"] = round(job.duration_s * factor)
    if "gpu_types" in change:
        change["gpu_types"] = tuple(sorted(change["gpu_types"]))
    return replace(job, **change)


def _stream(stream: JobStream, seed: int, end_s: int) -> Iterator[TraceJob]:
    """Jobs of a stream: a Poisson process over its days."""
    rng = Random(f"stream {seed} {stream.name}")
    until = end_s if stream.until_day is None else min(end_s, round(stream.until_day * DAY_S))
    at, number = stream.from_day * DAY_S, 0
    while (at := at + rng.expovariate(stream.per_day / DAY_S)) < until:
        number += 1
        run_s = stream.run_s if stream.steady else rng.expovariate(1 / stream.run_s)
        yield TraceJob(
            id=f"{stream.name}-{number:06}",
            group=stream.group,
            submit_s=int(at),
            duration_s=max(1, round(run_s)),
            gpus=stream.gpus,
            user=stream.user,
            gpu_types=tuple(sorted(stream.gpu_types)),
            speedup=None if stream.speedup is None else dict(stream.speedup),
            min_runtime_s=stream.min_runtime_s,
            resumable=stream.resumable,
            priority=stream.priority,
            kind=stream.kind,
        )
