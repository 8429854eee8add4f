"""What is declared of the jobs of a trace, which schedulers may see, apart from what is so, which only the world knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from evenhand.shapes import Sites
from evenhand.tree import Tree
from evenhand_models import Contract, Job, Policy, ThroughputUnit
from evenhand_models.traces import Trace, TraceJob

MOST_SPEED_MILLI = 1_000_000
_ANY = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Shape:
    """What makes two jobs need the same room: size, split over nodes, and speeds by type.

    speed_milli : declared throughput by type in thousandths, 0 where it does not fit (rules S5, S6);
    types : those it fits, the best first.
    """

    gpus: int
    worker_gpus: int | None
    gpus_per_node: int | None
    speed_milli: tuple[int, ...]
    types: tuple[int, ...]


@dataclass(eq=False)
class JobFacts:
    """Declared facts of jobs, by their place in the trace; J jobs.

    Attributes
    ----------
    group : index in the tree, -1 if unknown; shape : index into `shapes`, -1 if the job fits nothing.
    submit_s, contract_s, priority, resumable : as declared; the contract cut to the policy's longest.
    budgeted : whether its use is charged (rule S8); submit_s moves when a job starts over.
    demand_milli : charged demand in thousandths (rule D); debug : whether it counts as a debug run (rule O3).
    """

    ids: list[str]
    group: list[int]
    user: list[str]
    size: list[int]
    submit_s: list[int]
    contract_s: list[int]
    priority: list[int]
    resumable: list[bool]
    shape: list[int]
    shapes: list[Shape]
    budgeted: list[bool]
    demand_milli: list[int]
    debug: list[bool]
    wire: Callable[[int, datetime], Job]
    """Makes a job as the engine reads it, waiting since an instant."""


@dataclass(eq=False)
class Truth:
    """What only the world knows: work still to be done in seconds at speed 1, and true speeds by shape of truth."""

    left_s: list[float]
    speed: list[tuple[float, ...]]


def declared(
    trace: Trace, tree: Tree, types: tuple[str, ...], sites: Sites, rates: list[int], policy: Policy
) -> JobFacts:
    """Read what the jobs of a trace declare, for one cluster and tree."""
    shapes: dict[Shape, int] = {}
    seen: dict[object, int] = {}
    facts = JobFacts(
        [], [], [], [], [], [], [], [], [], [], [], [], [], lambda j, at: wire_job(trace.jobs[j], types, at)
    )
    for job in trace.jobs:
        key = (
            job.gpus, job.worker_gpus, job.gpus_per_node, job.gpu_types,
            None if job.speedup is None else tuple(sorted(job.speedup.items())),
        )  # fmt: skip
        at = seen.get(key)
        if at is None:
            shape = _shape(job, types, sites, policy.throughput_unit)
            at = -1 if shape is None else shapes.setdefault(shape, len(shapes))
            seen[key] = at
        group = tree.index(job.group)
        contract = min(job.min_runtime_s, policy.max_protection_s)
        facts.ids.append(job.id)
        facts.group.append(-1 if group is None else group)
        facts.user.append(job.user or "")
        facts.size.append(job.gpus)
        facts.submit_s.append(job.submit_s)
        facts.contract_s.append(contract)
        facts.priority.append(job.priority)
        facts.resumable.append(job.resumable)
        facts.shape.append(at if group is not None else -1)
        facts.budgeted.append(job.min_runtime_s > 0 and group is not None and tree.claim[group])
    facts.shapes = list(shapes)
    facts.debug = [
        budgeted and not resumable and 0 < contract <= policy.debug_contract_s and size <= sites.largest_node
        for budgeted, resumable, contract, size in zip(
            facts.budgeted, facts.resumable, facts.contract_s, facts.size, strict=True
        )
    ]
    for j, at in enumerate(facts.shape):
        best = max((rates[t] for t in facts.shapes[at].types), default=0) if at >= 0 else 0
        facts.demand_milli.append(facts.size[j] * best)
    return facts


def truth(trace: Trace, types: tuple[str, ...]) -> Truth:
    """Read what is so."""
    speeds: dict[object, tuple[float, ...]] = {}
    left: list[float] = []
    by_job: list[tuple[float, ...]] = []
    for job in trace.jobs:
        left.append(float(job.duration_s))
        stated = job.true_speedup
        key = (job.gpu_types, tuple(sorted(stated.items())) if stated is not None else None,
               tuple(sorted(job.speedup.items())) if job.speedup is not None else None)  # fmt: skip
        found = speeds.get(key)
        if found is None:
            found = speeds[key] = _true_speeds(job, types)
        by_job.append(found)
    return Truth(left, by_job)


def _declared_speeds(job: TraceJob, types: tuple[str, ...]) -> list[float]:
    """Declared throughput by type on the job's own scale; 0: not accepted."""
    accepted = [not job.gpu_types or name in job.gpu_types for name in types]
    speeds = job.speedup
    return [
        (1.0 if speeds is None else float(speeds.get(name, 0.0))) if ok else 0.0
        for name, ok in zip(types, accepted, strict=True)
    ]


def _true_speeds(job: TraceJob, types: tuple[str, ...]) -> tuple[float, ...]:
    """True throughput by type; where nothing is said, as declared with the best type at 1."""
    said = _declared_speeds(job, types)
    if job.true_speedup is not None:
        real = job.true_speedup
        return tuple(float(real.get(name, 0.0)) if ok else 0.0 for name, ok in zip(types, said, strict=True))
    best = max(said, default=0.0)
    return tuple(x / best if best else 0.0 for x in said)


def _shape(job: TraceJob, types: tuple[str, ...], sites: Sites, unit: ThroughputUnit) -> Shape | None:
    """What the job needs, None if it fits no type of the cluster (rules S5, S6)."""
    said = _declared_speeds(job, types)
    wire = wire_job(job, types, _ANY)
    fits = [x > 0 and sites.fits(wire, t, job.gpus) for t, x in enumerate(said)]
    usable = [x for x, ok in zip(said, fits, strict=True) if ok]
    if not usable:
        return None
    base = max(usable) if unit is ThroughputUnit.BEST else min(usable)
    milli = tuple(
        max(1, round(min(MOST_SPEED_MILLI, 1000 * x / base))) if ok else 0 for x, ok in zip(said, fits, strict=True)
    )
    order = sorted((t for t, ok in enumerate(fits) if ok), key=lambda t: (-milli[t], t))
    return Shape(job.gpus, job.worker_gpus, job.gpus_per_node, milli, tuple(order))


def wire_job(job: TraceJob, types: tuple[str, ...], at: datetime) -> Job:
    """The job as the engine's own model, waiting since then; nothing to validate that the reader has not."""
    speeds = {name: x for name, x in zip(types, _declared_speeds(job, types), strict=True) if x > 0}
    return Job.model_construct(
        id=job.id, group=job.group, user=job.user, gpus=job.gpus, worker_gpus=job.worker_gpus,
        gpus_per_node=job.gpus_per_node, speedup=speeds, priority=job.priority, submitted_at=at,
        contract=Contract.model_construct(min_runtime_s=job.min_runtime_s, resumable=job.resumable),
    )  # fmt: skip
