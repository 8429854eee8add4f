"""What the stateful service takes: a cluster's configuration, rounds, events, adjustments. Strict like the wire contract."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field, Strict, StringConstraints, TypeAdapter, ValidationError

from evenhand_api.ledger.kinds import EventKind
from evenhand_models import FieldError, GpuType, Group, Job, Node, Placement, Policy
from evenhand_models.checks import Draft, draft_errors, entry_errors
from evenhand_models.jobs import Placements
from evenhand_models.observations import Observation
from evenhand_models.quantities import Count, Id, Instant, Number, Seconds, WireModel
from evenhand_models.tree import check_tree

Sentence = Annotated[str, Strict(), StringConstraints(min_length=1, max_length=2_000)]
"""Words for people, at least one."""
MAX_EVENTS = 10_000
"""Most events in one request."""


class ClusterConfig(WireModel):
    """What a cluster is made of and decided by: types, nodes, organisation tree, policy."""

    gpu_types: tuple[GpuType, ...] = Field(description="The types of GPU in the cluster.")
    nodes: tuple[Node, ...] = Field(description="The nodes as they are now; rounds say what changes.")
    groups: tuple[Group, ...] = Field(description="The organisation tree, any depth, in any order.")
    policy: Policy | None = Field(default=None, description="The policy of its rounds; unset: all defaults.")


class RoundRequest(WireModel):
    """A round to decide: all jobs as they are now, and what changed of the nodes."""

    now: Instant = Field(description="The instant of the decision, not before that of the last round.")
    jobs: tuple[Job, ...] = Field(description="All jobs that wait, run or are on their way out.")
    nodes: tuple[Node, ...] = Field(
        default=(), description="Nodes that changed or are new, whole; they stay so until said otherwise."
    )
    gone_nodes: tuple[Id, ...] = Field(default=(), description="Names of nodes that are no longer there.")
    state_version: Count | None = Field(
        default=None,
        description="The cluster's state_version this request rests on: 409 if there is a newer one; "
        "unset: whatever it is.",
    )


class Event(WireModel):
    """Something that happened to a job or a node, at an instant. Order and repetition do no harm."""

    kind: EventKind = Field(description="started, resized, ended, node_down or node_up.")
    at: Instant = Field(description="When it happened; for started this is the job's started_at.")
    job: Id | None = Field(default=None, description="Id of the job; of started, resized and ended.")
    node: Id | None = Field(default=None, description="Name of the node; of node_down and node_up.")
    started_at: Instant | None = Field(
        default=None,
        description="Which start of the job is meant; of resized, and of ended, where unset means the last one before.",
    )
    placement: Placements = Field(default=(), description="GPUs it holds from then on; of started and resized.")
    group: Id | None = Field(default=None, description="Its group; needed if no round has listed the job yet.")
    user: Id | None = Field(default=None, description="Who submitted it; unset: as the last round said.")
    min_runtime_s: Seconds | None = Field(
        default=None, description="Its contract, 0: unallocated use; unset: as the last round said, else 0."
    )


class EventBatch(WireModel):
    """Events, any number of them, in any order; all are recorded or none is."""

    events: Annotated[tuple[Event, ...], Field(max_length=MAX_EVENTS)] = Field(description="What happened.")


class ObservationBatch(WireModel):
    """What was measured of jobs, for the audit of speedups."""

    observations: Annotated[tuple[Observation, ...], Field(max_length=MAX_EVENTS)] = Field(
        description="What was measured, in any order."
    )


class AdjustmentRequest(WireModel):
    """Charge added to a group or taken off it, with a reason, kept for good."""

    group: Id = Field(description="Id of the group.")
    charged_gpu_hours: Number = Field(description="Charged GPU-hours to add; negative: to take off.")
    reason: Sentence = Field(description="Why.")
    author: Id = Field(description="Who decided it.")
    at: Instant | None = Field(
        default=None, description="The instant at which it counts; unset: that of the last round."
    )


def instant_of(text: str) -> datetime:
    """Read an instant as the wire contract writes it.

    Raises
    ------
    ValueError
        If it is none; says what one looks like.
    """
    try:
        return _instants.validate_python(text)
    except ValidationError as refused:
        raise ValueError(refused.errors()[0]["msg"].removeprefix("Value error, ")) from None


_instants: TypeAdapter[datetime] = TypeAdapter(Instant)


def config_errors(config: ClusterConfig) -> list[FieldError]:
    """Say everything in which a configuration contradicts itself; pointers are relative to it."""
    draft = Draft(
        now=None,
        gpu_types=list(enumerate(config.gpu_types)),
        nodes=list(enumerate(config.nodes)),
        groups=list(enumerate(config.groups)),
        usage=[],
        jobs=[],
    )
    found = [*entry_errors(draft), *draft_errors(draft), *check_tree(config.groups, config.nodes)]
    return list(dict.fromkeys(found))


_NEEDS = {
    EventKind.STARTED: ("job", "placement"),
    EventKind.RESIZED: ("job", "placement", "started_at"),
    EventKind.ENDED: ("job",),
    EventKind.NODE_DOWN: ("node",),
    EventKind.NODE_UP: ("node",),
}
_MAY = {
    EventKind.STARTED: ("group", "user", "min_runtime_s"),
    EventKind.RESIZED: ("group", "user", "min_runtime_s"),
    EventKind.ENDED: ("started_at",),
}


def event_errors(event: Event) -> list[FieldError]:
    """Say what contradicts itself inside one event; pointers are relative to the event."""
    needs = _NEEDS[event.kind]
    allowed = {"kind", "at", *needs, *_MAY.get(event.kind, ())}
    given = {name for name in type(event).model_fields if getattr(event, name) not in (None, ())}
    errors = [FieldError(f"/{name}", f"{event.kind} needs {name}.") for name in needs if name not in given]
    errors += [FieldError(f"/{name}", f"{event.kind} has no {name}.") for name in sorted(given - allowed)]
    if event.started_at is not None and event.at < event.started_at:
        errors.append(FieldError("/at", f"job {event.job!r} cannot be {event.kind} before its started_at."))
    return errors + _placement_errors(event.placement)


def _placement_errors(placement: tuple[Placement, ...]) -> list[FieldError]:
    nodes = [part.node for part in placement]
    if len(set(nodes)) == len(nodes):
        return []
    return [FieldError("/placement", "a node stands more than once in the placement.")]
