"""The state as rules S1 to S11 read it: every fact the other rules build on, as plain data.

Throughput and charges are whole thousandths of a GPU, durations seconds, sizes whole GPUs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from evenhand.audit.jobs import MILLI, JobReader, JobReading, nearest
from evenhand.audit.shape import Shapes
from evenhand.audit.tree import Tree, grow
from evenhand_models import ClusterState, Node, NodeStatus, Policy

__all__ = ["MILLI", "JobReading", "Reading", "nearest", "read"]


@dataclass(frozen=True, slots=True)
class Reading:
    """A state as the rules read it.

    Attributes
    ----------
    state, policy : ClusterState, Policy
        What was read.
    tree : Tree
        The groups.
    nodes : mapping of str to Node
        Nodes by name.
    open, keeping : frozenset of str
        Nodes that take new work, and nodes that may hold what they have (S3).
    room : mapping of str to int
        `room_n` of every node (S3).
    healthy : frozenset of str
        Keeping nodes that are not overfull: what stands there is not hit (S9).
    types : tuple of str
        All types, by name.
    capacity : mapping of str to int
        `m_t` in GPUs (S3).
    charge : mapping of str to int
        `rho_t` in thousandths (D).
    gpus : int
        `N`: GPUs of all nodes (S3).
    usage : mapping of str to float
        Charged GPU-hours of each group's own (S4).
    jobs : mapping of str to JobReading
        All jobs, by id in order.
    holding : tuple of JobReading
        Those that run or are on their way out, by id.
    members : mapping of str to tuple of JobReading
        The live budgeted jobs of each group that has some, by id.
    levels : mapping of str to tuple of int
        The distinct priorities of those, ascending (O4).
    shapes : Shapes
        Nominal nodes and shapes (S5, G3).
    """

    state: ClusterState
    policy: Policy
    tree: Tree
    nodes: Mapping[str, Node]
    open: frozenset[str]
    keeping: frozenset[str]
    room: Mapping[str, int]
    healthy: frozenset[str]
    types: tuple[str, ...]
    capacity: Mapping[str, int]
    charge: Mapping[str, int]
    gpus: int
    usage: Mapping[str, float]
    jobs: Mapping[str, JobReading]
    holding: tuple[JobReading, ...]
    members: Mapping[str, tuple[JobReading, ...]]
    levels: Mapping[str, tuple[int, ...]]
    shapes: Shapes


def read(state: ClusterState, policy: Policy) -> Reading:
    """Read a valid state by rules S1 to S11."""
    nodes = {node.name: node for node in sorted(state.nodes, key=lambda node: node.name)}
    tree = grow(state.groups)
    keeping = frozenset(name for name, node in nodes.items() if _keeping(node, state.now))
    opened = frozenset(name for name in keeping if nodes[name].status is NodeStatus.UP)
    room = {name: max(0, node.usable_gpus) if name in keeping else 0 for name, node in nodes.items()}
    types = tuple(sorted(kind.name for kind in state.gpu_types))
    capacity = dict.fromkeys(types, 0)
    for name in opened:
        capacity[nodes[name].gpu_type] += room[name]
    charge = {kind.name: max(1, round(MILLI * kind.charge_rate)) for kind in state.gpu_types}
    healthy = frozenset(keeping - _overfull(state, nodes))
    reader = JobReader(state.now, policy, tree, nodes, healthy, charge, Shapes(nodes))
    jobs = {job.id: reader.read(job) for job in sorted(state.jobs, key=lambda job: job.id)}
    levels = _set_levels(jobs)
    members: dict[str, list[JobReading]] = {}
    for reading in jobs.values():
        if reading.budgeted and reading.group is not None:
            members.setdefault(reading.group, []).append(reading)
    return Reading(
        state=state,
        policy=policy,
        tree=tree,
        nodes=nodes,
        open=opened,
        keeping=keeping,
        room=room,
        healthy=healthy,
        types=types,
        capacity=capacity,
        charge=charge,
        gpus=sum(node.gpus for node in nodes.values()),
        usage=_usage(state, tree),
        jobs=jobs,
        holding=tuple(job for job in jobs.values() if not job.pending),
        members={group: tuple(listed) for group, listed in members.items()},
        levels=levels,
        shapes=reader.shapes,
    )


def _keeping(node: Node, now: datetime) -> bool:
    """Say whether a node may hold what it has: not down, and not past its maintenance (S3)."""
    ends = node.available_until_at
    return node.status is not NodeStatus.DOWN and (ends is None or ends > now)


def _overfull(state: ClusterState, nodes: Mapping[str, Node]) -> set[str]:
    """Return the nodes on which more is placed than is usable (S9)."""
    placed: dict[str, int] = {}
    for job in state.jobs:
        for part in job.placement:
            placed[part.node] = placed.get(part.node, 0) + part.gpus
    return {name for name, gpus in placed.items() if name in nodes and gpus > max(0, nodes[name].usable_gpus)}


def _usage(state: ClusterState, tree: Tree) -> dict[str, float]:
    """Add up each group's own usage; that of unknown groups goes to the nearest one named (S4)."""
    usage = dict.fromkeys(tree.order, 0.0)
    for entry in sorted(state.usage or (), key=lambda entry: entry.group):
        if (group := nearest(entry.group, tree)) is not None:
            usage[group] += max(0.0, entry.charged_gpu_hours)
    return usage


def _set_levels(jobs: Mapping[str, JobReading]) -> dict[str, tuple[int, ...]]:
    """Give every live job its level, and return the budgeted priorities of each group (O4, O7)."""
    found: dict[tuple[str, bool], set[int]] = {}
    for reading in jobs.values():
        if reading.live and reading.group is not None:
            found.setdefault((reading.group, reading.budgeted), set()).add(reading.job.priority)
    ranks = {
        key: {priority: place / max(1, len(values) - 1) for place, priority in enumerate(sorted(values))}
        for key, values in found.items()
        if len(values) > 1
    }
    for reading in jobs.values():
        if reading.live and reading.group is not None:
            rank = ranks.get((reading.group, reading.budgeted))
            reading.level = 1.0 if rank is None else rank[reading.job.priority]
    return {group: tuple(sorted(values)) for (group, budgeted), values in found.items() if budgeted}
