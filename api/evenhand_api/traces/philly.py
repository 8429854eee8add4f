"""Microsoft's Philly log (ATC'19): ``cluster_job_log``, a JSON list of jobs with their attempts.

Run times of all attempts are summed, the gang is the largest attempt's; times are read as UTC.
"""

from __future__ import annotations

from typing import Any

from evenhand_api.traces.fields import EPOCH, clean, stamp
from evenhand_api.traces.rows import BadRow, OddKind, OddRow, RawJob, RawTrace
from evenhand_models import FieldError, InvalidInput
from evenhand_models.traces import TraceEnd

ENDS = {"Pass": TraceEnd.COMPLETED, "Failed": TraceEnd.FAILED, "Killed": TraceEnd.KILLED}


def parse_philly(document: object) -> RawTrace:
    """Read the log; rows are numbered by their place in the list, from 1.

    Raises
    ------
    InvalidInput
        If it is no list.
    """
    if not isinstance(document, list):
        raise InvalidInput([FieldError("", "It is no list of jobs.")])
    jobs: list[RawJob] = []
    odd: list[OddRow] = []
    for place, entry in enumerate(document, start=1):
        try:
            jobs.append(_job(place, entry))
        except BadRow as bad:
            odd.append(OddRow(place, bad.kind, bad.message))
        except (AttributeError, KeyError, TypeError, ValueError) as reason:
            message = f"It is no job of a Philly log ({type(reason).__name__}: {reason})."
            odd.append(OddRow(place, OddKind.UNREADABLE, message))
    return RawTrace(jobs, odd, EPOCH)


def _job(place: int, entry: dict[str, Any]) -> RawJob:
    job = clean(str(entry["jobid"]), "jobid")
    ran_s, gpus, last = 0.0, 0, None
    for attempt in entry["attempts"]:
        start, end = attempt.get("start_time"), attempt.get("end_time")
        gpus = max(gpus, sum(len(part["gpus"]) for part in attempt.get("detail") or ()))
        if start and end and "None" not in (start, end):
            last = stamp(start, "start_time")
            ran_s += max(0.0, stamp(end, "end_time") - last)
    if last is None:
        raise BadRow(OddKind.NEVER_STARTED, f"Job {job} has no attempt with a start and an end.")
    if not gpus:
        raise BadRow(OddKind.NO_GPUS, f"Job {job} has no GPU.")
    return RawJob(
        line=place,
        id=job,
        groups={"vc": clean(str(entry.get("vc") or ""), "vc")},
        submit=stamp(str(entry["submitted_time"]), "submitted_time"),
        duration_s=ran_s,
        gpus=gpus,
        start=last,
        user=str(entry["user"]) if entry.get("user") else None,
        state=ENDS.get(str(entry.get("status")), TraceEnd.UNKNOWN),
    )
