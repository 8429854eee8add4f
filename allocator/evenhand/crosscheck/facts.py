"""What the round is about, as numbers: the state as read, what is owed, what is aimed at, and prices (O4 to O6)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from math import floor

from evenhand.audit.amounts import TOLERANCE, largest_subset
from evenhand.audit.dues import Dues, dues
from evenhand.audit.fairness import bundles_of
from evenhand.audit.jobs import MILLI, JobReading
from evenhand.audit.reading import Reading, read
from evenhand.audit.shape import carries, least, worker
from evenhand.audit.target import Target, aim_at
from evenhand_models import ClusterState, Job, Plan, Policy

GRAIN = 16
"""Parts of a GPU in which shortfalls are counted (O)."""


@dataclass(frozen=True, slots=True)
class Facts:
    """The round.

    Attributes
    ----------
    reading : Reading
        The state (S).
    dues : Dues
        What groups are owed (D).
    target : Target
        The fair target of the plan, its values and envy rows (T).
    """

    reading: Reading
    dues: Dues
    target: Target

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self.reading.policy

    @property
    def epsilon(self) -> float:
        """Weight of unallocated work (O7)."""
        return 1 / (64 * self.reading.gpus) if self.reading.gpus else 0.0

    def eligible(self, job: JobReading, kind: str) -> list[str]:
        """Return the nodes of a type on which a job may arrive, by name (C1): none of a type it does not fit."""
        reading = self.reading
        if kind not in job.fits:
            return []
        promised = reading.state.now + timedelta(seconds=job.length_s)
        bound = job.job.contract.min_runtime_s > 0
        return [
            name
            for name, node in reading.nodes.items()
            if node.gpu_type == kind
            and name in reading.open
            and reading.room[name] > 0
            and carries(node, job.job)
            and not (bound and node.available_until_at is not None and node.available_until_at < promised)
        ]

    def by_value(self, job: JobReading, names: Iterable[str]) -> dict[str | None, list[str]]:
        """Split nodes by the value of the job's `same` key; all under None if it has no key."""
        found: dict[str | None, list[str]] = {}
        for name in names:
            key = job.job.same
            value = None if key is None else self.reading.nodes[name].labels.get(key)
            if key is None or value is not None:
                found.setdefault(value, []).append(name)
        return dict(sorted(found.items(), key=lambda item: item[0] or ""))

    def nodes_for(self, job: JobReading, kind: str, size: int) -> int | None:
        """Return the most nodes a size may use, None if the shape is impossible (G3)."""
        if job.job.worker_gpus is not None or job.job.gpus_per_node is not None:
            return len(self.reading.nodes)
        return self.reading.shapes.nominal_count(job.job, kind, size)

    def within(self, group: str, owed: float) -> int:
        """Return the largest sum of gangs below a group not above what is owed, in sixteenths (O)."""
        gangs: Counter[int] = Counter()
        for member, jobs in self.reading.members.items():
            if group in self.reading.tree.path(member):
                gangs.update(grains(part * (job.demand // job.job.gpus)) for job in jobs for part in steps(job.job))
        return largest_subset(gangs, floor(GRAIN * owed + TOLERANCE))

    def aim(self, group: str) -> int:
        """Return the aim of a leaf in sixteenths (T5, O3)."""
        gangs = Counter(part * job.kind.top_rate for job in self.reading.members[group] for part in steps(job.job))
        reach = floor((self.target.value[group] + TOLERANCE) * MILLI)
        return grains(largest_subset(gangs, reach))

    # what decisions about one job are worth
    def order(self, job: JobReading, gpus: int) -> float:
        """O4 of a job that runs on so many GPUs."""
        return gpus * (1 / 16 + job.level / 2 + job.age_step / 224)

    def pace(self, job: JobReading, kind: str | None, gpus: int) -> float:
        """Throughput on so many GPUs of a type."""
        return gpus * job.rates.get(kind or "", 0) / MILLI

    def ahead(self, job: JobReading, *, stays: bool) -> float:
        """O5: share of the lookahead in which a job that runs will work."""
        policy, share = self.policy, 1.0
        if job.job.expected_end_at is not None:
            left = (job.job.expected_end_at - self.reading.state.now).total_seconds()
            share = min(1.0, max(0.0, left) / policy.lookahead_s)
        return share if stays else min(share, 1.0 - min(1.0, policy.restart_cost_s / policy.lookahead_s))

    def lost(self, job: JobReading) -> float:
        """O5: work lost by stopping a job that is not hit, to start elsewhere or later."""
        if job.hit:
            return 0.0
        return self.pace(job, job.held_type, job.held_gpus) * (
            job.lost_s / self.policy.lookahead_s * self.policy.lost_work_weight
        )

    def ended(self, job: JobReading) -> float:
        """O5: what else preemption loses of a job that cannot resume."""
        if job.hit or job.job.contract.resumable:
            return 0.0
        return self.pace(job, job.held_type, job.held_gpus)

    def ends_soon(self, job: JobReading) -> bool:
        """O8: whether a job that started before ends within the restart cost: kept, its GPUs count as free."""
        ends = job.job.expected_end_at
        if ends is None or not job.live or job.started_at is None or job.started_at >= self.reading.state.now:
            return False
        return 0 < (ends - self.reading.state.now).total_seconds() <= self.policy.restart_cost_s


def facts_of(state: ClusterState, policy: Policy, plan: Plan) -> Facts:
    """Read a state; the fair target is that of a plan for it."""
    reading = read(state, policy)
    owed = dues(reading)
    return Facts(reading, owed, aim_at(reading, owed, bundles_of(reading, plan)))


def grains(milli: int) -> int:
    """Return thousandths of a GPU as whole sixteenths, rounded down (O)."""
    return GRAIN * milli // MILLI


def grains_held(milli: int) -> int:
    """Return thousandths of a GPU that a gang holds as whole sixteenths, rounded up (O)."""
    return (GRAIN * milli + MILLI - 1) // MILLI


def sizes(job: Job) -> list[int]:
    """Return the sizes a job is offered, ascending (G1)."""
    further = (job.gpus - least(job)) // worker(job)
    stride = max(1, math.ceil(further / 64))
    return sorted({*(least(job) + worker(job) * k for k in range(0, further + 1, stride)), job.gpus})


def steps(job: Job) -> list[int]:
    """Return the parts a gang is counted in: its least size, then what each further size adds (G1)."""
    offered = sizes(job)
    return [offered[0], *(more - less for less, more in pairwise(offered))]
