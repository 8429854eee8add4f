"""What may happen to one job, with every placement of it: rules C1 (per job), G1 to G4, P1, R2, O8."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product

from evenhand_models import Job, Node
from oracles.reading import Place, Reader


@dataclass(frozen=True)
class Move:
    """One thing that may happen to a job; all its `spots` are worth the same.

    `what` is wait, reserve, start, keep, resize, migrate, repair, preempt or orphan. `gpus` are held
    afterwards (of a reservation: some day), `changed` are grown, shrunk or replaced.
    """

    what: str
    kind: str | None = None
    gpus: int = 0
    changed: int = 0
    spots: tuple[Place, ...] = ((),)


class Moves:
    """Lists the moves of each job of a state."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader

    def of(self, job: Job) -> list[Move]:
        """Return all moves of a job; empty if the round does not decide about it."""
        reader = self.reader
        if reader.orphan(job):
            return [] if reader.hit(job) else [Move("orphan", None, 0, 0, (_place(job),))]
        if not reader.live(job):
            return []
        moves = self._pending(job) if job.state == "pending" else self._running(job)
        return [move for move in moves if move.spots]

    def sizes(self, job: Job) -> list[int]:
        """Sizes it may hold (G1)."""
        return list(range(job.min_gpus or job.gpus, job.gpus + 1, job.worker_gpus or job.gpus_per_node or 1))

    def _pending(self, job: Job) -> Iterator[Move]:
        reader = self.reader
        yield Move("wait")
        for kind in reader.fitting[job.id]:
            for size in self.sizes(job):
                yield Move("start", kind, size, 0, tuple(self.stand(job, kind, size)))
            if reader.budgeted(job) and reader.stands(job, kind, job.gpus) and self._may_ever_hold(job):
                yield Move("reserve", kind, job.gpus)

    def _may_ever_hold(self, job: Job) -> bool:
        """Whether no limit on its way up is below its size (O8)."""
        limits = {group.id: group.max_gpus for group in self.reader.state.groups}
        above = self.reader.lineage(str(self.reader.group_of[job.id]))
        return all((limit := limits[g]) is None or limit >= job.gpus for g in above)

    def _running(self, job: Job) -> Iterator[Move]:
        reader = self.reader
        here, kind, held = _place(job), reader.kind_held(job), job.placed_gpus
        known = all(node in reader.nodes for node, _ in here)
        yield Move("keep", kind, held, 0, (here,) if known else ())
        if job.min_gpus is not None and kind in reader.fitting[job.id] and not reader.hit(job):
            for size in self.sizes(job):
                if size > held:
                    yield Move("resize", kind, size, size - held, tuple(self._grown(job, kind, size)))
                elif size < held and not reader.pinned(job):
                    yield Move("resize", kind, size, held - size, tuple(self._shrunk(job, kind, size)))
        if reader.pinned(job):
            return
        yield Move("preempt")
        if reader.hit(job) or (job.contract.resumable and reader.policy.allow_migration):
            for to in reader.fitting[job.id]:
                for size in self.sizes(job):
                    spots = (spot for spot in self.stand(job, to, size) if spot != here)
                    yield Move("migrate", to, size, 0, tuple(spots))
        if reader.hit(job) and kind in reader.fitting[job.id]:
            lost = sum(gpus for node, gpus in here if node in reader.lost_nodes)
            yield Move("repair", kind, held, lost, tuple(self._repaired(job, kind)))

    # C1
    def eligible(self, job: Job, kind: str) -> list[Node]:
        """Nodes it may newly take."""
        reader = self.reader
        ends = reader.now + reader.protection_s(job) if job.contract.min_runtime_s > 0 else reader.now
        return [
            node
            for node in reader.nodes.values()
            if node.gpu_type == kind
            and reader.opens(node)
            and reader.wanted(job, node)
            and (node.available_until_at is None or node.available_until_at.timestamp() >= ends)
        ]

    # G3
    def stand(self, job: Job, kind: str, size: int) -> Iterator[Place]:
        """Every placement of a start or a move, with room on empty nodes."""
        nodes = self.eligible(job, kind)
        keys = sorted({node.labels[job.same] for node in nodes}) if job.same is not None else [None]
        most = self._most_nodes(job, kind, size)
        for key in keys:
            mine = [n for n in nodes if job.same is None or n.labels[job.same] == key]
            choices = [[(n.name, g) for g in self._amounts(job, self.reader.room(n))] for n in mine]
            for place in _sums(choices, size):
                if len(place) <= most:
                    yield place

    def shaped(self, job: Job, kind: str, place: Place) -> bool:
        """Whether a placement has the shape the job asks for."""
        if not self._one_value(job, place):
            return False
        if job.worker_gpus is not None:
            return all(gpus % job.worker_gpus == 0 for _, gpus in place)
        if job.gpus_per_node is not None:
            return all(gpus == job.gpus_per_node for _, gpus in place)
        return len(place) <= self._most_nodes(job, kind, sum(gpus for _, gpus in place))

    def _most_nodes(self, job: Job, kind: str, size: int) -> int:
        """Nodes it may stand on at most."""
        if job.worker_gpus is not None or job.gpus_per_node is not None:
            return len(self.reader.nodes)
        return self.reader.fewest_nodes(job, kind, size) or 0

    @staticmethod
    def _amounts(job: Job, most: int) -> Iterable[int]:
        """GPUs it may hold on one node."""
        if job.gpus_per_node is not None:
            return (0, job.gpus_per_node) if job.gpus_per_node <= most else (0,)
        return range(0, most + 1, job.worker_gpus or 1)

    # G4
    def _grown(self, job: Job, kind: str, size: int) -> Iterator[Place]:
        held = dict(_place(job))
        room = {node.name: self.reader.room(node) for node in self.eligible(job, kind)}
        names = sorted(held.keys() | room.keys())
        choices = [[(n, g) for g in range(held.get(n, 0), max(held.get(n, 0), room.get(n, 0)) + 1)] for n in names]
        return (place for place in _sums(choices, size) if self.shaped(job, kind, place))

    def _shrunk(self, job: Job, kind: str, size: int) -> Iterator[Place]:
        choices = [[(n, g) for g in range(gpus + 1)] for n, gpus in _place(job)]
        return (place for place in _sums(choices, size) if self.shaped(job, kind, place))

    # R2
    def _repaired(self, job: Job, kind: str) -> Iterator[Place]:
        """Keep what is on healthy nodes, replace what is lost: node by node, or worker by worker."""
        here = _place(job)
        healthy = {node: gpus for node, gpus in here if node not in self.reader.lost_nodes}
        lost = [gpus for node, gpus in here if node in self.reader.lost_nodes]
        if not healthy:
            return
        open_names = [node.name for node in self.eligible(job, kind)]
        if job.worker_gpus is not None:
            lost = [job.worker_gpus] * (sum(lost) // job.worker_gpus)
        else:
            open_names = [name for name in open_names if name not in healthy]
        found: set[Place] = set()
        for targets in product(open_names, repeat=len(lost)):
            if job.worker_gpus is None and len(set(targets)) < len(targets):
                continue
            place = dict(healthy)
            for node, gpus in zip(targets, lost, strict=True):
                place[node] = place.get(node, 0) + gpus
            after = tuple(sorted(place.items()))
            if self._one_value(job, after):
                found.add(after)
        yield from sorted(found)

    def _one_value(self, job: Job, place: Place) -> bool:
        values = {self.reader.nodes[node].labels.get(job.same or "") for node, _ in place}
        return job.same is None or (len(values) == 1 and None not in values)


def _place(job: Job) -> Place:
    return tuple(sorted((part.node, part.gpus) for part in job.placement))


def _sums(choices: list[list[tuple[str, int]]], size: int) -> Iterator[Place]:
    """Every way to reach a size with one choice of each list."""
    if not choices:
        if size == 0:
            yield ()
        return
    for name, gpus in choices[0]:
        if gpus <= size:
            for rest in _sums(choices[1:], size - gpus):
                yield ((name, gpus), *rest) if gpus else rest
