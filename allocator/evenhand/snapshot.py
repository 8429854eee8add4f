"""The validated state as arrays in one fixed order: what rules S1 to S11 make of it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt

from evenhand.shapes import BoolArray, IntArray, Sites, filter_of
from evenhand.tree import Tree, build_tree
from evenhand_models import ClusterState, Job, JobState, Node, NodeStatus, Policy, ThroughputUnit

AGE_STEPS_S = (300, 1_800, 7_200, 28_800, 86_400, 259_200, 604_800)
"""Seconds of waiting after which a job counts one step older (rule O4)."""
NO_GROUP = -1
MOST_SPEED_MILLI = 1_000_000
"""A GPU never counts for more than 1,000 of a job's slowest (rule S6)."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def seconds(at: datetime) -> float:
    """Seconds since 1970, exact to the microsecond."""
    return (at - _EPOCH).total_seconds()


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
    placement: tuple[tuple[tuple[int, int], ...], ...]
    speed_milli: IntArray
    fits: BoolArray
    full_fit: BoolArray
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

    @property
    def now_s(self) -> float:
        """The instant of the decision in seconds since 1970."""
        return seconds(self.now)

    def seniority(self, job: int) -> tuple[float, float, int]:
        """Sort key inside a group: priority, then age, then id."""
        return (-self.jobs[job].priority, float(self.submitted_s[job]), job)

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
    nodes = tuple(sorted(state.nodes, key=lambda n: n.name))
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
    jobs = tuple(sorted(state.jobs, key=lambda j: j.id))
    count = len(jobs)
    kinds = np.array([j.state for j in jobs], dtype=object)
    pending, running, terminating = (kinds == k for k in (JobState.PENDING, JobState.RUNNING, JobState.TERMINATING))
    placement = tuple(tuple(sorted((node_at.get(p.node, -1), p.gpus) for p in j.placement)) for j in jobs)
    placed = np.zeros(len(nodes), dtype=np.int64)
    for parts in placement:
        for n, gpus in parts:
            if n >= 0:
                placed[n] += gpus
    overfull = placed > usable
    fits, full_fit, speed = _fit_and_speed(jobs, types, sites, policy.throughput_unit)
    group = np.array([_group_of(j, tree) for j in jobs], dtype=np.int64).reshape(count)
    unknown = group == NO_GROUP
    infeasible = pending & (unknown | ~fits.any(axis=1))
    orphan = running & unknown
    # S8: what is live, and what of it is budgeted
    live = (pending & ~infeasible) | (running & ~orphan)
    claim = np.array([*tree.claim, False], dtype=bool)[group]
    minimum = np.array([j.contract.min_runtime_s for j in jobs], dtype=np.int64).reshape(count)
    contract = np.minimum(minimum, policy.max_protection_s)
    budgeted = live & (minimum > 0) & claim
    lost_ground = (~keeping) | overfull
    hit = np.array(
        [bool(running[j]) and any(n < 0 or bool(lost_ground[n]) for n, _ in placement[j]) for j in range(count)],
        dtype=bool,
    ).reshape(count)
    now_s = seconds(state.now)
    submitted = np.array([min(now_s, seconds(j.submitted_at)) for j in jobs]).reshape(count)
    started = np.array(
        [min(now_s, seconds(j.started_at)) if j.started_at is not None else np.nan for j in jobs]
    ).reshape(count)
    inside = running & ~hit & (now_s < np.nan_to_num(started) + contract)
    pinned = (budgeted & inside) | (orphan & ~hit)
    held = np.array([j.placed_gpus if j.state is JobState.RUNNING else 0 for j in jobs], dtype=np.int64).reshape(count)
    held_type = np.array(
        [next((int(node_type[n]) for n, _ in placement[j] if n >= 0), -1) if running[j] else -1 for j in range(count)],
        dtype=np.int64,
    ).reshape(count)
    size = np.array([j.gpus for j in jobs], dtype=np.int64).reshape(count)
    level, rank, levels = _levels(jobs, group, live, budgeted)
    return Snapshot(
        state=state, policy=policy, now=state.now, types=types, rate_milli=rates, nodes=nodes, node_index=node_at,
        node_type=node_type, room=room, opened=opened, capacity=capacity,
        total_gpus=int(sum(n.gpus for n in nodes)), sites=sites, tree=tree, jobs=jobs,
        job_index={j.id: i for i, j in enumerate(jobs)}, group=group, pending=pending, running=running,
        terminating=terminating, infeasible=infeasible, orphan=orphan, live=live, budgeted=budgeted, hit=hit,
        pinned=pinned, overfull=overfull, size=size,
        least=np.array([j.min_gpus or j.gpus for j in jobs], dtype=np.int64).reshape(count),
        held=held, held_type=held_type, placement=placement, speed_milli=speed, fits=fits, full_fit=full_fit,
        demand_milli=_demand(size, fits, held_type, rates), level=level, level_rank=rank, level_count=levels,
        age_step=np.searchsorted(np.array(AGE_STEPS_S), now_s - submitted, side="right").astype(np.int64),
        submitted_s=submitted, started_s=started, contract_s=contract,
        lost_s=_lost_seconds(jobs, started, contract, running & ~hit, now_s),
        left_s=np.array(
            [seconds(j.expected_end_at) - now_s if j.expected_end_at is not None else np.inf for j in jobs]
        ).reshape(count),
    )  # fmt: skip


def _group_of(job: Job, tree: Tree) -> int:
    """Index of the group a job is charged to (rule S4)."""
    at = tree.index(job.group)
    if at is None and job.state is not JobState.PENDING:
        at = tree.nearest_named(job.group)
    return NO_GROUP if at is None else at


def _fit_and_speed(
    jobs: tuple[Job, ...], types: tuple[str, ...], sites: Sites, unit: ThroughputUnit
) -> tuple[BoolArray, BoolArray, IntArray]:
    """Rules S5 and S6, once per distinct request: bool [J, T], bool [J, T], int [J, T]."""
    shape = (len(jobs), len(types))
    fits, full = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    speed = np.zeros(shape, dtype=np.int64)
    seen: dict[object, int] = {}
    for j, job in enumerate(jobs):
        key = (
            filter_of(job), job.gpus, job.min_gpus, job.worker_gpus, job.gpus_per_node,
            tuple(sorted(job.speedup.items())),
        )  # fmt: skip
        first = seen.setdefault(key, j)
        if first != j:
            fits[j], full[j], speed[j] = fits[first], full[first], speed[first]
            continue
        declared = np.array([float(job.speedup.get(name, 0.0)) for name in types])
        for t in np.flatnonzero(declared > 0):
            fits[j, t] = sites.fits(job, int(t), job.min_gpus or job.gpus)
            full[j, t] = fits[j, t] and sites.fits(job, int(t), job.gpus)
        if fits[j].any():
            usable = declared[fits[j]]
            base = float(usable.max() if unit is ThroughputUnit.BEST else usable.min())
            for t in np.flatnonzero(fits[j]):
                ratio = min(MOST_SPEED_MILLI, 1000 * float(declared[t]) / base)  # before rounding: it may be infinite
                speed[j, t] = max(1, round(ratio))
    return fits, full, speed


def _levels(
    jobs: tuple[Job, ...], group: IntArray, live: BoolArray, budgeted: BoolArray
) -> tuple[npt.NDArray[np.float64], IntArray, IntArray]:
    """Place of each job's priority among those of its group and kind (rules O4, O7)."""
    priorities: dict[tuple[int, bool], set[int]] = defaultdict(set)
    for j in np.flatnonzero(live):
        priorities[int(group[j]), bool(budgeted[j])].add(jobs[j].priority)
    ordered = {key: {p: i for i, p in enumerate(sorted(found))} for key, found in priorities.items()}
    level, rank = np.ones(len(jobs)), np.zeros(len(jobs), dtype=np.int64)
    count = np.ones(len(jobs), dtype=np.int64)
    for j in np.flatnonzero(live):
        places = ordered[int(group[j]), bool(budgeted[j])]
        rank[j], count[j] = places[jobs[j].priority], len(places)
        if len(places) > 1:
            level[j] = rank[j] / (len(places) - 1)
    return level, rank, count


def _lost_seconds(
    jobs: tuple[Job, ...], started: npt.NDArray[np.float64], contract: IntArray, stoppable: BoolArray, now_s: float
) -> npt.NDArray[np.float64]:
    """Seconds of work a stop loses: since the last checkpoint, else the start, at most a contract (rule O5)."""
    lost = np.zeros(len(jobs))
    for j in np.flatnonzero(stoppable):
        last, saved = float(started[j]), jobs[j].checkpointed_at
        if saved is not None and jobs[j].contract.resumable:
            last = max(last, min(now_s, seconds(saved)))
        lost[j] = min(now_s - last, float(contract[j]))
    return lost


def _demand(size: IntArray, fits: BoolArray, held_type: IntArray, rates: IntArray) -> IntArray:
    """Charged demand in thousandths at the highest rate a job can use (rule D)."""
    if not rates.size:
        return np.zeros(len(size), dtype=np.int64)
    best = np.where(fits, rates[None, :], 0).max(axis=1)
    own = np.where(held_type >= 0, rates[np.maximum(held_type, 0)], 0)
    return np.asarray(size * np.where(best > 0, best, own), dtype=np.int64)
