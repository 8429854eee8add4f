"""The state of the cluster at one instant: the whole input of a round but the policy."""

from __future__ import annotations

from pydantic import Field, ModelWrapValidatorHandler, ValidationError, ValidationInfo, model_validator

from evenhand_models.checks import Draft, draft_errors, entry_errors
from evenhand_models.errors import FieldError, InvalidInput
from evenhand_models.groups import Group, Usage
from evenhand_models.hardware import GpuType, Node
from evenhand_models.jobs import SAY_TOGETHER, Job, job_errors
from evenhand_models.many import read_many
from evenhand_models.policy import Policy
from evenhand_models.quantities import CHECKS_DEFERRED, Instant, WireModel


class ClusterState(WireModel):
    """GPU types, nodes, the organisation tree, its usage and all jobs, at one instant.

    Raises
    ------
    InvalidInput
        If parts contradict each other: duplicate ids, cycles in the tree, more GPUs placed on a node than
        it has, instants in the future. All contradictions are listed, with pointers relative to the state.
    """

    now: Instant = Field(description="The instant of the decision.")
    gpu_types: tuple[GpuType, ...] = Field(description="The types of GPU in the cluster.")
    nodes: tuple[Node, ...] = Field(description="The nodes of the cluster, up or not.")
    groups: tuple[Group, ...] = Field(description="The organisation tree, any depth, in any order.")
    usage: tuple[Usage, ...] | None = Field(
        default=None,
        description="What each group used inside the window; unset: the service uses its ledger, the library takes 0.",
    )
    jobs: tuple[Job, ...] = Field(description="All jobs that wait, run or are on their way out.")

    @model_validator(mode="wrap")
    @classmethod
    def _refuse_contradictions(
        cls, value: object, read: ModelWrapValidatorHandler[ClusterState], info: ValidationInfo
    ) -> ClusterState:
        if info.context is CHECKS_DEFERRED or isinstance(value, cls):
            return read(value)
        try:
            state = _read_at_once(value, read)
        except InvalidInput:  # one entry contradicts itself: read on, so that all that is wrong is said
            errors = check_state(cls.model_validate(value, context=CHECKS_DEFERRED))
            raise InvalidInput(errors) from None
        if errors := draft_errors(_draft(state)):
            raise InvalidInput(errors)
        return state


def _read_at_once(value: object, read: ModelWrapValidatorHandler[ClusterState]) -> ClusterState:
    """Read a state, all its jobs at once if nothing is wrong with any of them."""
    if not isinstance(value, dict):
        return read(value)
    jobs = read_many(Job, value.get("jobs"))
    if jobs is None or any(job_errors(job) for job in jobs if not job.__pydantic_fields_set__.isdisjoint(SAY_TOGETHER)):
        return read(value)
    try:
        state = read({**value, "jobs": []})
    except ValidationError:  # the model has to see the jobs too to say all that is wrong
        return read(value)
    state.__dict__["jobs"] = jobs  # before anybody has seen it
    return state


def _draft(state: ClusterState, max_protection_s: int | None = None) -> Draft:
    """Lay the lists of a state out for the checks."""
    return Draft(
        now=state.now,
        gpu_types=list(enumerate(state.gpu_types)),
        nodes=list(enumerate(state.nodes)),
        groups=list(enumerate(state.groups)),
        usage=list(enumerate(state.usage or ())),
        jobs=list(enumerate(state.jobs)),
        max_protection_s=max_protection_s,
    )


def check_state(state: ClusterState, policy: Policy | None = None) -> tuple[FieldError, ...]:
    """Say everything in which a state contradicts itself: inside an entry or between entries.

    Parameters
    ----------
    state : ClusterState
        The state; pointers of the answer are relative to it.
    policy : Policy, optional
        If given, contracts of pending jobs are held against its `max_protection_s` too.

    Returns
    -------
    tuple of FieldError
        Empty if nothing is wrong; else all errors, in the order of the document.
    """
    draft = _draft(state, None if policy is None else policy.max_protection_s)
    return entry_errors(draft) + draft_errors(draft)
