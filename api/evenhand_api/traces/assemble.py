"""From rows to a trace: one clock, one order, usage before the period, and all that is odd by line."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from evenhand_api.traces.rows import OddKind, OddRow, RawJob, RawTrace, Reading, ReadOptions
from evenhand_models import FieldError, InvalidInput
from evenhand_models.traces import Trace, TraceEnd, TraceJob, UsageSpan

HOUR_S = 3_600
LONGEST_S = 10 * 365 * 86_400
"""Longest duration that is believed, ten years."""


def assemble(name: str, raw: RawTrace, options: ReadOptions) -> Reading:
    """Make a trace of rows; equal rows in any order make equal traces.

    Raises
    ------
    InvalidInput
        If no row is a job.
    """
    odd = list(raw.odd)
    rows = len(raw.jobs) + len({o.line for o in odd if o.kind.left_out})
    in_order = all(a.submit <= b.submit for a, b in zip(raw.jobs, raw.jobs[1:], strict=False))
    jobs = _unique(raw.jobs, odd)
    begins, ends = _period(raw, jobs, options)
    inside = [job for job in (_inside(job, begins, ends, raw, options, odd) for job in jobs) if job is not None]
    if not inside:
        raise InvalidInput([FieldError("", f"{name} has no job that could be replayed.{_first(odd)}")])
    end_s = math.ceil(ends - begins)
    made = sorted((_job(job, begins, end_s, options, odd) for job in inside), key=lambda job: (job.submit_s, job.id))
    trace = Trace(
        name=name,
        t0=raw.clock + timedelta(seconds=begins),
        jobs=tuple(made),
        end_s=end_s,
        history=_history(jobs, begins, options) if options.since is not None else (),
        credit=raw.credit,
    )
    return Reading(trace, tuple(sorted(odd)), rows, in_order)


def _first(odd: list[OddRow]) -> str:
    if not odd:
        return ""
    worst = min(odd)
    return f" {len(odd):,} rows are odd, the first in line {worst.line:,}: {worst.message}"


def _rank(job: RawJob) -> tuple[Any, ...]:
    """An order of rows that does not depend on where they stand."""
    return (job.submit, job.id, job.duration_s, job.gpus, sorted(job.groups.items()), job.user or "", job.gpu_types)


def _unique(jobs: Iterable[RawJob], odd: list[OddRow]) -> list[RawJob]:
    """Keep the first row of each id, by submission and whatever else tells them apart."""
    kept: dict[str, RawJob] = {}
    for job in sorted(jobs, key=_rank):
        if job.id in kept:
            message = f"Job {job.id} stands in line {kept[job.id].line:,} too, which is taken."
            odd.append(OddRow(job.line, OddKind.DUPLICATE_ID, message))
        else:
            kept[job.id] = job
    return list(kept.values())


def _period(raw: RawTrace, jobs: list[RawJob], options: ReadOptions) -> tuple[float, float]:
    """Second of the source's clock at which the trace begins and ends; by itself an hour after the last submission."""
    first, last = (jobs[0].submit, jobs[-1].submit) if jobs else (0.0, 0.0)
    begins = math.floor(first) if raw.begins is None else raw.begins
    begins = begins if options.since is None else _on(raw.clock, options.since)
    ends = begins + (math.floor((last - begins) / HOUR_S) + 2) * HOUR_S if raw.ends is None else raw.ends
    ends = ends if options.until is None else _on(raw.clock, options.until)
    if ends <= begins:
        raise InvalidInput([FieldError("", "The period ends before it begins: check the dates asked for.")])
    return begins, ends


def _on(clock: datetime, at: datetime) -> float:
    return (at - clock).total_seconds()


def _inside(
    job: RawJob, begins: float, ends: float, raw: RawTrace, options: ReadOptions, odd: list[OddRow]
) -> RawJob | None:
    """The part of a job that lies in the period; None if there is none."""
    if job.submit >= ends:
        if options.until is None:
            odd.append(OddRow(job.line, OddKind.AFTER_END, f"Job {job.id} was submitted after the end of the period."))
        return None
    if job.submit >= begins:
        return job
    if options.since is None:
        odd.append(OddRow(job.line, OddKind.BEFORE_START, f"Job {job.id} was submitted before second 0."))
        return None
    if job.start is None or job.start + job.duration_s <= begins:
        return None
    return replace(job, submit=begins, duration_s=job.duration_s - max(0.0, begins - job.start))


def _job(job: RawJob, begins: float, end_s: int, options: ReadOptions, odd: list[OddRow]) -> TraceJob:
    """Make one job, and say what is odd about it."""
    gpus, duration_s = math.ceil(job.gpus - 1e-9), round(job.duration_s)
    group = _group(job, options)
    found: list[tuple[OddKind, str]] = []
    if gpus != job.gpus:
        found.append((OddKind.FRACTION, f"Job {job.id} shares a GPU: {job.gpus:g} is read as {gpus}."))
    if duration_s == 0:
        found.append((OddKind.ZERO_DURATION, f"Job {job.id} ends as soon as it starts."))
    if job.state is TraceEnd.RUNNING:
        message = f"Job {job.id} had not ended: it counts with the {duration_s} s it had run."
        found.append((OddKind.STILL_RUNNING, message))
    if duration_s > end_s:
        message = f"Job {job.id} runs {duration_s} s, longer than the period of {end_s} s."
        found.append((OddKind.LONGER_THAN_PERIOD, message))
    if options.groups is not None and group not in options.groups:
        found.append(
            (OddKind.UNKNOWN_GROUP, f"Job {job.id} is of group {group!r}, which is not in the cluster's tree.")
        )
    if options.gpu_types is not None and job.gpu_types and not options.gpu_types & set(job.gpu_types):
        message = f"Job {job.id} accepts {' or '.join(job.gpu_types)}, none of which is in the cluster."
        found.append((OddKind.UNKNOWN_TYPE, message))
    odd += (OddRow(job.line, kind, message) for kind, message in found)
    fields: dict[str, Any] = {"min_runtime_s": options.min_runtime_s, "resumable": options.resumable} | job.more
    return TraceJob(
        id=job.id,
        group=group,
        submit_s=math.floor(job.submit - begins),
        duration_s=duration_s,
        gpus=gpus,
        user=job.user,
        gpu_types=job.gpu_types,
        state=job.state,
        started_s=None if job.start is None else round(job.start - begins),
        **fields,
    )


def _group(job: RawJob, options: ReadOptions) -> str:
    """The group of a job, by the field asked for.

    Raises
    ------
    InvalidInput
        If the source has no such field.
    """
    if options.group_by is None:
        return next(iter(job.groups.values()), "") or options.group
    if options.group_by not in job.groups:
        known = ", ".join(job.groups) or "none"
        message = f"There is no {options.group_by!r} to group by; there is: {known}."
        raise InvalidInput([FieldError("/group_by", message)])
    return job.groups[options.group_by] or options.group


def _history(jobs: list[RawJob], begins: float, options: ReadOptions) -> tuple[UsageSpan, ...]:
    """What ran before the period, as charged GPUs by group."""
    spans = []
    for job in jobs:
        if job.start is None or job.start >= begins:
            continue
        end = min(begins, job.start + job.duration_s)
        rate = options.charge_rates.get(job.gpu_types[0], 1.0) if len(job.gpu_types) == 1 else 1.0
        start_s, end_s = round(job.start - begins), round(end - begins)
        if end_s > start_s and job.more.get("min_runtime_s", options.min_runtime_s) != 0:
            spans.append(UsageSpan(_group(job, options), start_s, end_s, job.gpus * rate))
    return tuple(sorted(spans, key=lambda span: (span.start_s, span.end_s, span.group, span.charged_gpus)))
