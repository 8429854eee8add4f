"""What if this job came now: the question, and an answer that reserves nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from enum import StrEnum

from pydantic import Field

from evenhand_models.checks import protection_errors
from evenhand_models.cluster import ClusterState
from evenhand_models.errors import FieldError, InvalidInput
from evenhand_models.jobs import Job, Placements, job_errors
from evenhand_models.parse import field_errors, read_model, request_errors
from evenhand_models.plan import Action
from evenhand_models.policy import Policy
from evenhand_models.quantities import CHECKS_DEFERRED, Flag, GpuCount, Id, Instant, Text, WholeNumber, WireModel
from evenhand_models.reasons import Reason

_NOT_SAID = datetime(1970, 1, 1, tzinfo=UTC)


class AddedJob(Job):
    """A job that does not exist; it is pending and, unless it says otherwise, submitted now."""

    submitted_at: Instant = Field(
        default_factory=lambda: _NOT_SAID, description="When it is submitted; left out: now, the state's."
    )


class StartBasis(StrEnum):
    """What the latest start rests on."""

    NOW = "now"
    """It starts in this very round."""
    CALENDAR = "calendar"
    """The plan's calendar gives it a date."""
    CONTRACTS = "contracts"
    """Ends of protection alone: no job is assumed to end by itself."""
    EXPECTED_ENDS = "expected_ends"
    """Ends of protection, and jobs that end when they are expected to."""


class WhatIfStartRequest(WireModel):
    """A state, the policy to decide by, and jobs that do not exist."""

    state: ClusterState = Field(description="The state of the cluster; it is not changed.")
    policy: Policy | None = Field(default=None, description="The policy to decide by; unset: all defaults.")
    add: tuple[AddedJob, ...] = Field(
        min_length=1, max_length=100, description="The jobs that might come, all at once."
    )


class GoingJob(WireModel):
    """A job that makes room."""

    job: Id = Field(description="Id of the job.")
    group: Id = Field(description="Its group.")
    gpus: GpuCount = Field(description="GPUs it holds before.")
    action: Action = Field(description="preempt, migrate, resize; keep: it is on its way out already.")
    requeue: Flag | None = Field(default=None, description="Whether a preempted job waits again.")
    reasons: tuple[Reason, ...] = Field(default=(), description="Why it goes, as its own record would say.")


class StartForecast(WireModel):
    """When one added job would start, and who would go."""

    job: Id = Field(description="Id of the added job.")
    action: Action = Field(description="What this round would do with it: start, wait or infeasible.")
    earliest_start_at: Instant | None = Field(
        default=None, description="No earlier start is possible, as far as is known; unset: unknown or never."
    )
    latest_start_at: Instant | None = Field(
        default=None, description="It starts by then if no other job comes and no node is lost; unset: unknown."
    )
    basis: StartBasis | None = Field(default=None, description="What latest_start_at rests on; unset: there is none.")
    gpus: GpuCount = Field(default=0, description="GPUs it would start on; 0: no start is foreseen.")
    gpu_type: Id | None = Field(default=None, description="Their type; unset: no start is foreseen.")
    placement: Placements = Field(default=(), description="Where they are, in the round that starts it.")
    would_go: tuple[GoingJob, ...] = Field(default=(), description="Jobs that make room for it, by id.")
    reasons: tuple[Reason, ...] = Field(
        default=(), description="Why this round starts it or not, the main cause first."
    )
    cheapest_change: Text | None = Field(default=None, description="The smallest change that would start it now.")
    summary: Text = Field(description="The answer in a sentence or two.")


class ChangedJob(WireModel):
    """A job of the state that this round would treat otherwise."""

    job: Id = Field(description="Id of the job.")
    group: Id = Field(description="Its group.")
    without: Action = Field(description="What happens to it if the jobs do not come.")
    with_added: Action = Field(description="What happens to it if they do.")


class WhatIfStart(WireModel):
    """The answer: a forecast, no reservation; the state is as it was."""

    now: Instant = Field(description="The instant the question is about.")
    reservation: Flag = Field(default=False, description="Always false: nothing is held for the jobs.")
    note: Text = Field(description="What the answer assumes.")
    state_hash: Text = Field(description="SHA-256 of the canonical state: before and after, it did not change.")
    jobs: tuple[StartForecast, ...] = Field(description="One for each added job, by id.")
    changes: tuple[ChangedJob, ...] = Field(
        default=(),
        description="If an added job starts at once: jobs of the state that this round would treat otherwise, by id; "
        "among them may be jobs that merely swap places with their like.",
    )
    rounds: WholeNumber = Field(description="Rounds that were decided to answer.")


def parse_whatif_start(body: bytes) -> WhatIfStartRequest:
    """Read the body of a what-if request, ``{"state": ..., "add": [...], "policy"?: ...}``.

    Raises
    ------
    InvalidInput
        If anything is wrong with it; pointers are relative to the body.
    """
    request = read_model(body, WhatIfStartRequest, _errors)
    cap_s = (request.policy or Policy()).max_protection_s
    errors = [error.under("/state") for error in protection_errors(enumerate(request.state.jobs), cap_s)]
    if errors := errors + added_errors(request.state, enumerate(request.add), cap_s):
        raise InvalidInput(errors)
    return request


def _errors(document: object) -> list[FieldError]:
    """Say all that is wrong with a what-if request: its state and policy, then the added jobs."""
    errors = request_errors(document, WhatIfStartRequest)
    if not isinstance(document, dict) or not isinstance(document.get("add"), list):
        return errors
    whole = enumerate(document["add"])
    added = [
        (i, AddedJob.model_validate(raw, context=CHECKS_DEFERRED))
        for i, raw in whole
        if not field_errors(raw, AddedJob)
    ]
    for i, job in added:
        errors += [error.under(f"/add/{i}") for error in job_errors(job)]
    state, policy = document.get("state"), document.get("policy") or {}
    if not field_errors(state, ClusterState) and not field_errors(policy, Policy):
        cap_s = Policy.model_validate(policy).max_protection_s
        errors += added_errors(ClusterState.model_validate(state, context=CHECKS_DEFERRED), added, cap_s)
    return errors


def added_errors(state: ClusterState, add: Iterable[tuple[int, Job]], cap_s: int) -> list[FieldError]:
    """Say why jobs, each with its place in the list, cannot be added to a state; pointers are ``/add/...``."""
    taken = {job.id for job in state.jobs}
    errors = []
    for i, job in add:
        if job.holds_gpus:
            errors.append(FieldError(f"/add/{i}/state", f"job {job.id!r} is {job.state}, but an added job waits."))
        if job.id in taken:
            errors.append(FieldError(f"/add/{i}/id", f"the id {job.id!r} is taken; an added job needs one of its own."))
        taken.add(job.id)
        if job.submitted_at > state.now:
            message = f"job {job.id!r} is submitted after the state's now; leave submitted_at out for now."
            errors.append(FieldError(f"/add/{i}/submitted_at", message))
        if job.contract.min_runtime_s > cap_s:
            asked = f"job {job.id!r} asks for {job.contract.min_runtime_s} s of protection"
            message = f"{asked}, above the policy's max_protection_s of {cap_s} s."
            errors.append(FieldError(f"/add/{i}/contract/min_runtime_s", message))
    return errors


def as_jobs(state: ClusterState, add: Sequence[Job]) -> tuple[Job, ...]:
    """Turn added jobs into jobs of the state: those that do not say when they came come now."""
    return tuple(
        Job.model_construct(
            **(dict(job) | {"submitted_at": state.now if job.submitted_at == _NOT_SAID else job.submitted_at})
        )
        for job in add
    )
