"""Limits of a process that solves rounds: sizes of a state, and memory."""

from __future__ import annotations

import resource
import sys
from dataclasses import dataclass
from pathlib import Path

from evenhand_models import ClusterState, FieldError, InvalidInput

MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Limits:
    """What a process may take on.

    Attributes
    ----------
    max_jobs, max_nodes : most of them in one state; None: no limit.
    memory_mb : memory of the process in MB, 0: no limit.
    """

    max_jobs: int | None = None
    max_nodes: int | None = None
    memory_mb: float = 0.0


class _InForce:
    limits = Limits()


def enforce(limits: Limits) -> None:
    """Put limits in force in this process, for good: an allocation above the memory fails, in C++ it ends the process."""
    _InForce.limits = limits
    if limits.memory_mb > 0:
        # Linux counts writable private memory under RLIMIT_DATA; address space would count every mapped library too.
        kind = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
        most = int(limits.memory_mb * MB)
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def check_size(state: ClusterState, at: str) -> None:
    """Refuse a state with more jobs or nodes than are taken.

    Parameters
    ----------
    at : JSON pointer of the state in the request.

    Raises
    ------
    InvalidInput
        If it has more; the pointers name the lists.
    """
    limits = _InForce.limits
    errors = size_errors(at, "jobs", len(state.jobs), limits.max_jobs)
    errors += size_errors(at, "nodes", len(state.nodes), limits.max_nodes)
    if errors:
        raise InvalidInput(errors)


def size_errors(at: str, name: str, count: int, most: int | None) -> list[FieldError]:
    """Say that a list is longer than is taken, if it is; most None: any length."""
    if most is None or count <= most:
        return []
    return [FieldError(f"{at}/{name}", f"{count:,} {name} are more than the {most:,} this service takes (max_{name}).")]


def resident_mb(pid: int) -> float:
    """Return the resident memory of a process in MB; 0 where it cannot be known."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0.0
    return pages * resource.getpagesize() / MB
