"""What can happen to whom: units of like jobs, and the places each could start on (rules G1 to G3, R2)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from evenhand.outcome import Move
from evenhand.program.pools import Ask, Pools, ask_of
from evenhand.shapes import IntArray, strides, worker_size
from evenhand.snapshot import Snapshot


@dataclass(frozen=True)
class Unit:
    """Jobs the program cannot tell apart, in seniority order; a running job is a unit of its own."""

    jobs: tuple[int, ...]
    ask: Ask

    @property
    def job(self) -> int:
        """The eldest, which speaks for all."""
        return self.jobs[0]


@dataclass(frozen=True)
class Site:
    """Where a unit may arrive: one type, one value of its shared label, equal workers anywhere in some pools.

    `workers` workers of `worker` GPUs each; None where the gang may be split freely or must use distinct nodes, so that
    every node has to be looked at (`sizes` then lists the sizes allowed and the nodes each needs, 0: not prescribed).
    """

    gpu_type: int
    nodes: IntArray
    pools: tuple[int, ...]
    size: int
    worker: int
    workers: int
    reach: int = 0
    """Most gangs of this kind that could stand there at once."""
    sizes: tuple[tuple[int, int], ...] = ()

    @property
    def regular(self) -> bool:
        """Whether counting workers by pool is enough."""
        return not self.sizes


@dataclass(frozen=True)
class Index:
    """Pending units, running units, pools and the sites of each unit."""

    pools: Pools
    pending: tuple[Unit, ...]
    running: tuple[Unit, ...]
    sites: dict[int, tuple[Site, ...]]
    """Sites by the unit's first job; also of pinned elastic jobs, which may grow."""


def build_index(snapshot: Snapshot, owed: tuple[int, ...]) -> Index:
    """Group the live jobs into units and list where they could go."""
    live = [int(j) for j in np.flatnonzero(snapshot.live)]
    asks = {j: ask_of(snapshot, j) for j in live}
    if all(node.available_until_at is None for node in snapshot.nodes):  # how long a job stays tells nothing apart
        asks = {j: Ask(ask.where, 0) for j, ask in asks.items()}
    pools = Pools(snapshot, list(asks.values()))
    pending = _pending_units(snapshot, [j for j in live if snapshot.pending[j]], asks, frozenset(owed))
    running = tuple(Unit((j,), asks[j]) for j in live if snapshot.running[j])
    sites: dict[int, tuple[Site, ...]] = {}
    alike: dict[object, tuple[Site, ...]] = {}
    for unit in (*pending, *running):
        j = unit.job
        if snapshot.pending[j] or may_move(snapshot, j):
            job = snapshot.jobs[j]
            key = (unit.ask, job.gpus, job.min_gpus, job.worker_gpus, job.gpus_per_node, snapshot.fits[j].tobytes())
            if key not in alike:
                alike[key] = tuple(_sites(snapshot, pools, unit))
            sites[j] = alike[key]
    return Index(pools, pending, running, sites)


def may_move(snapshot: Snapshot, job: int) -> bool:
    """Rule R2: migration."""
    if snapshot.hit[job]:
        return True
    movable = snapshot.jobs[job].contract.resumable and snapshot.policy.allow_migration
    return bool(movable and not snapshot.pinned[job])


def elastic(snapshot: Snapshot, job: int) -> bool:
    """Whether the job has more than one size."""
    return bool(snapshot.least[job] < snapshot.size[job])


def sizes_of(snapshot: Snapshot, job: int) -> list[int]:
    """Sizes a job is offered, smallest first (rule G1)."""
    return list(accumulate(parts_of(snapshot, job)))


def parts_of(snapshot: Snapshot, job: int) -> list[int]:
    """The parts of a job's gang: one for a rigid job (rule G1)."""
    return strides(int(snapshot.least[job]), int(snapshot.size[job]), worker_size(snapshot.jobs[job]))


def _pending_units(snapshot: Snapshot, jobs: list[int], asks: dict[int, Ask], owed: frozenset[int]) -> tuple[Unit, ...]:
    lines: dict[object, list[int]] = defaultdict(list)
    spread: dict[object, bool] = {}
    for j in jobs:
        job = snapshot.jobs[j]
        kind = (asks[j].where, job.gpus, job.worker_gpus, job.gpus_per_node, snapshot.fits[j].tobytes())
        if kind not in spread:
            spread[kind] = _spread(snapshot, j)
        alone = j if j in owed or elastic(snapshot, j) or spread[kind] else None
        key = (
            int(snapshot.group[j]), bool(snapshot.budgeted[j]), asks[j], job.gpus, job.worker_gpus,
            job.gpus_per_node, snapshot.speed_milli[j].tobytes(), int(snapshot.level_rank[j]),
            int(snapshot.age_step[j]), float(snapshot.left_s[j]), alone,
        )  # fmt: skip
        lines[key].append(j)
    units = [Unit(tuple(sorted(line, key=snapshot.seniority)), asks[line[0]]) for line in lines.values()]
    return tuple(sorted(units, key=lambda u: (snapshot.submitted_s[u.job], u.job)))


def _spread(snapshot: Snapshot, job: int) -> bool:
    """Whether a rigid job's gang can share no node with itself and might, or may be split freely."""
    asked = snapshot.jobs[job]
    if asked.gpus_per_node is not None:
        return asked.gpus > asked.gpus_per_node and 2 * asked.gpus_per_node <= int(snapshot.room.max(initial=0))
    if asked.worker_gpus is not None:
        return False
    where = ask_of(snapshot, job).where
    types = np.flatnonzero(snapshot.fits[job])
    return any(snapshot.sites.uniform(where, int(t), asked.gpus) is None for t in types)


def _sites(snapshot: Snapshot, pools: Pools, unit: Unit) -> list[Site]:
    j = unit.job
    job = snapshot.jobs[j]
    irregular = elastic(snapshot, j) or _spread(snapshot, j)
    found = []
    for t in np.flatnonzero(snapshot.fits[j]):
        gpu_type = int(t)
        for _, nodes in pools.eligible(unit.ask, gpu_type):
            site = (
                _irregular_site(snapshot, pools, unit, gpu_type, nodes)
                if irregular
                else _regular_site(snapshot, pools, unit, gpu_type, nodes)
            )
            if site is not None:
                found.append(site)
    if not irregular and job.gpus:
        found = [piece for site in found for piece in _one_pool_each(site)]
    return found


def _regular_site(snapshot: Snapshot, pools: Pools, unit: Unit, gpu_type: int, nodes: IntArray) -> Site | None:
    job = snapshot.jobs[unit.job]
    worker = job.worker_gpus or job.gpus_per_node
    if worker is None:
        need = snapshot.sites.nodes_needed(unit.ask.where, gpu_type, job.gpus)
        if need is None:
            return None
        worker = job.gpus // need
    roomy = nodes[snapshot.room[nodes] >= worker]
    workers = job.gpus // worker
    reach = int((snapshot.room[roomy] // worker).sum()) // workers
    if not reach:
        return None
    return Site(gpu_type, roomy, _pools_of(pools, roomy), job.gpus, worker, workers, reach)


def _irregular_site(snapshot: Snapshot, pools: Pools, unit: Unit, gpu_type: int, nodes: IntArray) -> Site | None:
    job = snapshot.jobs[unit.job]
    room = snapshot.room[nodes]
    worker = worker_size(job)
    sizes = []
    for size in sizes_of(snapshot, unit.job):
        if not snapshot.sites.fits(job, gpu_type, size):
            continue
        need = 0
        if job.worker_gpus is not None:
            enough = int((room // worker).sum()) * worker >= size
        elif job.gpus_per_node is not None:
            need = size // worker
            enough = int((room >= worker).sum()) >= need
        else:
            need = snapshot.sites.nodes_needed(unit.ask.where, gpu_type, size) or 0
            enough = int(np.sort(room)[::-1][:need].sum()) >= size
        if enough:
            sizes.append((size, need))
    if not sizes:
        return None
    return Site(gpu_type, nodes, _pools_of(pools, nodes), job.gpus, worker, 0, sizes=tuple(sizes))


def _pools_of(pools: Pools, nodes: IntArray) -> tuple[int, ...]:
    return tuple(int(p) for p in np.unique(pools.of_node[nodes]))


def _one_pool_each(site: Site) -> list[Site]:
    """A gang of one worker stands in one pool: a site for each pool."""
    if site.workers != 1 or len(site.pools) == 1:
        return [site]
    return [Site(site.gpu_type, site.nodes, (p,), site.size, site.worker, 1, site.reach) for p in site.pools]


def move_of(snapshot: Snapshot, job: int) -> Move:
    """What an arrival of this job is called."""
    return Move.START if snapshot.pending[job] else Move.MIGRATE
