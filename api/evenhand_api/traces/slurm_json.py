"""Slurm's accounting as JSON: ``sacct --json``, of data parsers that print plain numbers and of those that wrap them."""

from __future__ import annotations

from typing import Any

from evenhand_api.traces.fields import EPOCH, clean
from evenhand_api.traces.rows import BadRow, OddKind, OddRow, RawJob, RawTrace
from evenhand_api.traces.slurm_words import end_of, gpus_of
from evenhand_models import FieldError, InvalidInput


def parse_sacct_json(document: object) -> RawTrace:
    """Read what ``sacct --json`` printed; rows are numbered by their place in the list, from 1.

    Raises
    ------
    InvalidInput
        If there is no list of jobs.
    """
    listed = document.get("jobs") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise InvalidInput([FieldError("/jobs", "There is no list of jobs, as sacct --json prints it.")])
    jobs: list[RawJob] = []
    odd: list[OddRow] = []
    for place, entry in enumerate(listed, start=1):
        try:
            jobs.append(_job(place, entry))
        except BadRow as bad:
            odd.append(OddRow(place, bad.kind, bad.message))
        except (AttributeError, KeyError, TypeError, ValueError) as reason:
            message = f"It is no job as sacct --json prints them ({type(reason).__name__}: {reason})."
            odd.append(OddRow(place, OddKind.UNREADABLE, message))
    return RawTrace(jobs, odd, EPOCH)


def _plain(value: object) -> int:
    """A number, or the number inside ``{"set": ..., "number": ...}``; 0 if unset."""
    if isinstance(value, dict):
        value = value["number"] if value.get("set", True) else 0
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is no number")
    return int(value)


def _state(value: object) -> str:
    current = value.get("current", "") if isinstance(value, dict) else value
    return str(current[0] if isinstance(current, list) and current else current or "")


def _gpus(tres: list[dict[str, Any]]) -> tuple[int, tuple[str, ...]]:
    return gpus_of((str(entry["name"]), _plain(entry["count"])) for entry in tres if entry.get("type") == "gres")


def _job(place: int, entry: dict[str, Any]) -> RawJob:
    array, task = entry.get("array") or {}, (entry.get("array") or {}).get("task_id")
    number = _plain(entry["job_id"])
    parent = _plain(array.get("job_id", 0))
    in_array = parent and task is not None and (not isinstance(task, dict) or task.get("set"))
    job = f"{parent}_{_plain(task)}" if in_array else str(number)
    gpus, types = _gpus(entry["tres"]["allocated"])
    if not gpus:
        gpus, types = _gpus(entry["tres"]["requested"])
    if not gpus:
        raise BadRow(OddKind.NO_GPUS, f"Job {job} has no GPU.")
    time, state = entry["time"], _state(entry["state"])
    start = _plain(time["start"])
    if start <= 0 or state.upper() == "PENDING":
        raise BadRow(OddKind.NEVER_STARTED, f"Job {job} never started ({state or 'no state'}).")
    groups = {name: str(entry.get(name) or "") for name in ("account", "partition", "qos", "user", "cluster")}
    return RawJob(
        line=place,
        id=job,
        groups={name: clean(value, name) for name, value in groups.items()},
        submit=_plain(time["submission"]),
        duration_s=max(0, _plain(time["elapsed"])),
        gpus=gpus,
        start=start,
        user=groups["user"] or None,
        gpu_types=types,
        state=end_of(state),
    )
