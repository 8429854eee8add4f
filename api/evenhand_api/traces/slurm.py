"""Slurm's accounting as text: ``sacct --parsable2`` with any delimiter and at least the columns needed.

A job's own row has no dot in `JobID`; its steps are left out, or stand for it where an export holds only
steps. GPUs are those allocated, else those requested. Times without an offset are read as UTC.
"""

from __future__ import annotations

import re

from evenhand_api.traces.fields import EPOCH, Row, clean, read_each, stamp
from evenhand_api.traces.rows import BadRow, OddKind, OddRow, RawJob, RawTrace, ReadOptions
from evenhand_api.traces.slurm_words import elapsed_s, end_of, gpus_written
from evenhand_models import FieldError, InvalidInput

NEEDS = ("jobid", "submit", "state")
FREE_TEXT = {"jobname", "constraints", "comment", "admincomment", "systemcomment", "workdir", "submitline", "reason"}
"""Columns in which the delimiter may stand."""
IS_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
UNKNOWN = {"", "unknown", "none", "n/a"}


def parse_sacct(text: str, options: ReadOptions) -> RawTrace:
    """Read what ``sacct --parsable2`` printed.

    Raises
    ------
    InvalidInput
        If there is no header and no `columns`, or a column is missing.
    """
    lines = text.split("\n")
    header, delimiter, first = _header(lines, options)
    if missing := [name for name in NEEDS if name not in header]:
        raise InvalidInput([FieldError("", f"Column {missing[0]} is missing; sacct -o names what it prints.")])
    if "alloctres" not in header and "reqtres" not in header:
        raise InvalidInput([FieldError("", "Neither AllocTRES nor ReqTRES is there: nothing says how many GPUs.")])
    rows: list[tuple[int, Row]] = []
    odd: list[OddRow] = []
    for line, written in enumerate(lines[first:], start=first + 1):
        fields = _fitted(written.rstrip("\r").split(delimiter), header, delimiter)
        if len(fields) == len(header):
            rows.append((line, dict(zip(header, fields, strict=True))))
        elif written.strip():
            odd.append(OddRow(line, OddKind.FIELD_COUNT, f"It has {len(fields)} fields, the header has {len(header)}."))
    return RawTrace(read_each(_allocations(rows), _job, odd), odd, EPOCH)


def _header(lines: list[str], options: ReadOptions) -> tuple[list[str], str, int]:
    """Column names in lower case, the delimiter, and how many lines the header takes."""
    top = lines[0].rstrip("\r").lstrip("\ufeff")
    if options.columns:
        return [name.strip().lower() for name in options.columns], "|", 0
    found = re.match(r"[A-Za-z]+([^A-Za-z]+)[A-Za-z]", top)
    if found is None or "jobid" not in top.lower():
        message = "The first line is no header of sacct; name the columns in the order they were asked for."
        raise InvalidInput([FieldError("", message)])
    return top.lower().split(found[1]), found[1], 1


def _fitted(fields: list[str], header: list[str], delimiter: str) -> list[str]:
    """Put a value that holds the delimiter together again, where only one free text of the row can be it."""
    extra = len(fields) - len(header)
    if extra <= 0:
        return fields
    for column in (i for i, name in enumerate(header) if name in FREE_TEXT):
        joined = [*fields[:column], delimiter.join(fields[column : column + extra + 1]), *fields[column + extra + 1 :]]
        row = dict(zip(header, joined, strict=True))
        if IS_TIME.fullmatch(row["submit"]) and row["state"][:1].isupper():
            return joined
    return fields


def _allocations(rows: list[tuple[int, Row]]) -> list[tuple[int, Row]]:
    """Jobs' own rows; of a job that has none the step with most GPUs, under the job's id."""
    own = [(line, row) for line, row in rows if "." not in row["jobid"]]
    known = {row["jobid"] for _, row in own}
    steps: dict[str, list[tuple[int, Row]]] = {}
    for line, row in rows:
        job = row["jobid"].partition(".")[0]
        if "." in row["jobid"] and job not in known:
            steps.setdefault(job, []).append((line, row))
    for job, found in steps.items():
        line, row = max(found, key=lambda entry: (_gpus(entry[1])[0], entry[1].get("elapsedraw", ""), -entry[0]))
        own.append((line, {**row, "jobid": job}))
    return sorted(own, key=lambda entry: entry[0])


def _gpus(row: Row) -> tuple[int, tuple[str, ...]]:
    allocated = gpus_written(row.get("alloctres", ""))
    return allocated if allocated[0] else gpus_written(row.get("reqtres", ""))


def _job(line: int, row: Row) -> RawJob:
    job = clean(row["jobid"].strip(), "JobID")
    gpus, types = _gpus(row)
    if not gpus:
        raise BadRow(OddKind.NO_GPUS, f"Job {job} has no GPU.")
    start = row.get("start", "").strip()
    if start.lower() in UNKNOWN or "[" in job:
        raise BadRow(OddKind.NEVER_STARTED, f"Job {job} never started ({row['state'].strip() or 'no state'}).")
    ran = row.get("elapsedraw", "").strip() or row.get("elapsed", "").strip()
    began = stamp(start, "Start")
    if not ran:
        ran = str(max(0, round(stamp(row.get("end", ""), "End") - began)))
    groups = {name: row[name].strip() for name in ("account", "partition", "qos", "user", "cluster") if name in row}
    return RawJob(
        line=line,
        id=job,
        groups=groups,
        submit=stamp(row["submit"], "Submit"),
        duration_s=elapsed_s(ran),
        gpus=gpus,
        start=began,
        user=row.get("user", "").strip() or None,
        gpu_types=types,
        state=end_of(row["state"]),
    )
