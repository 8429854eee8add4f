"""The neutral CSV: one job a row, seconds since the beginning of the period. Read and written.

Columns ``job_id,group,user,submit_s,duration_s,gpus,gpu_type,state,model``; if wanted also ``min_runtime_s``,
``resumable``, ``kind``, ``priority``, ``gpus_per_node``, ``worker_gpus``, ``speedup``, ``true_speedup`` and
``started_s``. Empty means that the source does not say. Lists are joined by ``|``, speedups read ``a100:2|h100:3.5``.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from evenhand_api.traces.fields import Row, clean, csv_rows, gang, named, number, read_each, whole
from evenhand_api.traces.rows import BadRow, OddKind, RawJob, RawTrace, ReadOptions
from evenhand_models.traces import Trace, TraceEnd, TraceJob

BASE = ("job_id", "group", "user", "submit_s", "duration_s", "gpus", "gpu_type", "state", "model")
NEEDS = ("job_id", "submit_s", "duration_s", "gpus")
SOME_MONDAY = datetime(2001, 1, 1, tzinfo=UTC)
"""The beginning of a trace that does not say when it was."""


def parse_neutral(text: str, options: ReadOptions) -> RawTrace:
    """Read the neutral CSV."""
    rows, odd = csv_rows(text, NEEDS, options.columns)
    return RawTrace(read_each(rows, _job, odd), odd, SOME_MONDAY, begins=0.0)


def _job(line: int, row: Row) -> RawJob:
    started = row.get("started_s", "").strip()
    return RawJob(
        line=line,
        id=named(row, "job_id"),
        groups={name: clean(row.get(name, "").strip(), name) for name in ("group", "user")},
        submit=number(row, "submit_s", least=-1e12),
        duration_s=number(row, "duration_s"),
        gpus=gang(row, "gpus"),
        start=number(row, "started_s", least=-1e12) if started else None,
        user=row.get("user") or None,
        gpu_types=_types(row.get("gpu_type", "")),
        state=_end(row.get("state", "")),
        more=_more(row),
    )


def _types(text: str) -> tuple[str, ...]:
    return tuple(sorted({clean(part.strip(), "gpu_type") for part in text.split("|") if part.strip()}))


def _end(text: str) -> TraceEnd:
    try:
        return TraceEnd(text.strip() or "unknown")
    except ValueError:
        raise BadRow(OddKind.UNREADABLE, f"state is {text!r}, which is none of {', '.join(TraceEnd)}.") from None


def _more(row: Row) -> dict[str, object]:
    """The columns that not every trace has."""
    more: dict[str, object] = {}
    for name in ("min_runtime_s", "gpus_per_node", "worker_gpus", "priority"):
        if row.get(name, "").strip():
            more[name] = whole(row, name)
    for name in ("speedup", "true_speedup"):
        if row.get(name, "").strip():
            more[name] = _speedups(row[name], name)
    if row.get("resumable", "").strip():
        more["resumable"] = _flag(row["resumable"])
    for name in ("kind", "model"):
        if row.get(name):
            more[name] = clean(row[name], name)
    return more


def _flag(text: str) -> bool:
    known = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
    if text.strip().lower() not in known:
        raise BadRow(OddKind.UNREADABLE, f"resumable is {text!r}, neither 1 nor 0.")
    return known[text.strip().lower()]


def _speedups(text: str, name: str) -> dict[str, float]:
    found = {}
    for part in text.split("|"):
        kind, _, factor = part.rpartition(":")
        if not kind:
            raise BadRow(OddKind.UNREADABLE, f"{name} is {text!r}, which does not read type:factor|type:factor.")
        found[clean(kind.strip(), name)] = number({name: factor}, name)
    return dict(sorted(found.items()))


def write_neutral(trace: Trace) -> str:
    """Write a trace as neutral CSV, with the further columns that any of its jobs needs."""
    more = [name for name, (cell, plain) in _FURTHER.items() if any(cell(job) != plain for job in trace.jobs)]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*BASE, *more])
    for job in trace.jobs:
        base = (job.id, job.group, job.user or "", job.submit_s, job.duration_s, job.gpus, "|".join(job.gpu_types))
        end = "" if job.state is TraceEnd.UNKNOWN else str(job.state)
        writer.writerow([*base, end, job.model or "", *(_FURTHER[name][0](job) for name in more)])
    return out.getvalue()


def _written(speedup: Mapping[str, float] | None) -> str:
    return "|".join(f"{kind}:{factor!r}" for kind, factor in sorted((speedup or {}).items()))


_FURTHER: dict[str, tuple[Callable[[TraceJob], object], object]] = {
    "min_runtime_s": (lambda job: job.min_runtime_s, None),
    "resumable": (lambda job: int(job.resumable), None),
    "kind": (lambda job: job.kind or "", ""),
    "priority": (lambda job: job.priority, 0),
    "gpus_per_node": (lambda job: job.gpus_per_node or "", ""),
    "worker_gpus": (lambda job: job.worker_gpus or "", ""),
    "speedup": (lambda job: _written(job.speedup), ""),
    "true_speedup": (lambda job: _written(job.true_speedup), ""),
    "started_s": (lambda job: "" if job.started_s is None else job.started_s, ""),
}
"""Further columns: how a job fills them, and what stands there if it does not."""
