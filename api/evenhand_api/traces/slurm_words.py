"""How Slurm writes states, GPUs and lengths of time."""

from __future__ import annotations

import re
from collections.abc import Iterable

from evenhand_api.traces.rows import BadRow, OddKind
from evenhand_models.traces import TraceEnd

ENDS = {
    "COMPLETED": TraceEnd.COMPLETED,
    "FAILED": TraceEnd.FAILED,
    "TIMEOUT": TraceEnd.FAILED,
    "NODE_FAIL": TraceEnd.FAILED,
    "OUT_OF_MEMORY": TraceEnd.FAILED,
    "BOOT_FAIL": TraceEnd.FAILED,
    "DEADLINE": TraceEnd.FAILED,
    "CANCELLED": TraceEnd.KILLED,
    "PREEMPTED": TraceEnd.KILLED,
    "REVOKED": TraceEnd.KILLED,
    "RUNNING": TraceEnd.RUNNING,
    "COMPLETING": TraceEnd.RUNNING,
    "SUSPENDED": TraceEnd.RUNNING,
    "STOPPED": TraceEnd.RUNNING,
}
"""Ends by Slurm's word; a state that is not here says nothing about the end."""


def end_of(state: str) -> TraceEnd:
    """What a state says about the end; ``CANCELLED by 10001`` is read as ``CANCELLED``."""
    return ENDS.get(state.strip().split(" ")[0].upper(), TraceEnd.UNKNOWN)


def gpus_of(tres: Iterable[tuple[str, int]]) -> tuple[int, tuple[str, ...]]:
    """Count GPUs of trackable resources, ``gpu`` or ``gpu:h100``, and name their types.

    Where a sum and its parts by type are both listed, they are the same GPUs.
    """
    plain, typed = 0, dict[str, int]()
    for name, count in tres:
        kind, _, gpu_type = name.partition(":")
        if kind == "gpu" and gpu_type:
            typed[gpu_type] = typed.get(gpu_type, 0) + count
        elif kind == "gpu":
            plain += count
    return max(plain, sum(typed.values())), tuple(sorted(kind for kind, count in typed.items() if count))


def gpus_written(tres: str) -> tuple[int, tuple[str, ...]]:
    """The same of ``cpu=1,gres/gpu=8,gres/gpu:h100=8,mem=64G``."""
    found = re.findall(r"(?:^|,)gres/(gpu(?::[^=,]+)?)=(\d{1,9})(?=,|$)", tres)
    return gpus_of((name, int(count)) for name, count in found)


def elapsed_s(text: str) -> float:
    """Seconds of ``186100``, ``01:39``, ``00:01:39`` or ``2-03:41:40``."""
    match = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)(?:\.\d+)?", text.strip())
    if match is None:
        if re.fullmatch(r"\d{1,12}", text.strip()):
            return float(text)
        raise BadRow(OddKind.UNREADABLE, f"the elapsed time is {text!r}, which is no length of time.")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
