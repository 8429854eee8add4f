"""What the audit of declared speedups found (rules V)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field, Strict

from evenhand_models.policy import Objective
from evenhand_models.quantities import Amount, Count, Flag, Fraction, Id, Instant, Number, Speedups, Text, WireModel
from evenhand_models.speedup_policy import SpeedupPolicy

Speedup = Annotated[float, Strict(), Field(ge=0, le=1e30, allow_inf_nan=False)]
"""Throughput of one GPU on the scale of what a job declares."""


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
    speedup: Speedup = Field(
        description="Throughput of one GPU there, estimated, on the scale of what the job declares."
    )
    low: Speedup = Field(description="Low end of its interval.")
    high: Speedup = Field(description="High end of its interval.")
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
    SCATTERED = "scattered"
    """Observations scatter far more than honest work does: much can hide under that."""


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
    honest: Amount = Field(
        description="Throughput of its fair target by true speedups, in GPUs of the round policy's throughput_unit."
    )
    declared: Amount = Field(
        description="Throughput, by true speedups and in the same unit, of its fair target by declared ones."
    )
    gain: Number | None = Field(
        default=None, description="declared over honest less 1, a share; below 0 it loses; unset: honest is 0."
    )
    others: Number | None = Field(
        default=None, description="The same share for all other groups together; unset: they have nothing."
    )


class LeftOutCode(StrEnum):
    """Why observations were not used."""

    UNKNOWN_JOB = "unknown_job"
    """Nobody knows what the job declared."""
    UNKNOWN_TYPE = "unknown_type"
    """The type is neither in gpu_types nor declared by the job."""
    REPEATED = "repeated"
    """The same observation is there already, its end included."""
    TOO_SHORT = "too_short"
    """Shorter than shortest_observation_s."""
    NO_WORK = "no_work"
    """No work was done: nothing to take a ratio of."""


class LeftOut(WireModel):
    """Observations that say nothing about speedups, and why."""

    code: LeftOutCode = Field(description="Why, from a closed list.")
    observations: Count = Field(description="How many.")
    names: tuple[Id, ...] = Field(description="Ids of their jobs; for unknown_type: names of the types.")


class SpeedupReport(WireModel):
    """What the audit of declared speedups found."""

    now: Instant = Field(description="The instant of the state.")
    policy: SpeedupPolicy = Field(description="The policy in force, defaults filled in.")
    groups: tuple[GroupSpeedup, ...] = Field(
        default=(), description="What groups declare against what was observed, by group and type."
    )
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
    gains_left_out: Count = Field(
        default=0, description="Groups that declare wrongly and whose gains were not measured: policy.most_gains."
    )
    left_out: tuple[LeftOut, ...] = Field(default=(), description="What was not used of the observations, by code.")
