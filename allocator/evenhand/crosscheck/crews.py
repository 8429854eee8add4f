"""Crews: a job that holds GPUs, or pending jobs that no rule can tell apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from evenhand.audit.jobs import JobReading
from evenhand.crosscheck.facts import Facts


@dataclass(frozen=True, slots=True)
class Crew:
    """Jobs that one set of columns decides about.

    Attributes
    ----------
    jobs : tuple of JobReading
        One job, or several pending ones that differ in nothing but id and user, by id.
    block : mapping of str to tuple (int, int, bool)
        By type on which gangs consist of equal blocks, each on one node: GPUs of a block, blocks of a gang of
        full size, and whether blocks of one gang must be on different nodes. Other types: any split (G3).
    """

    jobs: tuple[JobReading, ...]
    block: dict[str, tuple[int, int, bool]]

    @property
    def first(self) -> JobReading:
        """The one that stands for all."""
        return self.jobs[0]

    @property
    def count(self) -> int:
        """How many jobs there are."""
        return len(self.jobs)

    @property
    def name(self) -> str:
        """How rows and columns name it."""
        more = f"_and_{self.count - 1}_like_it" if self.count > 1 else ""
        return f"{self.first.job.id}{more}"


def crews_of(facts: Facts) -> list[Crew]:
    """Return all jobs the round decides about or has to work around, in crews."""
    crews: list[Crew] = []
    alike: dict[object, list[JobReading]] = {}
    for job in facts.reading.jobs.values():
        if job.running and (not job.orphan or job.pinned):
            crews.append(Crew((job,), dict(_blocks(facts, job))))
        elif job.pending and job.live:
            alike.setdefault(_likeness(facts, job), []).append(job)
    return crews + [Crew(tuple(jobs), dict(_blocks(facts, jobs[0]))) for jobs in alike.values()]


def _blocks(facts: Facts, job: JobReading) -> Iterator[tuple[str, tuple[int, int, bool]]]:
    """Give the types on which a job's gang consists of equal blocks.

    A gang with neither kind of worker that needs k nodes, and fills k of the largest of them to the last GPU,
    has no choice but such blocks.
    """
    size = job.job.gpus
    for kind in {*job.fits, *([job.held_type] if job.held_type is not None else [])}:
        if job.job.worker_gpus is not None:
            yield kind, (job.job.worker_gpus, size // job.job.worker_gpus, False)
        elif job.job.gpus_per_node is not None:
            yield kind, (job.job.gpus_per_node, size // job.job.gpus_per_node, True)
        elif job.job.min_gpus is None:
            need = facts.nodes_for(job, kind, size)
            largest = max((max(pool) for pool in facts.reading.shapes.pools(job.job).get(kind, ())), default=0)
            if need is not None and (need == 1 or need * largest == size):
                yield kind, (size // need, need, True)


def _likeness(facts: Facts, job: JobReading) -> object:
    """Return a key that equals another pending job's only where the two may be counted instead of named.

    Counting needs gangs of equal blocks: blocks on nodes can then always be dealt out to the gangs, also where a
    gang wants different nodes, as no node holds more of them than there are gangs (Gale and Ryser).
    """
    asked = job.job
    regular = asked.min_gpus is None and all(kind in dict(_blocks(facts, job)) for kind in job.fits)
    if not regular or asked.id in facts.dues.owed:
        return asked.id
    return (
        job.group,
        job.budgeted,
        asked.gpus,
        asked.worker_gpus,
        asked.gpus_per_node,
        tuple(sorted(asked.requires.items())),
        asked.same,
        tuple(sorted(job.rates.items())),
        job.full,
        asked.priority,
        job.age_step,
        facts.ahead(job, stays=False),
        asked.contract.min_runtime_s > 0,
        job.length_s,
    )
