"""The state as rules S1 to S11 read it: every fact the other rules build on, as plain data.

Throughput and charges are whole thousandths of a GPU, durations seconds, sizes whole GPUs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Set
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from operator import attrgetter

from evenhand.audit.jobs import MILLI, JobReader, JobReading, Kind, nearest
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
    type_of : mapping of str to str
        The type of every node.
    capacity : mapping of str to int
        `m_t` in GPUs (S3).
    charge : mapping of str to int
        `rho_t` in thousandths (D).
    gpus : int
        `N`: GPUs of all nodes (S3).
    largest_node : int
        GPUs of the largest node, broken or not (O3).
    usage : mapping of str to float
        Charged GPU-hours of each group's own (S4).
    jobs : mapping of str to JobReading
        All jobs, by id in order.
    named : set of str
        Every id that jobs name: users, nodes, types, labels, and groups that are not in the tree.
    waiting : frozenset of str
        Ids of those that are pending and feasible.
    holding : tuple of JobReading
        Those that run or are on their way out, by id.
    holds : frozenset of str
        Their ids.
    members : mapping of str to tuple of JobReading
        The live budgeted jobs of each group that has some, by id.
    kinds : mapping of str to mapping of Kind to int
        How many of those are of a kind.
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
    type_of: Mapping[str, str]
    capacity: Mapping[str, int]
    charge: Mapping[str, int]
    gpus: int
    largest_node: int
    usage: Mapping[str, float]
    jobs: Mapping[str, JobReading]
    named: Set[str]
    waiting: frozenset[str]
    holding: tuple[JobReading, ...]
    holds: frozenset[str]
    members: Mapping[str, tuple[JobReading, ...]]
    kinds: Mapping[str, Mapping[Kind, int]]
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
    jobs = reader.read(sorted(state.jobs, key=attrgetter("id")))
    waiting, holding, members, others = _sorted_out(jobs)
    levels = _set_levels(members)
    _set_levels(others)
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
        type_of={name: node.gpu_type for name, node in nodes.items()},
        capacity=capacity,
        charge=charge,
        gpus=sum([node.gpus for node in nodes.values()]),
        largest_node=max([node.gpus for node in nodes.values()], default=0),
        usage=_usage(state, tree),
        jobs=jobs,
        named=reader.names,
        waiting=frozenset(waiting),
        holding=tuple(holding),
        holds=frozenset([job.job.id for job in holding]),
        members={group: tuple(listed) for group, listed in members.items()},
        kinds={group: Counter([job.kind for job in listed]) for group, listed in members.items()},
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
    for part in chain.from_iterable([job.placement for job in state.jobs]):
        placed[part.node] = placed.get(part.node, 0) + part.gpus
    return {name for name, gpus in placed.items() if name in nodes and gpus > max(0, nodes[name].usable_gpus)}


def _usage(state: ClusterState, tree: Tree) -> dict[str, float]:
    """Add up each group's own usage; that of unknown groups goes to the nearest one named (S4)."""
    usage = dict.fromkeys(tree.order, 0.0)
    for entry in sorted(state.usage or (), key=lambda entry: entry.group):
        if (group := nearest(entry.group, tree)) is not None:
            usage[group] += max(0.0, entry.charged_gpu_hours)
    return usage


def _sorted_out(
    jobs: Mapping[str, JobReading],
) -> tuple[list[str], list[JobReading], dict[str, list[JobReading]], dict[str, list[JobReading]]]:
    """Return the ids that may wait, the jobs that hold GPUs, and the live jobs by group: the budgeted ones, and the others."""
    waiting, holding = [], []
    members: defaultdict[str, list[JobReading]] = defaultdict(list)
    others: defaultdict[str, list[JobReading]] = defaultdict(list)
    for name, reading in jobs.items():
        if not reading.pending:
            holding.append(reading)
        elif not reading.infeasible:
            waiting.append(name)
        if reading.live and (group := reading.group) is not None:
            (members if reading.budgeted else others)[group].append(reading)
    return waiting, holding, members, others


def _set_levels(jobs: Mapping[str, list[JobReading]]) -> dict[str, tuple[int, ...]]:
    """Give jobs of one kind, by group, their levels, and return the priorities of each group (O4, O7)."""
    found = {}
    for group, listed in jobs.items():
        values = found[group] = tuple(sorted({reading.priority for reading in listed}))
        if len(values) > 1:  # else the level is 1, as it was made
            ranks = {priority: place / (len(values) - 1) for place, priority in enumerate(values)}
            for reading in listed:
                reading.level = ranks[reading.priority]
    return found
