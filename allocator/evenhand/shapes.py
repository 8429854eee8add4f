"""Where a gang can stand: eligible nodes, and how many nodes a size needs (rules S5, C1, G3)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from evenhand_models import Job, Node

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Domains = tuple[tuple[str | None, IntArray], ...]
"""Nodes by value of a shared label."""


@dataclass(frozen=True)
class Filter:
    """What a job asks of a node beyond its type: labels it must carry, a label key all must share."""

    requires: tuple[tuple[str, str], ...]
    same: str | None


_ANYWHERE = Filter((), None)


def filter_of(job: Job) -> Filter:
    """The filter of a job, labels in order."""
    if not job.requires and job.same is None:
        return _ANYWHERE
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

    A filter is looked up by the rarest label it requires, so that thousands of filters cost no more than the nodes
    they match; everything found is kept.

    Parameters
    ----------
    nodes : nodes in canonical order.
    node_type : index of each node's type, shape [nodes].

    Attributes
    ----------
    largest_node : its GPUs.
    """

    def __init__(self, nodes: Sequence[Node], node_type: IntArray) -> None:
        self._nodes = nodes
        self._type = node_type
        self._gpus = np.array([n.gpus for n in nodes], dtype=np.int64)
        self.largest_node = max((n.gpus for n in nodes), default=0)
        self._domains: dict[Filter, dict[int, Domains]] = {}
        self._reach: dict[tuple[Filter, int], tuple[tuple[IntArray, list[int]], ...]] = {}
        self._needed: dict[tuple[Filter, int, int], int | None] = {}
        self._stands: dict[tuple[Filter, int, int | None, int | None, int], bool] = {}

    @cached_property
    def _labelled(self) -> dict[tuple[str, str], list[int]]:
        """Nodes with GPUs that carry a label, ascending, by key and value."""
        found: dict[tuple[str, str], list[int]] = {}
        for i, node in enumerate(self._nodes):
            if node.gpus > 0:
                for label in node.labels.items():
                    found.setdefault(label, []).append(i)
        return found

    def domains(self, where: Filter, gpu_type: int) -> Domains:
        """Nominal-eligible nodes by value of the shared label (one entry, None, without `same`).

        Returns pairs (value, node indices ascending); status and room are not looked at (rule S5).
        """
        return self._of(where).get(gpu_type, ())

    def types(self, where: Filter) -> Iterable[int]:
        """Types with nominal-eligible nodes."""
        return self._of(where).keys()

    def _of(self, where: Filter) -> dict[int, Domains]:
        known = self._domains.get(where)
        if known is None:
            known = self._domains[where] = self._compute_domains(where)
        return known

    def _matching(self, where: Filter) -> IntArray:
        """Nodes with GPUs that carry all labels of a filter, ascending."""
        if not where.requires:
            return np.flatnonzero(self._gpus > 0)
        rarest = min((self._labelled.get(label, []) for label in where.requires), key=len)
        if len(where.requires) > 1:
            wanted = where.requires
            rarest = [i for i in rarest if all(self._nodes[i].labels.get(key) == value for key, value in wanted)]
        return np.array(rarest, dtype=np.int64)

    def _compute_domains(self, where: Filter) -> dict[int, Domains]:
        nodes = self._matching(where)
        if where.same is None:
            kinds = self._type[nodes]
            nodes = nodes[np.argsort(kinds, kind="stable")]
            present, first = np.unique(self._type[nodes], return_index=True)
            parts = np.split(nodes, first[1:])
            return {t: ((None, part),) for t, part in zip(present.tolist(), parts, strict=True)} if nodes.size else {}
        found: dict[int, dict[str, list[int]]] = {}
        for i, t in zip(nodes.tolist(), self._type[nodes].tolist(), strict=True):
            value = self._nodes[i].labels.get(where.same)
            if value is not None:
                found.setdefault(t, {}).setdefault(value, []).append(i)
        return {
            t: tuple((value, np.array(values[value], dtype=np.int64)) for value in sorted(values))
            for t, values in found.items()
        }

    def _sizes(self, where: Filter, gpu_type: int) -> tuple[tuple[IntArray, list[int]], ...]:
        """By domain: GPUs of its nodes, the largest first, and what the first k hold together."""
        key = (where, gpu_type)
        found = self._reach.get(key)
        if found is None:
            sizes = (-np.sort(-self._gpus[nodes]) for _, nodes in self.domains(where, gpu_type))
            found = self._reach[key] = tuple((s, np.cumsum(s).tolist()) for s in sizes)
        return found

    def nodes_needed(self, where: Filter, gpu_type: int, size: int) -> int | None:
        """Fewest empty nodes that hold `size` GPUs, None if no domain holds it (rule G3)."""
        key = (where, gpu_type, size)
        if key not in self._needed:
            reached = [reach for _, reach in self._sizes(where, gpu_type) if reach[-1] >= size]
            self._needed[key] = min((bisect_left(reach, size) + 1 for reach in reached), default=None)
        return self._needed[key]

    def fits(self, job: Job, gpu_type: int, size: int) -> bool:
        """Whether the job's shape at `size` can stand on the empty cluster, all nodes up (rule S5)."""
        return self.stands(filter_of(job), gpu_type, job.worker_gpus, job.gpus_per_node, size)

    def stands(self, where: Filter, gpu_type: int, worker: int | None, per_node: int | None, size: int) -> bool:
        """The same for a filter and a shape; `worker` and `per_node` as jobs say them."""
        key = (where, gpu_type, worker, per_node, size)
        found = self._stands.get(key)
        if found is None:
            if worker is not None:
                need = size // worker
                found = any(int((s // worker).sum()) >= need for s, _ in self._sizes(where, gpu_type))
            elif per_node is not None:
                need = size // per_node
                found = any(int((s >= per_node).sum()) >= need for s, _ in self._sizes(where, gpu_type))
            else:
                found = any(reach[-1] >= size for _, reach in self._sizes(where, gpu_type))
            self._stands[key] = found
        return found

    def largest(self, job: Job, gpu_type: int) -> int:
        """Most GPUs of the type that a job of this shape could ever hold: for messages (GPUs)."""
        sizes = [s for s, _ in self._sizes(filter_of(job), gpu_type)]
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
        biggest = max(int(s[0]) for s, _ in self._sizes(where, gpu_type))
        return biggest if need * biggest == size else None
