"""Clusters to replay on: a state's nodes, types and groups, or built from a list of GPUs and a budget tree."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from evenhand_models import ClusterState, FieldError, GpuType, Group, InvalidInput, Node, parse_document
from evenhand_models.parse import read_json
from evenhand_models.traces import Trace

NOON = "2001-01-01T00:00:00Z"
LEVELS = ("programs", "projects", "researchers")
"""A budget tree, from the top; each entry has an id, a budget in GPU-hours and the next level's list."""


def parse_cluster(body: bytes) -> ClusterState:
    """Read a cluster: a state or request whose jobs are not looked at, or just gpu_types, nodes and groups.

    Raises
    ------
    InvalidInput
        If anything is wrong with it.
    """
    document = read_json(body)
    if not isinstance(document, dict):
        raise InvalidInput([FieldError("", "A cluster is an object with gpu_types, nodes and groups.")])
    state = document.get("state", document)
    if isinstance(state, dict):
        state = {"now": NOON, **state, "jobs": [], "usage": None}
    return parse_document(json.dumps({"state": state}).encode()).state


def built_cluster(gpus: Mapping[str, int], gpus_per_node: int, groups: Iterable[Group]) -> ClusterState:
    """Build a cluster of equal nodes; the last node of a type may be smaller."""
    nodes = []
    for kind, count in sorted(gpus.items()):
        sizes = [gpus_per_node] * (count // gpus_per_node) + ([count % gpus_per_node] if count % gpus_per_node else [])
        width = len(str(len(sizes)))
        nodes += [Node(name=f"{kind}-{i:0{width}}", gpu_type=kind, gpus=size) for i, size in enumerate(sizes, start=1)]
    return ClusterState.model_validate(
        {
            "now": NOON,
            "gpu_types": tuple(GpuType(name=kind) for kind in sorted(gpus)),
            "nodes": tuple(nodes),
            "groups": tuple(groups),
            "jobs": (),
        }
    )


def groups_of_trace(trace: Trace) -> tuple[Group, ...]:
    """One group, with an equal share, for each that the trace names."""
    return tuple(Group(id=name, share=1.0) for name in sorted({job.group for job in trace.jobs}))


def groups_of_budget(body: bytes, depth: int = 2) -> tuple[Group, ...]:
    """Read a budget tree of programs, projects and researchers: shares are budgets in GPU-hours.

    Parameters
    ----------
    depth : how many levels to take: 1 programs, 2 projects too, 3 researchers too.

    Raises
    ------
    InvalidInput
        If it is no such tree.
    """
    document = read_json(body)
    errors: list[FieldError] = []
    groups: list[Group] = []
    if not isinstance(document, dict) or not isinstance(document.get("programs"), list):
        raise InvalidInput([FieldError("/programs", "There is no list of programs, as a budget tree has it.")])
    _collect(document, "", None, depth, groups, errors)
    if errors:
        raise InvalidInput(errors)
    return tuple(groups)


def _collect(
    entry: dict[str, Any], pointer: str, parent: str | None, depth: int, groups: list[Group], errors: list[FieldError]
) -> None:
    level = pointer.count("/") // 2
    if level >= min(depth, len(LEVELS)):
        return
    for i, child in enumerate(entry.get(LEVELS[level]) or ()):
        at = f"{pointer}/{LEVELS[level]}/{i}"
        name = child.get("id") if isinstance(child, dict) else None
        budget = child.get("budget_gpu_h") if isinstance(child, dict) else None
        sound = isinstance(budget, int | float) and not isinstance(budget, bool) and budget >= 0
        if not isinstance(name, str) or not name or not sound:
            errors.append(FieldError(at, "It has no id, or no budget_gpu_h of 0 or more."))
            continue
        groups.append(Group(id=name, parent=parent, share=float(budget or 0)))
        _collect(child, at, name, depth, groups, errors)
