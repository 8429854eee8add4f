"""What wants GPUs or has them: jobs, their gangs, contracts and states."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import AfterValidator, Field, ValidationInfo, model_validator

from evenhand_models.errors import FieldError, InvalidInput
from evenhand_models.hardware import Placement
from evenhand_models.quantities import (
    CHECKS_DEFERRED,
    Flag,
    Fraction,
    GangSize,
    Id,
    Instant,
    Labels,
    Priority,
    Seconds,
    Speedups,
    WireModel,
)


def _by_node(placement: tuple[Placement, ...]) -> tuple[Placement, ...]:
    """Put a placement in the order of its nodes."""
    return placement if len(placement) < 2 else tuple(sorted(placement, key=lambda part: (part.node, part.gpus)))


Placements = Annotated[tuple[Placement, ...], AfterValidator(_by_node)]
"""GPUs on one or more nodes, in the order of the nodes' names."""


class JobState(StrEnum):
    """Where a job stands when the round begins."""

    PENDING = "pending"
    """Holds nothing and waits."""
    RUNNING = "running"
    """Holds its placement and works."""
    TERMINATING = "terminating"
    """Holds its placement and is already on its way out."""


class Contract(WireModel):
    """How long a start is protected, and what preemption means afterwards."""

    min_runtime_s: Seconds = Field(
        default=0,
        description="Seconds a job is protected from preemption and migration after each start, half-open; "
        "0: unallocated use, never charged, may be stopped at once.",
    )
    resumable: Flag = Field(
        default=True, description="Whether a preempted job is requeued; if not, preemption ends it."
    )


class Job(WireModel):
    """A gang of GPUs somebody wants, or holds.

    Raises
    ------
    InvalidInput
        If fields contradict each other. A job that merely can never run is no error.
    """

    id: Id = Field(description="Unique id of the job.")
    group: Id = Field(description="Group it belongs to; one that is not in the tree makes the job infeasible.")
    user: Id | None = Field(default=None, description="Who submitted it; unset: unknown.")
    gpus: GangSize = Field(description="Size of the gang in GPUs, all or nothing.")
    min_gpus: GangSize | None = Field(
        default=None,
        description="Makes the job elastic: it may run on min_gpus to gpus GPUs, in whole workers; unset: rigid.",
    )
    worker_gpus: GangSize | None = Field(
        default=None,
        description="GPUs of one worker: the gang is gpus / worker_gpus workers, each on one node, "
        "several may share "
        "a node. Excludes gpus_per_node.",
    )
    gpus_per_node: GangSize | None = Field(
        default=None, description="Exactly so many GPUs on every node it uses. Excludes worker_gpus."
    )
    speedup: Speedups = Field(
        description="Throughput of one GPU by type, on any scale: only ratios inside the job count; "
        "missing or 0: cannot run on that type."
    )
    requires: Labels = Field(default_factory=dict, description="Labels every node it uses must carry.")
    same: Id | None = Field(
        default=None, description="Key of a label whose value all its nodes must share, for example rack."
    )
    priority: Priority = Field(default=0, description="Orders jobs inside one group only, higher first.")
    submitted_at: Instant = Field(description="When it was submitted.")
    contract: Contract = Field(
        default_factory=Contract,
        description="Protection and resumability; left out: unallocated and resumable.",
    )
    state: JobState = Field(default=JobState.PENDING, description="pending, running or terminating.")
    started_at: Instant | None = Field(
        default=None, description="Last start; of running and terminating jobs, and only of those."
    )
    placement: Placements = Field(
        default=(), description="GPUs it holds; of running and terminating jobs, and only of those."
    )
    checkpointed_at: Instant | None = Field(default=None, description="Last saved progress; unset: unknown.")
    expected_end_at: Instant | None = Field(
        default=None, description="A promise or an estimate of its end; unset: unknown."
    )
    utilization: Fraction | None = Field(
        default=None,
        description="Share of its GPUs' compute really used since its start, 0 to 1; reported only.",
    )

    @property
    def holds_gpus(self) -> bool:
        """Whether it holds its placement: running or terminating."""
        return self.state is not JobState.PENDING

    @property
    def placed_gpus(self) -> int:
        """GPUs it holds now."""
        return sum(part.gpus for part in self.placement)

    @model_validator(mode="after")
    def _refuse_contradictions(self, info: ValidationInfo) -> Self:
        if info.context is not CHECKS_DEFERRED and (errors := job_errors(self)):
            raise InvalidInput(errors)
        return self


SAY_TOGETHER = {"min_gpus", "worker_gpus", "gpus_per_node", "state", "started_at", "placement"}
"""Fields that can contradict others: a job that gives none of them is sound."""


def job_errors(job: Job) -> list[FieldError]:
    """Say what contradicts itself inside one job; pointers are relative to the job."""
    plain = job.min_gpus is None and job.worker_gpus is None and job.gpus_per_node is None
    errors = [] if plain else _gang_errors(job)
    if job.state is JobState.PENDING:
        if job.placement:
            errors.append(FieldError("/placement", f"job {job.id!r} is pending and cannot hold a placement."))
        if job.started_at is not None:
            errors.append(FieldError("/started_at", f"job {job.id!r} is pending and cannot have a started_at."))
        return errors
    if job.started_at is None:
        errors.append(FieldError("/started_at", f"job {job.id!r} is {job.state} and needs a started_at."))
    if not job.placement:
        errors.append(FieldError("/placement", f"job {job.id!r} is {job.state} and needs a placement."))
    else:
        errors.extend(_placement_errors(job))
    return errors


def _gang_errors(job: Job) -> list[FieldError]:
    """Check min_gpus, worker_gpus and gpus_per_node against gpus and each other."""
    errors = []
    if job.min_gpus is not None and job.min_gpus > job.gpus:
        errors.append(FieldError("/min_gpus", f"job {job.id!r} has min_gpus {job.min_gpus} above its gpus {job.gpus}."))
    if job.worker_gpus is not None and job.gpus_per_node is not None:
        message = f"job {job.id!r} has both worker_gpus and gpus_per_node; at most one of them may be set."
        return [*errors, FieldError("/gpus_per_node", message)]
    for field, unit in (("worker_gpus", job.worker_gpus), ("gpus_per_node", job.gpus_per_node)):
        for name, gpus in (("gpus", job.gpus), ("min_gpus", job.min_gpus)):
            if unit is not None and gpus is not None and gpus % unit:
                message = f"job {job.id!r} has {name} {gpus}, which is no multiple of its {field} {unit}."
                errors.append(FieldError(f"/{name}", message))
    return errors


def _placement_errors(job: Job) -> list[FieldError]:
    """Check what a job holds against what it asked for."""
    errors = []
    nodes = [part.node for part in job.placement]
    if len(nodes) > 1 and len(set(nodes)) < len(nodes):
        twice = sorted({node for node in nodes if nodes.count(node) > 1})
        message = f"job {job.id!r} names node {', '.join(map(repr, twice))} more than once in its placement."
        errors.append(FieldError("/placement", message))
    held = job.placed_gpus
    if not (job.min_gpus or job.gpus) <= held <= job.gpus:
        wanted = f"its gpus {job.gpus}" if job.min_gpus is None else f"between {job.min_gpus} and {job.gpus}"
        errors.append(FieldError("/placement", f"job {job.id!r} holds {held} GPUs, which is not {wanted}."))
    return errors
