"""What shapes a gang may take on nodes (S5, G1, G3), counted on the nodes as installed, up or not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from evenhand_models import Job, Node


def worker(job: Job) -> int:
    """Return the GPUs of one worker: what an elastic gang grows and shrinks by (G1)."""
    return job.worker_gpus or job.gpus_per_node or 1


def least(job: Job) -> int:
    """Return the smallest size a job may run at."""
    return job.min_gpus or job.gpus


def parts(job: Job) -> tuple[int, ...]:
    """Return the parts a gang is counted in: least size, then stride by stride (G1)."""
    if job.min_gpus is None:
        return (job.gpus,)
    step, low = worker(job), least(job)
    count = (job.gpus - low) // step
    if count == 0:
        return (job.gpus,)
    stride = (count + 63) // 64
    return (low, *(min(stride, count - done) * step for done in range(0, count, stride)))


def legal_size(job: Job, gpus: int) -> bool:
    """Say whether a job may hold so many GPUs (G1)."""
    return least(job) <= gpus <= job.gpus and gpus % worker(job) == 0


def stands(job: Job, gpus: int, pool: Iterable[int]) -> bool:
    """Say whether a gang of this size can stand on empty nodes with these many GPUs each (S5)."""
    if job.gpus_per_node is not None:
        return sum(job.gpus_per_node for node in pool if node >= job.gpus_per_node) >= gpus
    step = job.worker_gpus or 1
    return sum(node // step * step for node in pool) >= gpus


def fewest(gpus: int, pool: Iterable[int]) -> int | None:
    """Return the least number of nodes whose GPUs reach a size, None if all together do not."""
    reached = 0
    for count, node in enumerate(sorted(pool, reverse=True), start=1):
        reached += node
        if reached >= gpus:
            return count
    return None


@dataclass(slots=True)
class Shapes:
    """The nominal-eligible nodes of jobs by type (S5), with what was found on them before.

    Attributes
    ----------
    nodes : mapping of str to Node
        All nodes by name.
    """

    nodes: Mapping[str, Node]
    _pools: dict[tuple[object, ...], dict[str, list[list[int]]]] = field(default_factory=dict)
    _fits: dict[tuple[object, ...], frozenset[str]] = field(default_factory=dict)
    _counts: dict[tuple[object, ...], int | None] = field(default_factory=dict)

    def pools(self, job: Job) -> dict[str, list[list[int]]]:
        """Return, by type, the sizes of the nominal-eligible nodes; with `same`, one list a value."""
        key = (tuple(job.requires.items()), job.same)
        if key not in self._pools:
            found: dict[str, dict[str, list[int]]] = {}
            for node in self.nodes.values():
                if not carries(node, job):
                    continue
                value = "" if job.same is None else node.labels[job.same]
                found.setdefault(node.gpu_type, {}).setdefault(value, []).append(node.gpus)
            self._pools[key] = {kind: list(values.values()) for kind, values in found.items()}
        return self._pools[key]

    def fits(self, job: Job, gpus: int) -> frozenset[str]:
        """Return the types on whose nodes, empty, the job could stand at this size, speedups aside (S5)."""
        key = (tuple(job.requires.items()), job.same, job.worker_gpus, job.gpus_per_node, gpus)
        found = self._fits.get(key)
        if found is None:
            found = self._fits[key] = frozenset(
                kind for kind, pools in self.pools(job).items() if any(stands(job, gpus, pool) for pool in pools)
            )
        return found

    def nominal_count(self, job: Job, kind: str, gpus: int) -> int | None:
        """Return "as few nodes as the size needs" (G3), None if no nodes of the type reach the size."""
        key = (tuple(job.requires.items()), job.same, kind, gpus)
        if key not in self._counts:
            counts = [fewest(gpus, pool) for pool in self.pools(job).get(kind, [])]
            self._counts[key] = min((count for count in counts if count is not None), default=None)
        return self._counts[key]

    def has_shape(self, job: Job, kind: str, held: Mapping[str, int]) -> bool:
        """Say whether GPUs by node have the shape the job asks for (G3)."""
        if not self.shares_value(job, held):
            return False
        if job.worker_gpus is not None:
            return all(gpus % job.worker_gpus == 0 for gpus in held.values())
        if job.gpus_per_node is not None:
            return all(gpus == job.gpus_per_node for gpus in held.values())
        count = self.nominal_count(job, kind, sum(held.values()))
        return count is not None and len(held) <= count

    def shares_value(self, job: Job, held: Iterable[str]) -> bool:
        """Say whether all nodes share the value of the job's `same` key."""
        if job.same is None:
            return True
        values = {self.nodes[name].labels.get(job.same) if name in self.nodes else None for name in held}
        return len(values) == 1 and None not in values


def carries(node: Node, job: Job) -> bool:
    """Say whether a node has every label a job requires and its `same` key."""
    if job.same is not None and job.same not in node.labels:
        return False
    return not job.requires or all(node.labels.get(key) == value for key, value in job.requires.items())
