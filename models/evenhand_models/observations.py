"""What was measured of jobs, how declared speedups are judged by it, and what is found."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, Strict, ValidationInfo, model_validator

from evenhand_models.cluster import ClusterState
from evenhand_models.errors import FieldError, InvalidInput
from evenhand_models.policy import Objective
from evenhand_models.quantities import (
    CHECKS_DEFERRED,
    CLOCK_TOLERANCE,
    MAX_SECONDS,
    Amount,
    Flag,
    Fraction,
    GangSize,
    Id,
    Instant,
    Number,
    Seconds,
    Speedups,
    Text,
    WholeNumber,
    WireModel,
)

Work = Annotated[float, Strict(), Field(gt=0, le=1e30, allow_inf_nan=False)]
"""Work done, above 0, in a unit of the job's own: samples, steps, tokens."""
Progress = Annotated[float, Strict(), Field(ge=0, le=1e30, allow_inf_nan=False)]
"""Work a job has done in all, in the same unit."""
MeasuredSeconds = Annotated[float, Strict(), Field(gt=0, le=MAX_SECONDS, allow_inf_nan=False)]
"""Seconds measured, above 0."""
Spread = Annotated[float, Strict(), Field(gt=0, le=3, allow_inf_nan=False)]
"""Standard deviation of the logarithm of a rate, about the relative error where small."""
Confidence = Annotated[float, Strict(), Field(ge=0.5, le=0.9999, allow_inf_nan=False)]
"""Probability that an interval covers what it is about."""
Count = Annotated[WholeNumber, Field(ge=0)]
"""A number of things seen, 0 or more."""
Evidence = Annotated[WholeNumber, Field(ge=1, le=10**6)]
"""A number of things seen, 1 or more."""


class Observation(WireModel):
    """What one job did on GPUs of one type for a while."""

    job: Id = Field(description="Id of the job.")
    gpu_type: Id = Field(description="Type of the GPUs it ran on.")
    gpus: GangSize = Field(description="How many it ran on.")
    work_done: Work = Field(description="Work done meanwhile, in any unit that the job keeps to.")
    seconds: MeasuredSeconds = Field(description="How long that took.")
    ended_at: Instant | None = Field(default=None, description="When it ended; unset: unknown.")
    requeues: Count | None = Field(
        default=None, description="How often the job had been requeued before; unset: unknown."
    )
    progress: Progress | None = Field(
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


class SpeedupUse(StrEnum):
    """Which speedups the next rounds go by."""

    DECLARED = "declared"
    """What was declared."""
    OBSERVED = "observed"
    """What was observed, where there is evidence enough."""
    BLEND = "blend"
    """Between the two, the nearer to what was observed the more of it there is."""


class SpeedupConsequence(StrEnum):
    """What happens where declared speedups are found wrong."""

    WARN = "warn"
    """Nothing but the report."""
    USE_OBSERVED = "use_observed"
    """What was observed replaces what was declared."""
    REFUSE = "refuse"
    """Waiting jobs that declare so are refused; for those that run, what was observed is used."""


class SpeedupPolicy(WireModel):
    """How declared speedups are judged, and what follows; every field has a default."""

    use: SpeedupUse = Field(default=SpeedupUse.DECLARED, description="declared, observed or blend.")
    consequence: SpeedupConsequence = Field(
        default=SpeedupConsequence.WARN, description="warn, use_observed or refuse."
    )
    min_observations: Evidence = Field(
        default=5, description="Fewest observations on the type, and on the reference type, that count as evidence."
    )
    min_seconds: Seconds = Field(
        default=600, description="Fewest seconds observed on the type, and on the reference type."
    )
    min_jobs: Evidence = Field(
        default=1, description="Fewest jobs of a group observed on both types for a finding about the group."
    )
    shortest_observation_s: Seconds = Field(
        default=30, description="Shorter observations are left out: warming up is no work."
    )
    tolerance: Fraction = Field(
        default=0.1, description="Declared speedups off by so much, as a share, are as good as right."
    )
    confidence: Confidence = Field(default=0.98, description="Confidence of the intervals, two-sided.")
    noise: Spread = Field(
        default=0.1,
        description="Standard deviation of the logarithm of an honest rate: what is expected before anything is "
        "observed, and how far blend trusts what was declared.",
    )
    reference_type: Id | None = Field(
        default=None,
        description="Type that the others are compared with; unset, or not observed in a group: of the types most "
        "observed together with others, the one observed slowest.",
    )
    min_like_jobs: Evidence = Field(
        default=3, description="Fewest like jobs from which the speedup of an undeclared type is estimated."
    )
    checkpoint_s: Seconds = Field(
        default=3_600, description="Seconds of work that a resumable job may lose with a requeue."
    )
    min_progress_kept: Fraction = Field(
        default=0.5, description="Share of its progress that a resumable job must have kept, where it lost more."
    )


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
        description="What was measured, in any order; of a job that is in neither list: left out, and named."
    )
    policy: SpeedupPolicy = Field(default_factory=SpeedupPolicy, description="How to judge; unset: all defaults.")

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
            f"/observations/{i}/ended_at", f"an observation of job {seen_one.job!r} ended in the future of the state."
        )
        for i, seen_one in enumerate(request.observations)
        if seen_one.ended_at is not None and seen_one.ended_at > latest
    ]
    wanted = request.policy.reference_type
    if wanted is not None and wanted not in {t.name for t in request.state.gpu_types}:
        errors.append(FieldError("/policy/reference_type", f"type {wanted!r} is not in gpu_types."))
    return errors


class SpeedupFlag(StrEnum):
    """What is found about a declared speedup."""

    NONE = "none"
    """Nothing: right within the tolerance, or too little evidence."""
    SUSPECT = "suspect"
    """Off, and not by chance, but possibly by no more than the tolerance."""
    OVERDECLARED = "overdeclared"
    """Declared higher than observed, by more than the tolerance."""
    UNDERDECLARED = "underdeclared"
    """Declared lower than observed, by more than the tolerance."""


class SpeedupRatio(WireModel):
    """Observed over declared on one type, both relative to the reference type; logarithms."""

    gpu_type: Id = Field(description="The type.")
    reference_type: Id = Field(description="The type it is compared with.")
    ratio: Number | None = Field(
        default=None,
        description="log(observed / declared): below 0 declared too high, above 0 too low; unset: not comparable yet.",
    )
    low: Number | None = Field(default=None, description="Low end of the interval of ratio; unset as ratio.")
    high: Number | None = Field(default=None, description="High end of the interval of ratio; unset as ratio.")
    standard_error: Amount | None = Field(default=None, description="Standard error of ratio; unset as ratio.")
    observations: Count = Field(default=0, description="Observations on the type.")
    reference_observations: Count = Field(default=0, description="Observations of the same jobs on the reference type.")
    seconds: Amount = Field(default=0.0, description="Seconds observed on the type.")
    reference_seconds: Amount = Field(
        default=0.0, description="Seconds observed of the same jobs on the reference type."
    )
    enough: Flag = Field(default=False, description="Whether that is evidence enough for a finding.")
    flag: SpeedupFlag = Field(default=SpeedupFlag.NONE, description="none, suspect, overdeclared or underdeclared.")
    severity: Amount = Field(
        default=0.0,
        description="By how much it is off at the least, as a share: 0.25 is a quarter too high, or too low; 0 if "
        "not flagged.",
    )


class GroupSpeedup(SpeedupRatio):
    """What a group declares for one type, against what its jobs did."""

    group: Id = Field(description="The group, its own jobs only.")
    jobs: Count = Field(default=0, description="Jobs observed on both types.")
    job_spread: Amount | None = Field(
        default=None, description="Standard deviation of ratio from job to job; unset as ratio."
    )


class JobSpeedup(WireModel):
    """The speedups of one job that the next rounds go by."""

    job: Id = Field(description="Id of the job.")
    group: Id = Field(description="Its group.")
    speedup: Speedups = Field(description="Throughput of one GPU by type in the next rounds, scaled as declared.")
    changed: Flag = Field(description="Whether that is not what was declared.")
    refused: Flag = Field(default=False, description="Whether the job is refused for what it declares.")
    measured: tuple[SpeedupRatio, ...] = Field(default=(), description="What was observed of this job itself, by type.")


class EstimateSource(StrEnum):
    """What an estimate of an undeclared speedup rests on."""

    MEASURED = "measured"
    """The job itself was seen on the type."""
    LIKE_JOBS = "like_jobs"
    """Jobs of like speedups on the types it declares."""


class UndeclaredSpeedup(WireModel):
    """What a job would do on a type that it leaves out; an estimate to show, never used by itself."""

    job: Id = Field(description="Id of the job.")
    gpu_type: Id = Field(description="A type of the cluster that the job does not mention.")
    speedup: Amount = Field(description="Estimate, on the scale of what the job declares.")
    low: Amount = Field(description="Low end of its interval.")
    high: Amount = Field(description="High end of its interval.")
    source: EstimateSource = Field(description="measured or like_jobs.")
    like_jobs: Count = Field(default=0, description="How many jobs it rests on besides the job itself.")


class HintCode(StrEnum):
    """Why something should be measured again."""

    REFERENCE_UNMEASURED = "reference_unmeasured"
    """Jobs were never observed on the reference type: nothing to compare with."""
    REFERENCE_SHORT = "reference_short"
    """Too little was observed on the reference type."""
    REFERENCE_SUSPECT = "reference_suspect"
    """All other types are off alike: rather it is the reference type's own number that is wrong."""


class ProfileHint(WireModel):
    """A measurement that would settle something."""

    group: Id = Field(description="The group.")
    gpu_type: Id = Field(description="The type to measure on.")
    code: HintCode = Field(description="Why, from a closed list.")
    jobs: tuple[Id, ...] = Field(default=(), description="Ids of the jobs to measure.")
    message: Text = Field(description="One sentence with the numbers.")


class RefutedResume(WireModel):
    """A job declared resumable that came back from a requeue without its progress."""

    job: Id = Field(description="Id of the job.")
    group: Id = Field(description="Its group.")
    requeues: Count = Field(description="Requeues after which its progress was seen.")
    failed: Count = Field(description="Those after which it was lost.")
    kept: Fraction = Field(description="Share of its progress it had after the last of them.")
    lost_gpu_hours: Amount = Field(description="GPU-hours of work lost by all that failed.")


class MisreportGain(WireModel):
    """What a group gets by what it declares, against what it would get by the truth; valued by the truth."""

    group: Id = Field(description="The group, all below it included.")
    objective: Objective = Field(description="The objective of the fair target.")
    honest: Amount = Field(description="Throughput of its target by true speedups.")
    declared: Amount = Field(description="Throughput, by true speedups, of its target by declared ones.")
    gain: Number | None = Field(default=None, description="declared over honest less 1; unset: honest is 0.")
    others: Number | None = Field(
        default=None, description="The same share for all other groups together; unset: they have nothing."
    )


class SpeedupReport(WireModel):
    """What the audit of declared speedups found."""

    now: Instant = Field(description="The instant of the state.")
    policy: SpeedupPolicy = Field(description="The policy in force, defaults filled in.")
    groups: tuple[GroupSpeedup, ...] = Field(default=(), description="By group and observed type.")
    jobs: tuple[JobSpeedup, ...] = Field(default=(), description="One for every job of the state, by id.")
    undeclared: tuple[UndeclaredSpeedup, ...] = Field(
        default=(), description="Estimates for types that jobs leave out, by job and type."
    )
    refuted: tuple[RefutedResume, ...] = Field(
        default=(), description="Jobs whose claim to be resumable does not hold, by id."
    )
    hints: tuple[ProfileHint, ...] = Field(default=(), description="What should be measured, by group.")
    gains: tuple[MisreportGain, ...] = Field(
        default=(), description="What flagged groups gain under each objective; empty: not computed."
    )
    left_out: tuple[Id, ...] = Field(default=(), description="Ids of observed jobs that nobody knows.")
