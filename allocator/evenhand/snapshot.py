"""The validated state as arrays in one fixed order: what rules S1 to S11 make of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from evenhand.columns import columns, instants, whole
from evenhand.fitting import Shape, fit_and_speed
from evenhand.shapes import BoolArray, IntArray, Sites
from evenhand.tree import Tree, build_tree
from evenhand_models import ClusterState, Job, JobState, Node, NodeStatus, Policy
from evenhand_models import Placement as Part

AGE_STEPS_S = (300, 1_800, 7_200, 28_800, 86_400, 259_200, 604_800)
"""Seconds of waiting after which a job counts one step older (rule O4)."""
NO_GROUP = -1
FloatArray = npt.NDArray[np.float64]
Placement = tuple[tuple[int, int], ...]
"""Pairs (node index, -1 if it is not listed; GPUs), by node."""


def seconds(at: datetime) -> float:
    """Seconds since 1970, exact to the microsecond."""
    return at.timestamp()


@dataclass(frozen=True, eq=False)
class Stands:
    """What running and terminating jobs hold before the round: one row for each job and node, by job, then node.

    Attributes
    ----------
    job, node, gpus : int [P]; a node that is not listed is -1.
    """

    job: IntArray
    node: IntArray
    gpus: IntArray


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Everything a round looks at. J jobs by id, n nodes by name, T types by name.

    Attributes
    ----------
    rate_milli : charge of a GPU by type in thousandths, int [T].
    room : GPUs our jobs may hold on each node, int [n] (S3); opened : takes new work, bool [n].
    capacity : GPUs by type on open nodes, int [T].
    speed_milli : throughput of one GPU of job j on type t in thousandths of a GPU, int [J, T]; 0: does not fit (S6).
    fits, full_fit : whether j's least size, its full size, fits type t, bool [J, T] (S5).
    shape : number of what the job asks of nodes in `shapes`, int [J]; resumable : by its contract, bool [J].
    group : index of the group, `NO_GROUP` for orphans and jobs of unknown groups, int [J].
    size, least : `gpus` and `min_gpus` (else `gpus`), int [J].
    held : GPUs a running job holds, int [J]; held_type : their type, -1 if unknown or not running.
    level : place of its priority in its group, 0 to 1 (O4); level_rank, level_count : the same as integers.
    age_step : 0 to 7 (O4); lost_s : seconds of work a stop would lose, 0 if hit (O5).
    left_s : seconds to its expected end, infinity if unknown; contract_s : its contract (S2).
    demand_milli : charged demand in thousandths of a GPU, int [J] (D).
    """

    state: ClusterState
    policy: Policy
    now: datetime
    types: tuple[str, ...]
    rate_milli: IntArray
    nodes: tuple[Node, ...]
    node_index: dict[str, int]
    node_type: IntArray
    room: IntArray
    opened: BoolArray
    capacity: IntArray
    total_gpus: int
    sites: Sites
    tree: Tree
    jobs: tuple[Job, ...]
    job_index: dict[str, int]
    group: IntArray
    pending: BoolArray
    running: BoolArray
    terminating: BoolArray
    infeasible: BoolArray
    orphan: BoolArray
    live: BoolArray
    budgeted: BoolArray
    hit: BoolArray
    pinned: BoolArray
    overfull: BoolArray
    size: IntArray
    least: IntArray
    held: IntArray
    held_type: IntArray
    placement: tuple[Placement, ...]
    stands: Stands
    speed_milli: IntArray
    fits: BoolArray
    full_fit: BoolArray
    shape: IntArray
    shapes: tuple[Shape, ...]
    resumable: BoolArray
    demand_milli: IntArray
    level: npt.NDArray[np.float64]
    level_rank: IntArray
    level_count: IntArray
    age_step: IntArray
    submitted_s: npt.NDArray[np.float64]
    started_s: npt.NDArray[np.float64]
    contract_s: IntArray
    lost_s: npt.NDArray[np.float64]
    left_s: npt.NDArray[np.float64]
    priority: IntArray

    @cached_property
    def now_s(self) -> float:
        """The instant of the decision in seconds since 1970."""
        return seconds(self.now)

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """Ids of all jobs: to ask each job for its own takes longer."""
        return tuple(self.job_index)

    @cached_property
    def _seniority(self) -> list[tuple[float, float, int]]:
        ranks = (-self.priority).tolist()
        return list(zip(ranks, self.submitted_s.tolist(), range(len(ranks)), strict=True))

    def seniority(self, job: int) -> tuple[float, float, int]:
        """Sort key inside a group: priority, then age, then id."""
        return self._seniority[job]

    def held_speed_milli(self, job: int) -> int:
        """Throughput of one GPU of a running job where it runs now, in thousandths."""
        t = int(self.held_type[job])
        return int(self.speed_milli[job, t]) if t >= 0 else 0


def take_snapshot(state: ClusterState, policy: Policy) -> Snapshot:
    """Read a validated state under a policy."""
    types = tuple(sorted(t.name for t in state.gpu_types))
    type_at = {name: i for i, name in enumerate(types)}
    rate_of = {t.name: t.charge_rate for t in state.gpu_types}
    rates = np.array([max(1, round(1000 * rate_of[name])) for name in types], dtype=np.int64)
    nodes = tuple(sorted(state.nodes, key=attrgetter("name")))
    node_at = {n.name: i for i, n in enumerate(nodes)}
    node_type = np.array([type_at[n.gpu_type] for n in nodes], dtype=np.int64)
    usable = np.array([max(0, n.usable_gpus) for n in nodes], dtype=np.int64)
    served = np.array([n.available_until_at is None or n.available_until_at > state.now for n in nodes], dtype=bool)
    opened = served & np.array([n.status is NodeStatus.UP for n in nodes], dtype=bool)
    keeping = served & np.array([n.status is not NodeStatus.DOWN for n in nodes], dtype=bool)
    room = np.where(keeping, usable, 0)
    capacity = np.bincount(node_type[opened], weights=room[opened], minlength=len(types)).astype(np.int64)
    sites = Sites(nodes, node_type)
    tree = build_tree(state.groups)
    jobs = tuple(sorted(state.jobs, key=attrgetter("id")))
    count = len(jobs)
    said = columns(jobs)
    kinds = list(JobState)
    kind = whole(map({k: i for i, k in enumerate(kinds)}.__getitem__, said["state"]), count)
    pending, running, terminating = (
        kind == kinds.index(k) for k in (JobState.PENDING, JobState.RUNNING, JobState.TERMINATING)
    )
    placement = tuple([_placed(parts, node_at) if parts else () for parts in said["placement"]])
    stands = _stands(placement)
    placed = np.bincount(stands.node[stands.node >= 0], stands.gpus[stands.node >= 0], len(nodes))
    overfull = placed > usable
    fits, full_fit, speed, shape, shapes = fit_and_speed(jobs, types, sites, policy.throughput_unit)
    group = _groups(said["group"], tree, pending)
    unknown = group == NO_GROUP
    infeasible = pending & (unknown | ~fits.any(axis=1))
    orphan = running & unknown
    # S8: what is live, and what of it is budgeted
    live = (pending & ~infeasible) | (running & ~orphan)
    claim = np.array([*tree.claim, False], dtype=bool)[group]
    minimum = whole(map(attrgetter("min_runtime_s"), said["contract"]), count)
    contract = np.minimum(minimum, policy.max_protection_s)
    budgeted = live & (minimum > 0) & claim
    hit = running & _any_lost(stands, np.append((~keeping) | overfull, True), count)
    now_s = seconds(state.now)
    submitted = np.minimum(now_s, instants(said["submitted_at"], np.nan))
    started = np.minimum(now_s, instants(said["started_at"], np.nan))
    inside = running & ~hit & (now_s < np.nan_to_num(started) + contract)
    size = whole(said["gpus"], count)
    held = np.bincount(stands.job, stands.gpus, count).astype(np.int64)
    held[~running] = 0
    held_type = _held_types(stands, node_type, running)
    priority = whole(said["priority"], count)
    level, rank, levels = _levels(priority, group, live, budgeted)
    resumable = np.fromiter(map(attrgetter("resumable"), said["contract"]), dtype=bool, count=count)
    saved = np.where(resumable, instants(said["checkpointed_at"], -np.inf), -np.inf)
    return Snapshot(
        state=state, policy=policy, now=state.now, types=types, rate_milli=rates, nodes=nodes, node_index=node_at,
        node_type=node_type, room=room, opened=opened, capacity=capacity,
        total_gpus=int(sum(n.gpus for n in nodes)), sites=sites, tree=tree, jobs=jobs,
        job_index=dict(zip(said["id"], range(count), strict=True)), group=group, pending=pending, running=running,
        terminating=terminating, infeasible=infeasible, orphan=orphan, live=live, budgeted=budgeted, hit=hit,
        pinned=(budgeted & inside) | (orphan & ~hit), overfull=overfull, size=size,
        least=whole([least or most for least, most in zip(said["min_gpus"], said["gpus"], strict=True)], count),
        held=held, held_type=held_type, placement=placement, stands=stands,
        speed_milli=speed, fits=fits, full_fit=full_fit, shape=shape, shapes=shapes, resumable=resumable,
        demand_milli=_demand(size, fits, held_type, rates), level=level, level_rank=rank, level_count=levels,
        age_step=np.searchsorted(np.array(AGE_STEPS_S), now_s - submitted, side="right").astype(np.int64),
        submitted_s=submitted, started_s=started, contract_s=contract,
        lost_s=_lost_seconds(saved, started, np.where(resumable, contract, policy.max_protection_s), running & ~hit, now_s),
        left_s=instants(said["expected_end_at"], np.inf) - now_s, priority=priority,
    )  # fmt: skip


def _placed(parts: Sequence[Part], node_at: dict[str, int]) -> Placement:
    """A job's placement by node index."""
    if len(parts) == 1:
        return ((node_at.get(parts[0].node, -1), parts[0].gpus),)
    return tuple(sorted((node_at.get(p.node, -1), p.gpus) for p in parts))


def _stands(placement: tuple[Placement, ...]) -> Stands:
    """Lay placements out as rows."""
    rows = [(j, n, gpus) for j, parts in enumerate(placement) for n, gpus in parts]
    table = np.array(rows, dtype=np.int64).reshape(len(rows), 3)
    return Stands(*(np.ascontiguousarray(column) for column in table.T))


def _any_lost(stands: Stands, lost: BoolArray, count: int) -> BoolArray:
    """Jobs with a part on a node that is lost (the last entry stands for nodes that are not listed), bool [J]."""
    return np.bincount(stands.job, lost[stands.node], count) > 0


def _held_types(stands: Stands, node_type: IntArray, running: BoolArray) -> IntArray:
    """Type of the first listed node of each running job, -1 if there is none, int [J]."""
    found = np.full(len(running), -1, dtype=np.int64)
    listed = (stands.node >= 0) & running[stands.job]
    jobs, first = np.unique(stands.job[listed], return_index=True)
    found[jobs] = node_type[stands.node[listed][first]]
    return found


def _groups(names: Sequence[str], tree: Tree, pending: BoolArray) -> IntArray:
    """Index of the group each job is charged to (rule S4), int [J]."""
    known = {name: i for i, name in enumerate(tree.ids)}
    found = whole([known.get(name, NO_GROUP) for name in names], len(names))
    for j in np.flatnonzero((found == NO_GROUP) & ~pending).tolist():
        above = tree.nearest_named(names[j])
        found[j] = NO_GROUP if above is None else above
    return found


def _levels(
    priority: IntArray, group: IntArray, live: BoolArray, budgeted: BoolArray
) -> tuple[FloatArray, IntArray, IntArray]:
    """Place of each job's priority among those of its group and kind (rules O4, O7)."""
    level, rank = np.ones(len(priority)), np.zeros(len(priority), dtype=np.int64)
    count = np.ones(len(priority), dtype=np.int64)
    jobs = np.flatnonzero(live)
    if jobs.size:
        known, place = np.unique(priority[jobs], return_inverse=True)
        line = 2 * group[jobs] + budgeted[jobs]
        pairs, which = np.unique(line * len(known) + place.reshape(-1), return_inverse=True)
        lines, first, levels = np.unique(pairs // len(known), return_index=True, return_counts=True)
        at = np.searchsorted(lines, line)
        rank[jobs], count[jobs] = which.reshape(-1) - first[at], levels[at]
        level[jobs] = np.where(count[jobs] > 1, rank[jobs] / np.maximum(1, count[jobs] - 1), 1.0)
    return level, rank, count


def _lost_seconds(
    saved: FloatArray, started: FloatArray, most: IntArray, stoppable: BoolArray, now_s: float
) -> FloatArray:
    """Seconds of work a stop loses (rule O5): since the last checkpoint, else the start, at most so many.

    Parameters
    ----------
    saved : when work was last saved, -infinity if it was not or cannot be gone on from, float [J].
    most : a contract; of who cannot resume, and has lost everything, the longest that there may be, int [J].
    """
    last = np.maximum(started, np.minimum(now_s, saved))
    return np.where(stoppable, np.minimum(now_s - last, most), 0.0)


def _demand(size: IntArray, fits: BoolArray, held_type: IntArray, rates: IntArray) -> IntArray:
    """Charged demand in thousandths at the highest rate a job can use (rule D)."""
    if not rates.size:
        return np.zeros(len(size), dtype=np.int64)
    best = np.where(fits, rates[None, :], 0).max(axis=1)
    own = np.where(held_type >= 0, rates[np.maximum(held_type, 0)], 0)
    return np.asarray(size * np.where(best > 0, best, own), dtype=np.int64)
