"""Scenarios: what would be otherwise, laid over a cluster, its tree, the policy and a trace.

A day is 86,400 seconds from the beginning of the trace, not of a calendar; fractions are days' parts.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, Field, Strict

from evenhand_models.errors import FieldError, InvalidInput
from evenhand_models.hardware import GpuType, NodeStatus
from evenhand_models.parse import field_errors
from evenhand_models.policy import Policy
from evenhand_models.quantities import (
    Amount,
    Factor,
    Flag,
    GangSize,
    GpuCount,
    Id,
    Labels,
    Priority,
    Seconds,
    Speedups,
    Text,
    TotalGpus,
    WireModel,
)

Days = Annotated[float, Strict(), Field(ge=0, le=36_500, allow_inf_nan=False)]
"""Days since the beginning of the trace."""
Count = Annotated[int, Strict(), Field(ge=1, le=10_000)]


Stem = Annotated[str, Strict(), Field(min_length=1, max_length=200, pattern=r"^[^\u0000-\u001f\u007f]+$")]
"""The beginning of names that a number ends."""


class NodeBatch(WireModel):
    """Equal nodes that come to the cluster."""

    gpu_type: Id = Field(description="Type of their GPUs; a new one is charged 1 unless gpu_types says otherwise.")
    nodes: Count = Field(description="How many nodes.")
    gpus: GangSize = Field(default=8, description="GPUs of each.")
    labels: Labels = Field(default_factory=dict, description="Labels of each.")
    name: Stem | None = Field(
        default=None, description="Names are this, a dash and a number; left out: new- and the type."
    )
    from_day: Days = Field(default=0.0, description="When they come.")
    until_day: Days | None = Field(default=None, description="When they go; unset: never.")


class NodeLoss(WireModel):
    """Nodes that fail, are drained or are taken away for a while or for good."""

    names: tuple[Id, ...] | None = Field(default=None, description="Only nodes of these names.")
    gpu_type: Id | None = Field(default=None, description="Only nodes of this type.")
    labels: Labels = Field(default_factory=dict, description="Only nodes with these labels, for example a rack.")
    nodes: Count | None = Field(default=None, description="Only so many of them, the first by name; unset: all.")
    status: NodeStatus = Field(default=NodeStatus.DOWN, description="down, or cordoned: what runs there may go on.")
    from_day: Days = Field(default=0.0, description="When it happens.")
    until_day: Days | None = Field(default=None, description="When they are back; unset: never.")


class ClusterOverlay(WireModel):
    """Other hardware."""

    gpu_types: tuple[GpuType, ...] = Field(default=(), description="Types that are new or charged otherwise.")
    add: tuple[NodeBatch, ...] = Field(default=(), description="Nodes that come.")
    lose: tuple[NodeLoss, ...] = Field(default=(), description="Nodes that are lost or drained.")


class GroupOverlay(WireModel):
    """A group that is new, or whose fields are other; fields left out stay."""

    id: Id = Field(description="Id of the group; one that is not in the tree is new and needs a share.")
    parent: Id | None = Field(default=None, description="Group above it.")
    share: Amount | None = Field(default=None, description="Weight among its siblings.")
    guaranteed_gpus: TotalGpus | None = Field(default=None, description="GPUs it is owed first.")
    max_gpus: TotalGpus | None = Field(default=None, description="Most GPUs it and all below it may hold.")


class TreeOverlay(WireModel):
    """Another tree, from a day on."""

    groups: tuple[GroupOverlay, ...] = Field(default=(), description="Groups that are new or other.")
    remove: tuple[Id, ...] = Field(default=(), description="Groups that go, with all below them.")
    from_day: Days = Field(default=0.0, description="From when on.")


class JobChoice(WireModel):
    """Which jobs of the trace; every field that is set must fit."""

    group: Id | None = Field(default=None, description="Of this group.")
    user: Id | None = Field(default=None, description="Of this user.")
    kind: Id | None = Field(default=None, description="Of this kind.")
    gpus_from: GangSize | None = Field(default=None, description="Gangs of so many GPUs or more.")
    gpus_to: GangSize | None = Field(default=None, description="Gangs of so many GPUs or fewer.")


class JobFields(WireModel):
    """What is set in jobs; fields left out stay."""

    group: Id | None = Field(default=None, description="Group they belong to.")
    kind: Id | None = Field(default=None, description="Their kind.")
    gpus: GangSize | None = Field(default=None, description="Size of the gang.")
    gpu_types: tuple[Id, ...] | None = Field(default=None, description="Types they accept; empty: any.")
    speedup: Speedups | None = Field(default=None, description="What they declare, by type.")
    true_speedup: Speedups | None = Field(default=None, description="What is so, by type.")
    min_runtime_s: Seconds | None = Field(default=None, description="Their contract.")
    resumable: Flag | None = Field(default=None, description="Whether they go on after a preemption.")
    priority: Priority | None = Field(default=None, description="Order inside their group.")
    run_time_factor: Factor | None = Field(default=None, description="Run times times this.")


class JobOverlay(WireModel):
    """Jobs of the trace that are otherwise."""

    where: JobChoice = Field(default_factory=JobChoice, description="Which jobs; left out: all.")
    set: JobFields = Field(description="What is set in them.")


class JobStream(WireModel):
    """Jobs that come on top of the trace, at random moments that the seed decides."""

    name: Stem = Field(description="Ids are this, a dash and a number.")
    group: Id = Field(description="Group they belong to.")
    per_day: Annotated[float, Strict(), Field(ge=1e-3, le=1e6, allow_inf_nan=False)] = Field(
        description="Jobs a day, on average."
    )
    gpus: GangSize = Field(default=1, description="Size of each gang.")
    run_s: Annotated[float, Strict(), Field(ge=1, le=1e8, allow_inf_nan=False)] = Field(
        description="Mean run time in seconds."
    )
    steady: Flag = Field(default=False, description="All run run_s; else run times are exponential around it.")
    min_runtime_s: Seconds = Field(default=3_600, description="Their contract; 0: unallocated.")
    resumable: Flag = Field(default=True, description="Whether they go on after a preemption.")
    kind: Id | None = Field(default=None, description="Their kind.")
    user: Id | None = Field(default=None, description="Who submits them.")
    gpu_types: tuple[Id, ...] = Field(default=(), description="Types they accept; empty: any.")
    speedup: Speedups | None = Field(default=None, description="What they declare, by type.")
    priority: Priority = Field(default=0, description="Order inside their group.")
    from_day: Days = Field(default=0.0, description="First day.")
    until_day: Days | None = Field(default=None, description="Day on which they cease; unset: never.")


class JobsOverlay(WireModel):
    """Other jobs."""

    arrivals: Annotated[float, Strict(), Field(ge=1e-6, le=100, allow_inf_nan=False)] = Field(
        default=1.0, description="Times as many jobs: 2 doubles them, 0.5 leaves out half, by the seed."
    )
    jitter_s: GpuCount = Field(
        default=0, description="Submissions move by up to so many seconds either way, by the seed."
    )
    drop: tuple[JobChoice, ...] = Field(default=(), description="Jobs that do not come.")
    change: tuple[JobOverlay, ...] = Field(default=(), description="Jobs that are otherwise, one after the other.")
    add: tuple[JobStream, ...] = Field(default=(), description="Jobs that come on top.")


class WorldOverlay(WireModel):
    """How the replayed cluster behaves; fields left out stay."""

    checkpoint_interval_s: Annotated[int, Strict(), Field(ge=1, le=10**8)] | None = Field(
        default=None, description="Resumable jobs save their progress every so many seconds."
    )
    restart_cost_s: Seconds | None = Field(default=None, description="Run time really lost by a start.")
    full_round_s: Annotated[int, Strict(), Field(ge=1, le=10**8)] | None = Field(
        default=None, description="A round is solved in full at least so often."
    )
    round_s: Annotated[int, Strict(), Field(ge=1, le=10**8)] | None = Field(
        default=None, description="Length of a round of schedulers that work by the clock."
    )


def _policy_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """Refuse what is no field of a policy, or no value of it."""
    errors = field_errors(fields, Policy)
    if errors:
        raise ValueError("; ".join(f"{error.pointer.lstrip('/')}: {error.message.rstrip('.')}" for error in errors))
    return dict(sorted(fields.items()))


class Scenario(WireModel):
    """What would be otherwise; all parts are optional, and none set is the base."""

    name: Id = Field(description="What results are headed with.")
    description: Text = Field(default="", description="What it is about.")
    cluster: ClusterOverlay = Field(
        default_factory=ClusterOverlay, description="Nodes that come or are lost, and types."
    )
    tree: tuple[TreeOverlay, ...] = Field(default=(), description="Other trees, each from its day on.")
    policy: Annotated[dict[str, Any], AfterValidator(_policy_fields)] = Field(
        default_factory=dict, description="Fields of the policy that are other, by name."
    )
    jobs: JobsOverlay = Field(default_factory=JobsOverlay, description="Jobs that are more, fewer, other or new.")
    world: WorldOverlay = Field(default_factory=WorldOverlay, description="How the replayed cluster behaves.")


BASE = Scenario(name="base", description="The trace, the cluster and the policy as they are.")
"""Nothing is otherwise."""


def read_scenario(document: object) -> Scenario:
    """Read a scenario from what JSON or YAML held.

    Raises
    ------
    InvalidInput
        If anything is wrong with it; pointers are relative to the document.
    """
    errors = _pointed(document, field_errors(document, Scenario))
    if errors:
        raise InvalidInput(errors)
    return Scenario.model_validate(document)


def _pointed(document: object, errors: list[FieldError]) -> list[FieldError]:
    """Point at single fields of a policy, where pydantic points at the whole of it."""
    policy: Any = document.get("policy") if isinstance(document, dict) else None
    if not isinstance(policy, dict):
        return errors
    inside = [error.under("/policy") for error in field_errors(policy, Policy)]
    return [error for error in errors if error.pointer != "/policy"] + inside
