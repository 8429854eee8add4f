"""Who shares the cluster: the organisation tree and what its groups used lately."""

from __future__ import annotations

from pydantic import Field

from evenhand_models.quantities import Amount, Id, TotalGpus, WireModel


class Group(WireModel):
    """A node of the organisation tree."""

    id: Id = Field(description="Unique id of the group.")
    parent: Id | None = Field(default=None, description="Id of the group above it; unset: at the top.")
    share: Amount = Field(
        description="Weight among its siblings, 0 or more; 0: gets only what no sibling wants, as unallocated use."
    )
    guaranteed_gpus: TotalGpus | None = Field(
        default=None, description="GPUs it is owed first whenever it wants them; unset: none."
    )
    max_gpus: TotalGpus | None = Field(
        default=None, description="Most GPUs it and all groups below it may hold together; unset: no limit."
    )


class Usage(WireModel):
    """What a group used inside the window."""

    group: Id = Field(description="Id of the group.")
    charged_gpu_hours: Amount = Field(description="Charged GPU-hours inside the window, own use only: parents sum.")
