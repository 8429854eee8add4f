"""The places a unit could start on: equal workers in pools, or nodes that have to be looked at one by one (G1 to G3)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from evenhand.program.pools import Ask, Pools
from evenhand.shapes import BoolArray, IntArray, strides, worker_size
from evenhand.snapshot import Snapshot


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

    @property
    def divided(self) -> bool:
        """Whether how many workers go to which pool is to be decided."""
        return self.regular and self.workers > 1 and len(self.pools) > 1


class SiteTable:
    """All sites of a round side by side.

    Attributes
    ----------
    listed : the sites.
    gpu_type, size, worker, workers, reach, regular, divided : as in `Site`, int or bool [S].
    first : where the pools of each site begin in `pools`, int [S + 1].
    """

    def __init__(self, listed: list[Site]) -> None:
        self.listed = listed
        fields = [
            (s.gpu_type, s.size, s.worker, s.workers, s.reach, s.regular, s.divided, len(s.pools)) for s in listed
        ]
        table = np.array(fields, dtype=np.int64).reshape(len(listed), 8).T
        self.gpu_type, self.size, self.worker, self.workers, self.reach = table[:5]
        self.regular, self.divided = table[5:7].astype(bool)
        self.first: IntArray = np.concatenate(([0], np.cumsum(table[7])))
        self.pools = np.array([p for s in listed for p in s.pools], dtype=np.int64)

    def pool_counts(self, sites: IntArray) -> IntArray:
        """Pools of each site."""
        return self.first[sites + 1] - self.first[sites]


def elastic(snapshot: Snapshot, job: int) -> bool:
    """Whether the job has more than one size."""
    return bool(snapshot.least[job] < snapshot.size[job])


def sizes_of(snapshot: Snapshot, job: int) -> list[int]:
    """Sizes a job is offered, smallest first (rule G1)."""
    return list(accumulate(parts_of(snapshot, job)))


def parts_of(snapshot: Snapshot, job: int) -> list[int]:
    """The parts of a job's gang: one for a rigid job (rule G1)."""
    return strides(int(snapshot.least[job]), int(snapshot.size[job]), worker_size(snapshot.jobs[job]))


def spreads(snapshot: Snapshot, job: int) -> bool:
    """Whether a rigid job's gang can share no node with itself and might, or may be split freely."""
    asked = snapshot.jobs[job]
    if asked.gpus_per_node is not None:
        return asked.gpus > asked.gpus_per_node and 2 * asked.gpus_per_node <= int(snapshot.room.max(initial=0))
    if asked.worker_gpus is not None:
        return False
    where = snapshot.shapes[int(snapshot.shape[job])][0]
    types = np.flatnonzero(snapshot.fits[job])
    return any(snapshot.sites.uniform(where, int(t), asked.gpus) is None for t in types)


def sites_of(snapshot: Snapshot, pools: Pools, job: int, ask: Ask) -> list[Site]:
    """Find where a job could start, by type, then value of its shared label."""
    asked = snapshot.jobs[job]
    irregular = elastic(snapshot, job) or spreads(snapshot, job)
    found = []
    for gpu_type in np.flatnonzero(snapshot.fits[job]).tolist():
        for _, nodes in pools.eligible(ask, gpu_type):
            site = (
                _irregular_site(snapshot, pools, job, ask, gpu_type, nodes)
                if irregular
                else _regular_site(snapshot, pools, job, ask, gpu_type, nodes)
            )
            if site is not None:
                found.append(site)
    if not irregular and asked.gpus:
        found = [piece for site in found for piece in _one_pool_each(site)]
    return found


def _regular_site(
    snapshot: Snapshot, pools: Pools, unit_job: int, ask: Ask, gpu_type: int, nodes: IntArray
) -> Site | None:
    job = snapshot.jobs[unit_job]
    worker = job.worker_gpus or job.gpus_per_node
    if worker is None:
        need = snapshot.sites.nodes_needed(ask.where, gpu_type, job.gpus)
        if need is None:
            return None
        worker = job.gpus // need
    roomy = nodes[snapshot.room[nodes] >= worker]
    workers = job.gpus // worker
    reach = int((snapshot.room[roomy] // worker).sum()) // workers
    if not reach:
        return None
    return Site(gpu_type, roomy, pools.among(roomy), job.gpus, worker, workers, reach)


def _irregular_site(
    snapshot: Snapshot, pools: Pools, unit_job: int, ask: Ask, gpu_type: int, nodes: IntArray
) -> Site | None:
    job = snapshot.jobs[unit_job]
    room = snapshot.room[nodes]
    worker = worker_size(job)
    sizes = []
    for size in sizes_of(snapshot, unit_job):
        if not snapshot.sites.fits(job, gpu_type, size):
            continue
        need = 0
        if job.worker_gpus is not None:
            enough = int((room // worker).sum()) * worker >= size
        elif job.gpus_per_node is not None:
            need = size // worker
            enough = int((room >= worker).sum()) >= need
        else:
            need = snapshot.sites.nodes_needed(ask.where, gpu_type, size) or 0
            enough = int(np.sort(room)[::-1][:need].sum()) >= size
        if enough:
            sizes.append((size, need))
    if not sizes:
        return None
    return Site(gpu_type, nodes, pools.among(nodes), job.gpus, worker, 0, sizes=tuple(sizes))


def _one_pool_each(site: Site) -> list[Site]:
    """A gang of one worker stands in one pool: a site for each pool."""
    if site.workers != 1 or len(site.pools) == 1:
        return [site]
    return [Site(site.gpu_type, site.nodes, (p,), site.size, site.worker, 1, site.reach) for p in site.pools]


def movable(snapshot: Snapshot) -> BoolArray:
    """Rule R2: which jobs may migrate, bool [J]."""
    s = snapshot
    return s.hit | (s.resumable & ~s.pinned) if s.policy.allow_migration else s.hit


def may_move(snapshot: Snapshot, job: int) -> bool:
    """The same of one job."""
    s = snapshot
    return bool(s.hit[job] or (s.policy.allow_migration and s.resumable[job] and not s.pinned[job]))
