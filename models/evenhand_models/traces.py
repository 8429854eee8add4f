"""What a replay is fed: jobs as they came over weeks or months, and how the cluster changed meanwhile.

Slotted dataclasses, not wire models: a trace of 55,000 jobs is built in a second. Readers check what they
read; building one by hand checks nothing. Times are whole seconds since the trace's `t0`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from evenhand_models.groups import Group
from evenhand_models.hardware import Node


class TraceEnd(StrEnum):
    """How a job of a trace ended in the cluster it was recorded on."""

    COMPLETED = "completed"
    """It ended by itself."""
    FAILED = "failed"
    """It crashed, timed out or lost its node."""
    KILLED = "killed"
    """Somebody stopped it."""
    RUNNING = "running"
    """It had not ended when the trace was written."""
    UNKNOWN = "unknown"
    """The source does not say."""


@dataclass(frozen=True, slots=True)
class TraceJob:
    """One gang that came to the cluster.

    Attributes
    ----------
    id : str
        Unique in the trace.
    group : str
        Group it belongs to; one that is not in the cluster's tree makes it infeasible.
    submit_s : int
        When it was submitted, in seconds since the trace's `t0`, 0 or more.
    duration_s : int
        Seconds it runs, undisturbed, at a true speedup of 1; 0 or more. A scheduler must not see it.
    gpus : int
        Size of the gang in GPUs, 1 or more.
    user : str or None
        Who submitted it; None: unknown.
    gpu_types : tuple of str
        Types it accepts, in order; empty: any type of the cluster.
    speedup : mapping of str to float, or None
        What it declares: throughput of one GPU by type, on any scale; a type that is missing or 0 cannot run
        it. None: 1 on every type it accepts.
    true_speedup : mapping of str to float, or None
        What is so: `duration_s / true_speedup[type]` is its run time on a type. None: as declared, divided
        by the largest entry among the types of the cluster it accepts. A scheduler must not see it.
    min_runtime_s : int
        Its contract: seconds of protection after each start; 0: unallocated use.
    resumable : bool
        Whether it goes on after a preemption; if not, a preemption ends it.
    gpus_per_node, worker_gpus : int or None
        Shape of the gang, as in `evenhand_models.Job`.
    priority : int
        Orders jobs inside one group, higher first.
    state : TraceEnd
        How it ended. A scheduler must not see it.
    model : str or None
        What it trains or serves; None: unknown.
    kind : str or None
        Class of work, by which waits are reported (debug, train, large ...); None: unknown.
    started_s : int or None
        When it last started in the recorded cluster, in seconds since `t0`, may be negative; None: unknown.
    """

    id: str
    group: str
    submit_s: int
    duration_s: int
    gpus: int
    user: str | None = None
    gpu_types: tuple[str, ...] = ()
    speedup: Mapping[str, float] | None = None
    true_speedup: Mapping[str, float] | None = None
    min_runtime_s: int = 3_600
    resumable: bool = True
    gpus_per_node: int | None = None
    worker_gpus: int | None = None
    priority: int = 0
    state: TraceEnd = TraceEnd.UNKNOWN
    model: str | None = None
    kind: str | None = None
    started_s: int | None = None


@dataclass(frozen=True, slots=True)
class UsageSpan:
    """GPUs a group held before the trace begins: what the usage window is seeded with.

    Attributes
    ----------
    group : str
        Id of the group, own use only.
    start_s, end_s : int
        From when to when, in seconds since `t0`; both at most 0, half-open.
    charged_gpus : float
        Charged GPUs held meanwhile: GPUs times the charge rate of their type.
    """

    group: str
    start_s: int
    end_s: int
    charged_gpus: float


@dataclass(frozen=True, slots=True)
class WorldChange:
    """What changes in the cluster at one moment of a replay.

    Attributes
    ----------
    at_s : int
        When, in seconds since `t0`.
    nodes : tuple of Node
        From now on these nodes are as described: known names are replaced, new ones added.
    gone : tuple of str
        Names of nodes that are no longer there.
    groups : tuple of Group or None
        The whole tree from now on; None: unchanged.
    """

    at_s: int
    nodes: tuple[Node, ...] = ()
    gone: tuple[str, ...] = ()
    groups: tuple[Group, ...] | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """Jobs over a period, in the order of their submission.

    Attributes
    ----------
    name : str
        What results are headed with.
    t0 : datetime
        The instant of second 0, aware.
    jobs : tuple of TraceJob
        By `submit_s`, then id; ids are unique.
    end_s : int
        Seconds the period lasts; jobs come before it, a replay ends there.
    history : tuple of UsageSpan
        Use before second 0.
    changes : tuple of WorldChange
        By `at_s`.
    credit : str
        Whose data it is and under which terms; empty: own.
    """

    name: str
    t0: datetime
    jobs: tuple[TraceJob, ...]
    end_s: int
    history: tuple[UsageSpan, ...] = ()
    changes: tuple[WorldChange, ...] = ()
    credit: str = ""
