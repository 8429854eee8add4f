"""Why: the closed list of causes an assignment or a warning can name."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from evenhand_models.quantities import Id, Instant, Text, WireModel


class ReasonCode(StrEnum):
    """Why a job got the action it got."""

    # start
    ENTITLED = "entitled"
    """Its group is entitled to the GPUs."""
    GUARANTEED = "guaranteed"
    """Its group's guarantee covers the GPUs."""
    DEBUG_RUN = "debug_run"
    """A debug run: short, not resumable, on one node; owed its start at once whatever its group holds."""
    SPARE = "spare"
    """Starts above its group's entitlement, once targets are met as far as whole gangs and types allow."""
    BACKFILL = "backfill"
    """Runs on GPUs held for a waiting gang, and will be gone or out of protection by its date."""
    UNALLOCATED_FILL = "unallocated_fill"
    """Unallocated work on GPUs no allocated work wants."""
    CALENDAR_DUE = "calendar_due"
    """The date promised to it has come."""
    # keep, migrate, resize
    PROTECTED = "protected"
    """Inside its protection: stays exactly where it is."""
    BEST_USE = "best_use"
    """Past its protection, and nothing better can be done with its GPUs."""
    TERMINATING = "terminating"
    """Already on its way out; its GPUs come free when it has left."""
    BETTER_TYPE = "better_type"
    """Moves to a type that brings more."""
    DEFRAGMENT = "defragment"
    """Moves so that a gang fits."""
    NODE_LOSS = "node_loss"
    """Its node is down, gone, or has lost GPUs under it."""
    GROWN = "grown"
    """Elastic: gets more GPUs."""
    SHRUNK = "shrunk"
    """Elastic: gives GPUs back."""
    # preempt
    PREEMPTED_FOR = "preempted_for"
    """Its GPUs go to the jobs named."""
    LIMIT_LOWERED = "limit_lowered"
    """Its group holds more than its max_gpus, which was lowered."""
    # wait
    CAPACITY = "capacity"
    """Not enough free GPUs of any type it can use."""
    FRAGMENTATION = "fragmentation"
    """Enough free GPUs, but not together on nodes as the gang needs them."""
    PROTECTED_WORK = "protected_work"
    """The GPUs it could use are under protection; names the jobs and the first unlock."""
    GROUP_OVER_ENTITLEMENT = "group_over_entitlement"
    """Its group already holds what it is entitled to, and others want the rest."""
    GROUP_LIMIT = "group_limit"
    """Its group's max_gpus, or that of a group above it, is reached."""
    LOWER_RANK = "lower_rank"
    """Groups with a better standing come first."""
    PRIORITY = "priority"
    """Jobs of its own group come first, by priority, then age."""
    HELD_FOR_GANG = "held_for_gang"
    """The free GPUs are held for a gang with a promised date."""
    RESERVED_ENDING = "reserved_ending"
    """GPUs it needs end by themselves within the restart cost: cheaper to wait than to preempt."""
    NOT_WORTH_MOVING = "not_worth_moving"
    """What would have to stop or move costs more than its start brings."""
    NODE_DRAINED = "node_drained"
    """Nodes it could use are cordoned."""
    NODE_DOWN = "node_down"
    """Nodes it could use are down."""
    MAINTENANCE = "maintenance"
    """Nodes it could use go into maintenance before its contract would end."""
    FOREIGN_GPUS = "foreign_gpus"
    """GPUs it could use are held by work that is not ours."""
    BROKEN_GPUS = "broken_gpus"
    """GPUs it could use are broken."""
    TIME_LIMIT = "time_limit"
    """The round's time was up before better was found."""
    # infeasible
    NO_SUCH_TYPE = "no_such_type"
    """None of the types it can use is in the cluster."""
    ZERO_SPEEDUP = "zero_speedup"
    """It says it can run on no type at all."""
    GANG_TOO_LARGE = "gang_too_large"
    """No type has so many GPUs in nodes of the shape it needs; says the largest size that would do."""
    REQUIRES_UNMATCHED = "requires_unmatched"
    """No node carries the labels it requires."""
    SAME_UNMATCHED = "same_unmatched"
    """No set of nodes sharing the label is large enough."""
    LIMIT_NEVER = "limit_never"
    """The gang is larger than its group's max_gpus, or that of a group above it."""
    UNKNOWN_GROUP = "unknown_group"
    """Its group is not in the tree."""
    # odd input
    STARTED_AT_CLAMPED = "started_at_clamped"
    """Its start lay in the future by less than the tolerated clock error and was read as now."""
    CONTRACT_CUT = "contract_cut"
    """Its contract is longer than max_protection_s and was cut."""


class Reason(WireModel):
    """One cause, in one sentence with its numbers."""

    code: ReasonCode = Field(description="The cause, from a closed list.")
    message: Text = Field(description="One sentence with the ids and numbers.")
    refs: tuple[Id, ...] = Field(default=(), description="Ids of the jobs, groups and nodes the sentence names.")
    earliest_start_at: Instant | None = Field(
        default=None, description="When this cause ends, as far as it can be known; unset: unknown."
    )
    cheapest_change: Text | None = Field(
        default=None, description="The smallest change that would remove this cause; unset: none known."
    )


class WarningCode(StrEnum):
    """What was odd in the input."""

    STARTED_AT_CLAMPED = "started_at_clamped"
    """A started_at up to 300 s after now was read as now."""
    INSTANT_CLAMPED = "instant_clamped"
    """Another instant up to 300 s after now was read as now."""
    CONTRACT_CUT = "contract_cut"
    """A running job's contract is longer than max_protection_s and was cut."""
    UNKNOWN_GROUP = "unknown_group"
    """A job names a group that is not in the tree."""
    UNKNOWN_USAGE_GROUP = "unknown_usage_group"
    """Usage of a group that is not in the tree was left out."""
    UNKNOWN_GPU_TYPE = "unknown_gpu_type"
    """A speedup names a type that is not in the cluster."""
    NODE_GONE = "node_gone"
    """A job is placed on a node that is not listed: it counts as lost."""
    GUARANTEES_CUT = "guarantees_cut"
    """Guarantees that cannot all hold were cut in proportion."""
    LIMIT_BELOW_GUARANTEE = "limit_below_guarantee"
    """A group's guarantee was cut to its limit."""
    ZERO_SHARES = "zero_shares"
    """All siblings have a share of 0: split equally."""
    CHARGE_RATE_OFF = "charge_rate_off"
    """Charge rates are off the mean speedups by more than 2 x."""
    ODD_SPEEDUP = "odd_speedup"
    """A job's speedups look unlike those of its kind."""
    OVER_USABLE = "over_usable"
    """More is placed on a node than is usable on it: GPUs were lost under jobs."""
    INFEASIBLE_JOB = "infeasible_job"
    """A job could not run even on the empty cluster."""
    FALLBACK_SERVED = "fallback_served"
    """The greedy plan was served, because the better one came too late or failed its audit."""
    PROMISE_MOVED = "promise_moved"
    """A promised start had to be moved; says why."""


class PlanWarning(WireModel):
    """Something odd in the input, and how it was read."""

    code: WarningCode = Field(description="What was odd, from a closed list.")
    message: Text = Field(description="One sentence with the ids and numbers.")
    refs: tuple[Id, ...] = Field(default=(), description="Ids of the jobs, groups and nodes the sentence names.")
