"""What the stateful doors answer, for the service's description; tests hold the answers against it."""

from __future__ import annotations

from pydantic import Field

from evenhand_api.ledger.words import ClusterConfig
from evenhand_models import Assignment, CertificateStatus, GroupReport, Node, Plan
from evenhand_models.quantities import Count, Flag, Fraction, Id, Instant, Number, Text, TotalGpus, WireModel


class ClusterVersions(WireModel):
    """The versions of a cluster after a configuration was written."""

    cluster: Id = Field(description="Name of the cluster.")
    config_version: Count = Field(description="Version of its configuration.")
    state_version: Count = Field(description="Version the next round may rest on.")


class ClusterList(WireModel):
    """All clusters."""

    clusters: tuple[Id, ...] = Field(description="Their names, in order.")


class ClusterStanding(WireModel):
    """How a cluster stands."""

    cluster: Id = Field(description="Name of the cluster.")
    state_version: Count = Field(description="Version the next round may rest on.")
    config_version: Count = Field(description="Version of its configuration.")
    last_round: Count = Field(description="Number of its last round; 0: none yet.")
    last_now: Instant | None = Field(description="Instant of its last round; null: none yet.")
    config: ClusterConfig = Field(description="The configuration in force.")
    nodes: tuple[Node, ...] = Field(description="Its nodes as rounds have left them.")


class RoundAnswer(WireModel):
    """A round that was decided."""

    cluster: Id = Field(description="Name of the cluster.")
    round: Count = Field(description="Number of the round, the first is 1.")
    state_version: Count = Field(description="Version the next round may rest on.")
    plan: Plan = Field(description="The plan.")


class RoundLine(WireModel):
    """A round in a list."""

    round: Count = Field(description="Number of the round.")
    now: Instant = Field(description="Instant of its decision.")
    state_version: Count = Field(description="Version it made.")
    config_version: Count = Field(description="Configuration it was decided by.")
    state_hash: Text = Field(description="SHA-256 of its state.")
    plan_hash: Text = Field(description="SHA-256 of its plan.")
    status: CertificateStatus = Field(description="optimal, feasible or fallback.")


class RoundList(WireModel):
    """Rounds, the latest first."""

    cluster: Id = Field(description="Name of the cluster.")
    rounds: tuple[RoundLine, ...] = Field(description="The rounds.")


class EventsRecorded(WireModel):
    """Events that were recorded, those that were known among them."""

    cluster: Id = Field(description="Name of the cluster.")
    recorded: Count = Field(description="How many events the request held.")


class Adjustment(WireModel):
    """An adjustment as it is kept."""

    cluster: Id = Field(description="Name of the cluster.")
    adjustment: Count = Field(description="Its number.")
    group: Id = Field(description="Id of the group.")
    charged_gpu_hours: Number = Field(description="Charged GPU-hours added; negative: taken off.")
    at: Instant = Field(description="The instant at which it counts.")
    reason: Text = Field(description="Why.")
    author: Id = Field(description="Who decided it.")


class Decided(WireModel):
    """What a round answered about a job."""

    round: Count = Field(description="Number of the round.")
    now: Instant = Field(description="Instant of its decision.")
    assignment: Assignment = Field(description="What was to happen to the job, and why.")


class JobExplanation(WireModel):
    """Why a job runs, waits or was stopped."""

    cluster: Id = Field(description="Name of the cluster.")
    job: Id = Field(description="Id of the job.")
    group: Id = Field(description="Its group, as the last round that listed it said.")
    user: Id | None = Field(description="Who submitted it; null: unknown.")
    listed: Flag = Field(description="Whether the latest round listed it.")
    latest: Decided | None = Field(description="The last answer it got; null: that round is no longer kept.")
    changes: tuple[Decided, ...] = Field(
        description="Every start, move, resize and preemption, and the first time it was infeasible, in order."
    )


class GroupStanding(WireModel):
    """One group: what it used, and how the last round treated it."""

    group: Id = Field(description="Id of the group.")
    parent: Id | None = Field(description="Group above it; null: at the top.")
    share: Number = Field(description="Its weight among its siblings.")
    own_usage_gpu_hours: Number = Field(description="Charged GPU-hours its own jobs used, as the policy remembers.")
    usage_gpu_hours: Number = Field(description="The same with all groups below it.")
    last_round: GroupReport | None = Field(description="Its report in the last round; null: it was not in it.")


class Groups(WireModel):
    """All groups."""

    cluster: Id = Field(description="Name of the cluster.")
    at: Instant = Field(description="The instant up to which usage counts.")
    round: Count = Field(description="Number of the last round.")
    groups: tuple[GroupStanding, ...] = Field(description="The groups of the tree, in the order of their ids.")


class OwedHour(WireModel):
    """One group in one hour; inner groups with all below them."""

    hour_at: Instant = Field(description="Begin of the hour.")
    group: Id = Field(description="Id of the group.")
    demand_gpu_hours: Number = Field(description="What its jobs could have held.")
    due_gpu_hours: Number = Field(description="Its product of shares of the capacity.")
    owed_gpu_hours: Number = Field(description="The lesser of both; nothing is redistributed.")
    received_gpu_hours: Number = Field(description="What its charged work held.")


class Delivered(WireModel):
    """Owed and received over a period."""

    owed_gpu_hours: Number = Field(description="Sum of what was owed, hour by hour.")
    received_gpu_hours: Number = Field(description="Sum of what was received.")
    delivered_over_the_period: Fraction | None = Field(
        description="Received, at most owed, over owed: being paid back later counts; null: nothing was owed."
    )
    delivered_in_the_hour: Fraction | None = Field(
        description="The same hour by hour: being paid back later does not count; null: nothing was owed."
    )


class GroupDelivered(Delivered):
    """Owed and received of one group."""

    group: Id = Field(description="Id of the group.")


class OwedReceived(WireModel):
    """What groups were owed and what they received, in charged GPU-hours."""

    cluster: Id = Field(description="Name of the cluster.")
    from_at: Instant = Field(description="Begin of the period; its whole hour counts.")
    to_at: Instant = Field(description="End of the period.")
    hours: tuple[OwedHour, ...] = Field(description="By hour and group.")
    groups: tuple[GroupDelivered, ...] = Field(description="By group.")
    all_leaves: Delivered = Field(description="All groups that have no child groups, together.")


class HeldNow(WireModel):
    """What a group holds of one type, and how much of it its jobs report to use."""

    group: Id = Field(description="Id of the group the jobs name.")
    gpu_type: Text = Field(description="Name of the type; empty: of nodes that are gone.")
    held_gpus: TotalGpus = Field(description="GPUs held.")
    reported_gpus: TotalGpus = Field(description="Those of them whose jobs report a utilization.")
    used_gpus: Number = Field(description="GPUs in use by that report: GPUs x utilization.")
    utilization: Fraction | None = Field(description="used_gpus over reported_gpus; null: none reports.")


class IdleJob(WireModel):
    """A job that holds GPUs and reports to use 5 % of them or less."""

    job: Id = Field(description="Id of the job.")
    group: Id = Field(description="Its group.")
    user: Id | None = Field(description="Who submitted it; null: unknown.")
    gpus: TotalGpus = Field(description="GPUs it holds.")
    utilization: Fraction = Field(description="What it reports to use of them since its start.")
    since_at: Instant = Field(description="Its start.")


class HeldOver(WireModel):
    """GPU-hours held over a period."""

    group: Text = Field(description="Id of the group; empty: of jobs whose group was never known.")
    gpu_type: Text = Field(description="Name of the type.")
    charged: Flag = Field(description="Whether it was charged, or unallocated use.")
    gpu_hours: Number = Field(description="GPU-hours held.")


class Occupancy(WireModel):
    """Held against used. Reported only: nothing is decided by it."""

    cluster: Id = Field(description="Name of the cluster.")
    round: Count = Field(description="Number of the round that groups and idle are from.")
    groups: tuple[HeldNow, ...] = Field(description="By group and type, in the last round.")
    idle: tuple[IdleJob, ...] = Field(description="Jobs that hold GPUs idle, the largest first, at most 1,000.")
    from_at: Instant = Field(description="Begin of the period of held; its whole hour counts.")
    to_at: Instant = Field(description="End of the period.")
    held: tuple[HeldOver, ...] = Field(description="GPU-hours held by group, type and charge over the period.")


class GroupCharge(WireModel):
    """What a group was charged."""

    group: Id = Field(description="Id of the group.")
    charged_gpu_hours: Number = Field(
        description="Charged GPU-hours, own use only, adjustments included: below 0 where they took off more."
    )


class UsageReport(WireModel):
    """What every group was charged over a period, exactly."""

    cluster: Id = Field(description="Name of the cluster.")
    from_at: Instant = Field(description="Begin of the period.")
    to_at: Instant = Field(description="End of the period, not included.")
    groups: tuple[GroupCharge, ...] = Field(description="By group; those without any are left out.")
