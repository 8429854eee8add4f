"""Where a gang can stand: eligible nodes, and how many nodes a size needs (rules S5, C1, G3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from evenhand_models import Job, Node

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Filter:
    """What a job asks of a node beyond its type: labels it must carry, a label key all must share."""

    requires: tuple[tuple[str, str], ...]
    same: str | None


def filter_of(job: Job) -> Filter:
    """The filter of a job, labels in order."""
    return Filter(tuple(sorted(job.requires.items())), job.same)


def worker_size(job: Job) -> int:
    """GPUs in one worker: what an elastic job grows and shrinks by (rule G1)."""
    return job.worker_gpus or job.gpus_per_node or 1


MOST_STRIDES = 64
"""An elastic job is offered at most so many sizes between its least and its full one (rule G1)."""


def strides(least: int, size: int, worker: int) -> list[int]:
    """The parts of a gang: its least size, then what each further offered size adds (rule G1); they sum to `size`."""
    further = (size - least) // worker
    if not further:
        return [size]
    stride = -(-further // MOST_STRIDES)
    whole, rest = divmod(further, stride)
    return [least, *[stride * worker] * whole, *([rest * worker] if rest else [])]


class Sites:
    """Nodes grouped by filter, type and shared label value; nominal sizes for what could ever fit.

    Parameters
    ----------
    nodes : nodes in canonical order.
    node_type : index of each node's type, shape [nodes].
    """

    def __init__(self, nodes: Sequence[Node], node_type: IntArray) -> None:
        self._nodes = nodes
        self._type = node_type
        self._gpus = np.array([n.gpus for n in nodes], dtype=np.int64)
        self._domains = lru_cache(maxsize=None)(self._compute_domains)
        self._sizes = lru_cache(maxsize=None)(self._compute_sizes)

    def domains(self, where: Filter, gpu_type: int) -> tuple[tuple[str | None, IntArray], ...]:
        """Nominal-eligible nodes by value of the shared label (one entry, None, without `same`).

        Returns pairs (value, node indices ascending); status and room are not looked at (rule S5).
        """
        return self._domains(where, gpu_type)

    def _compute_domains(self, where: Filter, gpu_type: int) -> tuple[tuple[str | None, IntArray], ...]:
        found: dict[str | None, list[int]] = {}
        for i in np.flatnonzero((self._type == gpu_type) & (self._gpus > 0)):
            labels = self._nodes[int(i)].labels
            if any(labels.get(key) != value for key, value in where.requires):
                continue
            if where.same is not None and where.same not in labels:
                continue
            found.setdefault(labels[where.same] if where.same is not None else None, []).append(int(i))
        return tuple((value, np.array(found[value], dtype=np.int64)) for value in sorted(found, key=lambda v: v or ""))

    def _compute_sizes(self, where: Filter, gpu_type: int) -> tuple[IntArray, ...]:
        return tuple(-np.sort(-self._gpus[nodes]) for _, nodes in self.domains(where, gpu_type))

    def nodes_needed(self, where: Filter, gpu_type: int, size: int) -> int | None:
        """Fewest empty nodes that hold `size` GPUs, None if no domain holds it (rule G3)."""
        best: int | None = None
        for sizes in self._sizes(where, gpu_type):
            reach = np.cumsum(sizes)
            if reach.size and reach[-1] >= size:
                need = int(np.searchsorted(reach, size)) + 1
                best = need if best is None else min(best, need)
        return best

    def fits(self, job: Job, gpu_type: int, size: int) -> bool:
        """Whether the job's shape at `size` can stand on the empty cluster, all nodes up (rule S5)."""
        where = filter_of(job)
        if job.worker_gpus is not None:
            need = size // job.worker_gpus
            return any(int((s // job.worker_gpus).sum()) >= need for s in self._sizes(where, gpu_type))
        if job.gpus_per_node is not None:
            need = size // job.gpus_per_node
            return any(int((s >= job.gpus_per_node).sum()) >= need for s in self._sizes(where, gpu_type))
        return self.nodes_needed(where, gpu_type, size) is not None

    def largest(self, job: Job, gpu_type: int) -> int:
        """Most GPUs of the type that a job of this shape could ever hold: for messages (GPUs)."""
        where = filter_of(job)
        sizes = self._sizes(where, gpu_type)
        if job.worker_gpus is not None:
            w = job.worker_gpus
            return max((int((s // w).sum()) * w for s in sizes), default=0)
        if job.gpus_per_node is not None:
            w = job.gpus_per_node
            return max((int((s >= w).sum()) * w for s in sizes), default=0)
        return max((int(s.sum()) for s in sizes), default=0)

    def uniform(self, where: Filter, gpu_type: int, size: int) -> int | None:
        """GPUs per node if a free-shaped gang must fill k nodes of one size whole, else None.

        True for one node (k = 1), and where the k nodes the size needs must all be of the largest size.
        """
        need = self.nodes_needed(where, gpu_type, size)
        if need is None:
            return None
        if need == 1:
            return size
        biggest = max(int(s[0]) for s in self._sizes(where, gpu_type) if s.size)
        return biggest if need * biggest == size else None
