"""Rules S of docs/model.md, read once more and slowly: the state as the enumeration sees it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

from evenhand_models import ClusterState, Job, Node, Policy

Place = tuple[tuple[str, int], ...]
"""GPUs by node, nodes in order."""


@dataclass
class Reader:
    """Everything the rules S say about a state under a policy. Times are in seconds since 1970."""

    state: ClusterState
    policy: Policy
    jobs: list[Job] = field(init=False)
    nodes: dict[str, Node] = field(init=False)

    def __post_init__(self) -> None:
        self.jobs = sorted(self.state.jobs, key=lambda job: job.id)
        self.nodes = {node.name: node for node in sorted(self.state.nodes, key=lambda node: node.name)}
        self.now = self.state.now.timestamp()
        self.types = sorted(one.name for one in self.state.gpu_types)
        self.rate = {one.name: max(1, round(1000 * one.charge_rate)) / 1000 for one in self.state.gpu_types}
        self.all_gpus = sum(node.gpus for node in self.state.nodes)
        self._fits: dict[tuple[str, str, int], bool] = {}

    # S3
    def past(self, node: Node) -> bool:
        """Whether its maintenance has begun."""
        return node.available_until_at is not None and node.available_until_at.timestamp() <= self.now

    def opens(self, node: Node) -> bool:
        """Whether it takes new work."""
        return node.status == "up" and not self.past(node)

    def keeps(self, node: Node) -> bool:
        """Whether it runs what it has."""
        return node.status in ("up", "cordoned") and not self.past(node)

    @staticmethod
    def usable(node: Node) -> int:
        """GPUs neither broken nor foreign."""
        return max(0, node.gpus - node.unavailable_gpus - node.foreign_gpus)

    def room(self, node: Node) -> int:
        """GPUs our jobs may hold on it after the plan."""
        return self.usable(node) if self.keeps(node) else 0

    @cached_property
    def capacity(self) -> dict[str, int]:
        """GPUs on open nodes by type."""
        total = dict.fromkeys(self.types, 0)
        for node in self.nodes.values():
            total[node.gpu_type] += self.room(node) if self.opens(node) else 0
        return total

    # S4, S7
    @cached_property
    def parent(self) -> dict[str, str | None]:
        """Parent by group."""
        return {group.id: group.parent for group in self.state.groups}

    @cached_property
    def share(self) -> dict[str, float]:
        """Weight by group, 1 where all siblings have 0."""
        shares = {group.id: group.share for group in self.state.groups}
        flat = {p for p in self.parent.values() if all(shares[g] == 0 for g in self.children(p))}
        return {g: 1.0 if self.parent[g] in flat else share for g, share in shares.items()}

    def children(self, group: str | None) -> list[str]:
        """Child groups by id; of None: the groups at the top."""
        return sorted(g for g, p in self.parent.items() if p == group)

    def lineage(self, group: str) -> list[str]:
        """A group and all above it, from the bottom."""
        line = [group]
        while (above := self.parent[line[-1]]) is not None:
            line.append(above)
        return line

    def claims(self, group: str) -> bool:
        """Whether neither it nor a group above has share 0 beside a sibling with more."""
        return all(self.share[g] > 0 for g in self.lineage(group))

    def known(self, name: str) -> str | None:
        """Return the group itself, or the nearest ancestor that the name tells."""
        while name not in self.parent:
            if "/" not in name:
                return None
            name = name.rsplit("/", 1)[0]
        return name

    @cached_property
    def group_of(self) -> dict[str, str | None]:
        """Group that a job is charged to, None: infeasible if it waits, an orphan if it holds GPUs."""
        return {
            job.id: self.known(job.group)
            if job.state != "pending"
            else (job.group if job.group in self.parent else None)
            for job in self.jobs
        }

    @cached_property
    def used_hours(self) -> dict[str, float]:
        """Own usage by group."""
        used = dict.fromkeys(self.parent, 0.0)
        for one in self.state.usage or ():
            group = self.known(one.group)
            if group is not None:
                used[group] += one.charged_gpu_hours
        return used

    # S5, G3
    def wanted(self, job: Job, node: Node) -> bool:
        """Whether a node carries the labels a job asks for."""
        return all(node.labels.get(key) == value for key, value in job.requires.items()) and (
            job.same is None or job.same in node.labels
        )

    def domains(self, job: Job, kind: str) -> list[list[Node]]:
        """Nominal-eligible nodes, one list for each value of the key that must be shared."""
        nodes = [n for n in self.nodes.values() if n.gpu_type == kind and self.wanted(job, n)]
        if job.same is None:
            return [nodes]
        return [[n for n in nodes if n.labels[job.same] == v] for v in sorted({n.labels[job.same] for n in nodes})]

    def fewest_nodes(self, job: Job, kind: str, size: int) -> int | None:
        """Nodes that a gang without worker sizes needs at least, None if it cannot stand."""
        needs = []
        for nodes in self.domains(job, kind):
            left, count = size, 0
            for gpus in sorted((n.gpus for n in nodes), reverse=True):
                if left <= 0:
                    break
                left, count = left - gpus, count + (gpus > 0)
            if left <= 0:
                needs.append(count)
        return min(needs, default=None)

    def stands(self, job: Job, kind: str, size: int) -> bool:
        """Whether the shape can stand on the empty cluster at a size."""
        key = (job.id, kind, size)
        if key not in self._fits:
            self._fits[key] = self._stands(job, kind, size)
        return self._fits[key]

    def _stands(self, job: Job, kind: str, size: int) -> bool:
        unit = job.worker_gpus or job.gpus_per_node
        if unit is None:
            return self.fewest_nodes(job, kind, size) is not None
        for nodes in self.domains(job, kind):
            each = [n.gpus // unit for n in nodes]
            if job.gpus_per_node is not None:
                each = [min(workers, 1) for workers in each]
            if sum(each) * unit >= size:
                return True
        return False

    def fits(self, job: Job, kind: str) -> bool:
        """Whether it fits a type at its least size."""
        return job.speedup.get(kind, 0) > 0 and self.stands(job, kind, job.min_gpus or job.gpus)

    @cached_property
    def fitting(self) -> dict[str, list[str]]:
        """Types by job that it fits."""
        return {job.id: [t for t in self.types if self.fits(job, t)] for job in self.jobs}

    # S6
    @cached_property
    def speed(self) -> dict[str, dict[str, float]]:
        """Throughput of one GPU, by job and type."""
        speeds = {}
        for job in self.jobs:
            mine = [job.speedup[t] for t in self.fitting[job.id]]
            base = (max if self.policy.throughput_unit == "best" else min)(mine, default=1.0)
            speeds[job.id] = {
                t: max(1, round(min(1_000_000, 1000 * job.speedup[t] / base))) / 1000
                if t in self.fitting[job.id]
                else 0.0
                for t in self.types
            }
        return speeds

    # S8 to S11
    def running(self, job: Job) -> bool:
        """Whether it runs and is not on its way out."""
        return job.state == "running"

    def orphan(self, job: Job) -> bool:
        """Whether it runs for nobody known."""
        return self.running(job) and self.group_of[job.id] is None

    def live(self, job: Job) -> bool:
        """Whether the round decides about it."""
        if self.group_of[job.id] is None:
            return False
        return self.running(job) or (job.state == "pending" and bool(self.fitting[job.id]))

    def budgeted(self, job: Job) -> bool:
        """Whether it is live, charged and protected."""
        group = self.group_of[job.id]
        return self.live(job) and job.contract.min_runtime_s > 0 and group is not None and self.claims(group)

    def protection_s(self, job: Job) -> int:
        """Length of its contract (S2)."""
        return min(job.contract.min_runtime_s, self.policy.max_protection_s)

    def started(self, job: Job) -> float:
        """Start, not after now (S1)."""
        assert job.started_at is not None
        return min(job.started_at.timestamp(), self.now)

    @cached_property
    def lost_nodes(self) -> set[str]:
        """Nodes under which a job is hit: gone, down, past their date, overfull (S9)."""
        held: Counter[str] = Counter()
        for job in self.jobs:
            for part in job.placement:
                held[part.node] += part.gpus
        return {
            name
            for name, gpus in held.items()
            if name not in self.nodes or not self.keeps(self.nodes[name]) or gpus > self.usable(self.nodes[name])
        }

    def hit(self, job: Job) -> bool:
        """Whether it runs on a node that is lost."""
        return self.running(job) and any(part.node in self.lost_nodes for part in job.placement)

    def pinned(self, job: Job) -> bool:
        """Whether it has to stay exactly where it is (S10)."""
        if not self.running(job) or self.hit(job):
            return False
        if self.orphan(job):
            return True
        return self.budgeted(job) and self.now < self.started(job) + self.protection_s(job)

    def kind_held(self, job: Job) -> str | None:
        """Type of the GPUs it holds; None if all its nodes are gone."""
        return next((self.nodes[p.node].gpu_type for p in job.placement if p.node in self.nodes), None)

    def kinds(self, job: Job) -> list[str]:
        """Types its demand may be met on: those it fits, else the one it runs on."""
        own = self.kind_held(job)
        return self.fitting[job.id] or ([own] if own is not None else [])

    def demand(self, job: Job) -> float:
        """Charged GPUs it wants (D)."""
        return job.gpus * max((self.rate[t] for t in self.kinds(job)), default=0.0)

    # O4
    def levels(self, job: Job) -> list[int]:
        """Distinct priorities among the live jobs of its group and kind, ascending."""
        kind = self.budgeted(job)
        peers = (
            p.priority
            for p in self.jobs
            if self.live(p) and self.group_of[p.id] == self.group_of[job.id] and self.budgeted(p) == kind
        )
        return sorted(set(peers))

    def level(self, job: Job) -> float:
        """Position of its priority, 0 to 1."""
        levels = self.levels(job)
        return levels.index(job.priority) / (len(levels) - 1) if len(levels) > 1 else 1.0

    def cuts(self, job: Job) -> list[tuple[int, int]]:
        """Neighbouring priorities of its leaf."""
        return list(pairwise(self.levels(job)))
