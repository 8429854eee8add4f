"""What must hold between the parts of a state. Every check is linear and reports all it finds.

A `Draft` is as much of a state as could be read: after a malformed field the rest is still checked, so that
one answer names everything that is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from evenhand_models.errors import FieldError
from evenhand_models.groups import Group, Usage
from evenhand_models.hardware import GpuType, Node, node_errors
from evenhand_models.jobs import Job, JobState, job_errors
from evenhand_models.quantities import CLOCK_TOLERANCE
from evenhand_models.tree import duplicate_errors, structure_errors


@dataclass(slots=True)
class Draft:
    """The readable parts of a state, each with its place in the list it came from.

    `unread` holds, by list, the names of entries that could not be read themselves: they take part in the
    checks on names (duplicates, references), so that one bad field does not raise false alarms elsewhere.
    `unsure` holds the lists of which not even all names could be read: references into them are not judged.
    """

    now: datetime | None
    gpu_types: list[tuple[int, GpuType]]
    nodes: list[tuple[int, Node]]
    groups: list[tuple[int, Group]]
    usage: list[tuple[int, Usage]]
    jobs: list[tuple[int, Job]]
    max_protection_s: int | None = None
    unread: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    unsure: set[str] = field(default_factory=set)


def entry_errors(draft: Draft) -> tuple[FieldError, ...]:
    """Say all contradictions inside single nodes and jobs; pointers are relative to the state."""
    nodes = (error.under(f"/nodes/{i}") for i, node in draft.nodes for error in node_errors(node))
    jobs = (error.under(f"/jobs/{i}") for i, job in draft.jobs for error in job_errors(job))
    return (*nodes, *jobs)


def draft_errors(draft: Draft) -> tuple[FieldError, ...]:
    """Say all contradictions between the entries of a state; pointers are relative to the state."""
    unread = draft.unread
    types = [(i, t.name) for i, t in draft.gpu_types] + unread.get("gpu_types", [])
    nodes = [(i, n.name) for i, n in draft.nodes] + unread.get("nodes", [])
    groups = [(i, g.id) for i, g in draft.groups] + unread.get("groups", [])
    usage = [(i, u.group) for i, u in draft.usage] + unread.get("usage", [])
    jobs = [(i, j.id) for i, j in draft.jobs] + unread.get("jobs", [])
    errors = [
        *duplicate_errors("gpu_types", "name", types),
        *duplicate_errors("nodes", "name", nodes),
        *duplicate_errors("groups", "id", groups),
        *duplicate_errors("usage", "group", usage),
        *duplicate_errors("jobs", "id", jobs),
        *structure_errors(draft.groups, None if "groups" in draft.unsure else {name for _, name in groups}),
        *([] if "gpu_types" in draft.unsure else _type_errors(draft.nodes, {name for _, name in types})),
        *_placed_errors(draft.nodes, draft.jobs),
    ]
    if draft.now is not None:
        errors += _clock_errors(draft.now, draft.nodes, draft.jobs)
    if draft.max_protection_s is not None:
        errors += protection_errors(draft.jobs, draft.max_protection_s)
    return tuple(errors)


def _type_errors(nodes: Iterable[tuple[int, Node]], types: set[str]) -> list[FieldError]:
    """Name every node whose type is not in the list of types."""
    return [
        FieldError(f"/nodes/{i}/gpu_type", f"node {node.name!r} has gpu_type {node.gpu_type!r}, not in gpu_types.")
        for i, node in nodes
        if node.gpu_type not in types
    ]


def _placed_errors(nodes: list[tuple[int, Node]], jobs: list[tuple[int, Job]]) -> list[FieldError]:
    """Hold what jobs hold against what nodes have; a node that is not listed is lost, no error."""
    by_name: dict[str, tuple[int, Node]] = {}
    for entry in nodes:
        by_name.setdefault(entry[1].name, entry)
    held = dict.fromkeys(by_name, 0)
    errors = []
    for index, job in jobs:
        for part in job.placement:
            if part.node in held:
                held[part.node] += part.gpus
        if len(job.placement) > 1:
            types = {by_name[part.node][1].gpu_type for part in job.placement if part.node in by_name}
            if len(types) > 1:
                mixed = ", ".join(map(repr, sorted(types)))
                message = f"job {job.id!r} is placed on GPUs of the types {mixed}; a gang has one type."
                errors.append(FieldError(f"/jobs/{index}/placement", message))
    over = {name for name, gpus in held.items() if gpus > by_name[name][1].gpus}
    if over:
        errors += _overfull_errors(over, by_name, jobs)
    return errors


def _overfull_errors(
    over: set[str], by_name: dict[str, tuple[int, Node]], jobs: list[tuple[int, Job]]
) -> list[FieldError]:
    """Name, for each node that holds too much, all jobs on it."""
    holders: dict[str, list[tuple[str, int]]] = {name: [] for name in over}
    for _, job in jobs:
        for part in job.placement:
            if part.node in over:
                holders[part.node].append((job.id, part.gpus))
    errors = []
    for index, node in sorted((by_name[name] for name in over), key=lambda entry: entry[0]):
        listed = ", ".join(f"{job!r} ({gpus})" for job, gpus in holders[node.name])
        total = sum(gpus for _, gpus in holders[node.name])
        message = f"node {node.name!r} has {node.gpus} gpus, but jobs hold {total} on it: {listed}."
        errors.append(FieldError(f"/nodes/{index}/gpus", message))
    return errors


def _clock_errors(
    now: datetime, nodes: Iterable[tuple[int, Node]], jobs: Iterable[tuple[int, Job]]
) -> list[FieldError]:
    """Refuse reports from the future beyond what clocks may differ by."""
    latest, tolerated = now + CLOCK_TOLERANCE, CLOCK_TOLERANCE.total_seconds()
    errors = []

    def late(pointer: str, who: str, name: str, instant: datetime) -> FieldError:
        ahead = (instant - now).total_seconds()
        return FieldError(
            f"{pointer}/{name}",
            f"{who} has {name} {ahead:.15g} s after now; more than {tolerated:g} s is refused.",
        )

    for i, node in nodes:
        if node.down_since_at is not None and node.down_since_at > latest:
            errors.append(late(f"/nodes/{i}", f"node {node.name!r}", "down_since_at", node.down_since_at))
    for i, job in jobs:
        if job.submitted_at > latest:
            errors.append(late(f"/jobs/{i}", f"job {job.id!r}", "submitted_at", job.submitted_at))
        if job.started_at is not None and job.started_at > latest:
            errors.append(late(f"/jobs/{i}", f"job {job.id!r}", "started_at", job.started_at))
        if job.checkpointed_at is not None and job.checkpointed_at > latest:
            errors.append(late(f"/jobs/{i}", f"job {job.id!r}", "checkpointed_at", job.checkpointed_at))
    return errors


def protection_errors(jobs: Iterable[tuple[int, Job]], cap_s: int) -> list[FieldError]:
    """Refuse contracts of pending jobs above the cap; running ones the allocator cuts, with a warning."""
    return [
        FieldError(
            f"/jobs/{i}/contract/min_runtime_s",
            f"job {job.id!r} asks for {job.contract.min_runtime_s} s of protection, "
            f"above the policy's max_protection_s of {cap_s} s.",
        )
        for i, job in jobs
        if job.contract.min_runtime_s > cap_s and job.state is JobState.PENDING
    ]
