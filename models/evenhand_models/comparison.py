"""What each objective would make of one state: the price of fairness, side by side."""

from __future__ import annotations

from pydantic import Field

from evenhand_models.policy import Objective, ThroughputUnit
from evenhand_models.quantities import Flag, GpusByType, Id, Instant, Number, WireModel


class Owed(WireModel):
    """What a group with work of its own is owed, whatever the objective."""

    group: Id = Field(description="Id of the group.")
    entitled_gpus: Number = Field(description="What its own jobs are owed this round, in charged GPUs.")
    slice: GpusByType = Field(default_factory=dict, description="Its part of the GPUs of each type by entitlement.")
    floor: Number = Field(description="Throughput of its slice.")


class GroupOutcome(WireModel):
    """What a group gets under one objective, in fractions of GPUs."""

    group: Id = Field(description="Id of the group.")
    gpus: GpusByType = Field(default_factory=dict, description="GPUs by type.")
    throughput: Number = Field(description="Throughput that its jobs can draw from them.")
    sharing_incentive: Number | None = Field(
        default=None, description="Value of its GPUs over its floor, 1 or more is good; unset: the floor is 0."
    )
    max_envy: Number = Field(
        default=0.0,
        description="Most it would gain from another's GPUs scaled to its own entitlement, as a share of its floor.",
    )


class ObjectiveOutcome(WireModel):
    """The fractional division of the GPUs by one objective, and how fair it is."""

    objective: Objective = Field(description="The objective.")
    proven: Flag = Field(description="Whether the division is proven best by the objective.")
    throughput: Number = Field(description="Throughput that the groups' jobs can draw from their GPUs.")
    value: Number = Field(description="Sum of what its GPUs are worth to each group, which is what objectives weigh.")
    over_equal_split: Number | None = Field(
        default=None, description="Throughput over that of fair_share, the equal split; unset: that is 0."
    )
    least_sharing_incentive: Number | None = Field(
        default=None, description="Least of the groups' sharing incentives; unset: no group has a floor."
    )
    least_served: Id | None = Field(default=None, description="The group that has it.")
    max_envy: Number = Field(description="Largest envy of any pair, as a share of the envier's floor; 0: envy-free.")
    pareto_gap: Number | None = Field(
        default=None,
        description="No division brings more than this share of value above it with no group worse off; unset: unknown.",
    )
    idle: GpusByType = Field(default_factory=dict, description="GPUs by type that nobody is given.")
    idle_gpus: Number = Field(description="GPUs of all types that nobody is given.")
    groups: tuple[GroupOutcome, ...] = Field(description="What every group gets, by id.")


class ObjectiveComparison(WireModel):
    """All objectives on one state, at the same entitlements."""

    now: Instant = Field(description="The instant of the state.")
    throughput_unit: ThroughputUnit = Field(description="What throughput is counted in.")
    capacity: GpusByType = Field(description="Usable GPUs by type.")
    owed: tuple[Owed, ...] = Field(description="What every group is owed, by id.")
    equal_split: Number = Field(description="Sum of the floors: every type split by entitlement.")
    upper_bound: Number = Field(description="No division of these GPUs brings more throughput.")
    objectives: tuple[ObjectiveOutcome, ...] = Field(description="One outcome for every objective.")

    def outcome(self, objective: Objective) -> ObjectiveOutcome:
        """Return what one objective makes of the state."""
        return next(o for o in self.objectives if o.objective is objective)
