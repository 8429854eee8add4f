"""What the cluster is made of: GPU types, nodes, and which GPUs of which node a job holds."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from pydantic import Field, ValidationInfo, model_validator

from evenhand_models.errors import FieldError, InvalidInput
from evenhand_models.quantities import (
    CHECKS_DEFERRED,
    Factor,
    GangSize,
    GpuCount,
    Id,
    Instant,
    Labels,
    WireModel,
)


class NodeStatus(StrEnum):
    """Whether a node runs and takes work."""

    UP = "up"
    """Runs what it has and takes new work."""
    CORDONED = "cordoned"
    """Runs what it has, takes nothing new."""
    DOWN = "down"
    """Runs nothing."""


class GpuType(WireModel):
    """A kind of GPU and what an hour on it is charged."""

    name: Id = Field(description="Unique name of the type, for example h100.")
    charge_rate: Factor = Field(default=1.0, description="Charged GPU-hours per GPU-hour held, above 0.")
    memory_gib: Factor | None = Field(default=None, description="Memory of one GPU in GiB; unset: unknown.")


class Node(WireModel):
    """One machine with GPUs of one type.

    Raises
    ------
    InvalidInput
        If the broken and the foreign GPUs together are more than it has.
    """

    name: Id = Field(description="Unique name of the node.")
    gpu_type: Id = Field(description="Name of the type of its GPUs, one of gpu_types.")
    gpus: GpuCount = Field(description="GPUs installed in the node.")
    unavailable_gpus: GpuCount = Field(default=0, description="GPUs of it that are broken.")
    foreign_gpus: GpuCount = Field(default=0, description="GPUs of it held by work that is not ours.")
    status: NodeStatus = Field(
        default=NodeStatus.UP,
        description="up; cordoned: runs what it has, takes nothing new; down: runs nothing.",
    )
    down_since_at: Instant | None = Field(
        default=None, description="Since when it is down: from then on nothing on it is charged."
    )
    available_until_at: Instant | None = Field(
        default=None,
        description="Start of maintenance: nothing may be expected to run past it; unset: none planned.",
    )
    labels: Labels = Field(default_factory=dict, description="Labels of the node, by key.")

    @property
    def usable_gpus(self) -> int:
        """GPUs of it our jobs could hold were it up: installed, less broken, less foreign."""
        return self.gpus - self.unavailable_gpus - self.foreign_gpus

    @model_validator(mode="after")
    def _refuse_contradictions(self, info: ValidationInfo) -> Self:
        if info.context is not CHECKS_DEFERRED and (errors := node_errors(self)):
            raise InvalidInput(errors)
        return self


class Placement(WireModel):
    """Some GPUs of one node."""

    node: Id = Field(description="Name of the node; one that is no longer listed counts as lost.")
    gpus: GangSize = Field(description="GPUs held on that node.")


def node_errors(node: Node) -> list[FieldError]:
    """Say what contradicts itself inside one node; pointers are relative to the node."""
    if node.unavailable_gpus + node.foreign_gpus <= node.gpus:
        return []
    return [
        FieldError(
            "/gpus",
            f"node {node.name!r} has {node.gpus} gpus, fewer than its "
            f"{node.unavailable_gpus} unavailable_gpus and {node.foreign_gpus} foreign_gpus together.",
        )
    ]
