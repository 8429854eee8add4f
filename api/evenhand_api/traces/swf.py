"""The Standard Workload Format 2.2 of the Parallel Workloads Archive; its processors are read as GPUs.

Eighteen numbers a line, -1 for unknown; comments begin with a semicolon, some of them say when the log began
and what queues are called.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from evenhand_api.traces.neutral import SOME_MONDAY
from evenhand_api.traces.rows import BadRow, OddKind, OddRow, RawJob, RawTrace
from evenhand_models.traces import TraceEnd

FIELDS = 18
ENDS = {0: TraceEnd.FAILED, 1: TraceEnd.COMPLETED, 5: TraceEnd.KILLED}


def parse_swf(text: str) -> RawTrace:
    """Read a workload log; jobs start when they were submitted plus their wait, if that is known."""
    names: dict[str, str] = {}
    clock = SOME_MONDAY
    jobs: list[RawJob] = []
    odd: list[OddRow] = []
    for line, written in enumerate(text.split("\n"), start=1):
        if written.lstrip().startswith(";"):
            said = re.match(r"\s*;\s*(Queue|UnixStartTime):\s*(-?\d+)\s*(\S*)", written)
            if said is not None and said[1] == "Queue" and said[3]:
                names[said[2]] = said[3]
            elif said is not None and said[1] == "UnixStartTime" and 0 < int(said[2]) < 7_000_000_000:
                clock = datetime.fromtimestamp(int(said[2]), UTC)
        elif written.strip():
            try:
                jobs.append(_job(line, written.split(), names))
            except BadRow as bad:
                odd.append(OddRow(line, bad.kind, bad.message))
    return RawTrace(jobs, odd, clock, begins=0.0)


def _job(line: int, fields: list[str], queues: dict[str, str]) -> RawJob:
    if len(fields) != FIELDS:
        raise BadRow(OddKind.FIELD_COUNT, f"It has {len(fields)} fields, a job has {FIELDS}.")
    try:
        values = [float(field) for field in fields]
    except ValueError:
        bad = next(field for field in fields if not re.fullmatch(r"[-+]?[\d.]+(e[-+]?\d+)?", field))
        raise BadRow(OddKind.UNREADABLE, f"{bad!r} is no number.") from None
    if not all(abs(value) < 1e12 for value in values):
        raise BadRow(OddKind.UNREADABLE, "One of its numbers cannot be.")
    number, submit, wait, run = values[:4]
    gpus = values[7] if values[7] > 0 else values[4]
    if gpus <= 0:
        raise BadRow(OddKind.NO_GPUS, f"Job {number:g} has no processor.")
    if run < 0:
        raise BadRow(OddKind.NEVER_STARTED, f"Job {number:g} has no run time.")
    if gpus > 1e6:
        raise BadRow(OddKind.UNREADABLE, f"Job {number:g} asks for {gpus:g} processors, which cannot be.")
    user, group, queue = (int(values[i]) for i in (11, 12, 14))
    named = queues.get(str(queue), f"queue{queue}" if queue >= 0 else "")
    groups = {"group": f"group{group}" if group >= 0 else "", "queue": named}
    return RawJob(
        line=line,
        id=f"{number:g}",
        groups=groups if not queues else {"queue": named, "group": groups["group"]},
        submit=submit,
        duration_s=run,
        gpus=gpus,
        start=submit + wait if wait >= 0 else None,
        user=f"user{user}" if user >= 0 else None,
        state=ENDS.get(int(values[10]), TraceEnd.UNKNOWN),
    )
