"""What was measured of jobs, and what is asked of the audit of declared speedups (rules V)."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, Strict, ValidationInfo, ValidatorFunctionWrapHandler, field_validator, model_validator

from evenhand_models.cluster import ClusterState
from evenhand_models.errors import FieldError, InvalidInput
from evenhand_models.policy import Policy
from evenhand_models.quantities import (
    CHECKS_DEFERRED,
    CLOCK_TOLERANCE,
    MAX_SECONDS,
    Count,
    Flag,
    GangSize,
    Id,
    Instant,
    Speedups,
    WireModel,
)
from evenhand_models.speedup_policy import SpeedupPolicy

Work = Annotated[float, Strict(), Field(ge=0, le=1e30, allow_inf_nan=False)]
"""Work done, in a unit of the job's own: samples, steps, tokens."""
MeasuredSeconds = Annotated[float, Strict(), Field(gt=0, le=MAX_SECONDS, allow_inf_nan=False)]
"""Seconds measured, above 0."""


class Observation(WireModel):
    """What one job did on GPUs of one type for a while."""

    job: Id = Field(description="Id of the job.")
    gpu_type: Id = Field(description="Type of the GPUs it ran on.")
    gpus: GangSize = Field(description="How many GPUs it ran on.")
    work_done: Work = Field(
        description="Work done meanwhile by all its GPUs together, in a unit that the job keeps to (samples, steps); "
        "0 is taken, but says nothing about speedups."
    )
    seconds: MeasuredSeconds = Field(description="How long that took, in seconds, above 0.")
    ended_at: Instant | None = Field(
        default=None,
        description="When it ended; what repeats another observation to the letter, its end included, is left out; "
        "unset: unknown.",
    )
    requeues: Count | None = Field(
        default=None, description="How often the job had been requeued before; unset: unknown."
    )
    progress: Work | None = Field(
        default=None,
        description="Work the job has to its credit at the end, in the unit of work_done; after a requeue that lost "
        "its progress it begins again at 0; unset: unknown.",
    )


class DeclaredJob(WireModel):
    """What a job that is no longer in the state had declared."""

    id: Id = Field(description="Id of the job.")
    group: Id = Field(description="Group it belonged to.")
    speedup: Speedups = Field(description="Throughput of one GPU by type that it declared, on any scale.")
    resumable: Flag = Field(default=True, description="Whether it was declared resumable.")


class ObservedWork(WireModel):
    """What was measured, without the state: a file of observations."""

    observations: tuple[Observation, ...] = Field(description="What was measured, in any order.")
    ended_jobs: tuple[DeclaredJob, ...] = Field(
        default=(), description="What jobs that have left the state had declared."
    )
    policy: SpeedupPolicy | None = Field(default=None, description="How to judge; unset: all defaults.")


class SpeedupAuditRequest(WireModel):
    """What is asked: the jobs as declared, what was observed of them, and how to judge.

    Raises
    ------
    InvalidInput
        If parts contradict each other; pointers are relative to the request.
    """

    state: ClusterState = Field(description="The state of the cluster, with what its jobs declare.")
    ended_jobs: tuple[DeclaredJob, ...] = Field(
        default=(), description="What jobs that have left the state had declared."
    )
    observations: tuple[Observation, ...] = Field(
        description="What was measured, in any order; what cannot be used is left out, counted and named."
    )
    policy: SpeedupPolicy = Field(
        default_factory=SpeedupPolicy, description="How to judge and what follows; left out: all defaults."
    )
    round_policy: Policy | None = Field(
        default=None,
        description="The policy of the rounds, by which gains are measured, its objective aside: under that they are "
        "measured for each there is; unset: all defaults.",
    )

    @field_validator("state", mode="wrap")
    @classmethod
    def _point_below_state(cls, value: object, read: ValidatorFunctionWrapHandler) -> ClusterState:
        try:
            state: ClusterState = read(value)
        except InvalidInput as refused:
            raise refused.under("/state") from None
        return state

    @property
    def effective_round_policy(self) -> Policy:
        """The rounds' policy in force: the one given, or all defaults."""
        return Policy() if self.round_policy is None else self.round_policy

    @model_validator(mode="after")
    def _refuse_contradictions(self, info: ValidationInfo) -> Self:
        if info.context is not CHECKS_DEFERRED and (errors := speedup_request_errors(self)):
            raise InvalidInput(errors)
        return self


def speedup_request_errors(request: SpeedupAuditRequest) -> list[FieldError]:
    """Say what contradicts itself between the parts of a request; pointers are relative to it."""
    errors = []
    seen = {job.id for job in request.state.jobs}
    for i, job in enumerate(request.ended_jobs):
        if job.id in seen:
            errors.append(FieldError(f"/ended_jobs/{i}/id", f"job {job.id!r} is listed already."))
        seen.add(job.id)
    latest = request.state.now + CLOCK_TOLERANCE
    errors += [
        FieldError(
            f"/observations/{i}/ended_at",
            f"an observation of job {one.job!r} ended {(one.ended_at - request.state.now).total_seconds():.15g} s "
            f"after now; more than {CLOCK_TOLERANCE.total_seconds():g} s is refused.",
        )
        for i, one in enumerate(request.observations)
        if one.ended_at is not None and one.ended_at > latest
    ]
    wanted = request.policy.reference_type
    if wanted is not None and wanted not in {t.name for t in request.state.gpu_types}:
        errors.append(FieldError("/policy/reference_type", f"type {wanted!r} is not in gpu_types."))
    return errors
