"""What comes out: one assignment for every job, how every group fares, and the proof."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, Field

from evenhand_models.certificate import Certificate
from evenhand_models.jobs import Placements
from evenhand_models.policy import Policy
from evenhand_models.quantities import (
    Counts,
    Flag,
    Fraction,
    GpuCount,
    GpusByType,
    Id,
    Instant,
    Milliseconds,
    Number,
    Rank,
    Text,
    TotalGpus,
    WholeGpusByType,
    WireModel,
)
from evenhand_models.reasons import PlanWarning, Reason
from evenhand_models.writing import Written, written

T = TypeVar("T")


def _ordered(key: Callable[[T], Any]) -> AfterValidator:
    """Put a list in one order at birth, so that equal plans have equal bytes."""
    return AfterValidator(lambda items: tuple(sorted(items, key=key)))


class Action(StrEnum):
    """What happens to a job."""

    START = "start"
    """Begins to run on its placement."""
    KEEP = "keep"
    """Goes on as it is."""
    MIGRATE = "migrate"
    """Stops and starts again elsewhere."""
    RESIZE = "resize"
    """Goes on with more or fewer GPUs."""
    PREEMPT = "preempt"
    """Stops; requeue says whether it comes back."""
    WAIT = "wait"
    """Stays pending."""
    INFEASIBLE = "infeasible"
    """Could not run even on this cluster empty and all nodes up."""


class Assignment(WireModel):
    """What happens to one job, and why."""

    job: Id = Field(description="Id of the job.")
    action: Action = Field(description="start, keep, migrate, resize, preempt, wait or infeasible.")
    gpus: GpuCount = Field(default=0, description="GPUs it holds once the plan is applied.")
    gpu_type: Id | None = Field(default=None, description="Type of those GPUs; unset: holds none.")
    placement: Placements = Field(default=(), description="Where those GPUs are.")
    after: tuple[Id, ...] = Field(
        default=(), description="Ids of jobs that must have left before it can start or move."
    )
    protected_until_at: Instant | None = Field(
        default=None, description="End of its protection, not included; unset: not protected."
    )
    requeue: Flag | None = Field(
        default=None, description="Whether a preempted job waits again; unset unless preempted."
    )
    unallocated: Flag = Field(
        default=False, description="Whether it runs as unallocated use: never charged, never protected."
    )
    earliest_start_at: Instant | None = Field(
        default=None, description="No earlier start is possible, as far as is known; unset: unknown."
    )
    cheapest_change: Text | None = Field(
        default=None, description="The smallest change that would start it; unset: none known."
    )
    reasons: tuple[Reason, ...] = Field(default=(), description="All binding causes, the main one first.")


class GroupReport(WireModel):
    """How one group fares under the plan."""

    group: Id = Field(description="Id of the group.")
    share: Number = Field(description="Its weight among its siblings.")
    usage_gpu_hours: Number = Field(description="Charged GPU-hours in the window, all groups below it included.")
    demand_gpus: Number = Field(description="What its jobs could hold, in charged GPUs.")
    entitled_gpus: Number = Field(description="What it is owed this round, in charged GPUs.")
    target: GpusByType = Field(default_factory=dict, description="The fair fractional target: GPUs by type.")
    floor: Number = Field(description="Throughput of the slice in proportion to its entitlement.")
    allocated: WholeGpusByType = Field(
        default_factory=dict, description="GPUs by type its allocated work holds once the plan is applied."
    )
    unallocated_use: WholeGpusByType = Field(
        default_factory=dict, description="GPUs by type its unallocated work holds once the plan is applied."
    )
    utilization: Fraction | None = Field(
        default=None, description="Share of its GPUs' compute really used, where reported; unset: unknown."
    )
    throughput: Number = Field(description="Throughput of its allocated work under the plan.")
    throughput_target: Number = Field(default=0.0, description="Throughput of its fair fractional target.")
    sharing_incentive: Number | None = Field(
        default=None, description="throughput over floor, 1 or more is good; unset: the floor is 0."
    )
    standing: Rank = Field(description="Rank among its siblings by usage over share; 1: the least served.")


class CalendarEntry(WireModel):
    """The date given to a large gang that waits."""

    job: Id = Field(description="Id of the job.")
    latest_start_at: Instant | None = Field(
        default=None, description="It starts by then at the latest; unset: no date can be given."
    )
    nodes: tuple[Id, ...] = Field(default=(), description="Nodes held for it.")
    gpu_type: Id | None = Field(default=None, description="Type of the GPUs held for it; unset: none held.")


class Unlock(WireModel):
    """GPUs that come out of protection."""

    gpu_type: Id = Field(description="Type of the GPUs.")
    at: Instant = Field(description="When their protection ends.")
    gpus: TotalGpus = Field(description="How many come out of protection then.")


class SolverReport(WireModel):
    """How the plan came about; no part of what is compared or hashed."""

    stages_ms: Milliseconds = Field(
        default_factory=dict, description="Milliseconds by stage; with several workers stages overlap."
    )
    sizes: Counts = Field(default_factory=dict, description="Sizes of the input and the programs, by name.")
    engine_version: Text = Field(description="Version of evenhand that made the plan.")
    state_hash: Text = Field(description="SHA-256 of the canonical state, hexadecimal.")
    plan_hash: Text | None = Field(
        default=None,
        description="SHA-256 of the canonical plan without solver, hexadecimal; unset: not sealed yet.",
    )
    cpu_s: Number | None = Field(default=None, description="CPU seconds used; unset: not measured.")


class Plan(WireModel):
    """The answer of a round. Lists are put in one order at birth (goals and reasons keep their rank)."""

    __slots__ = ("_text",)

    now: Instant = Field(description="The instant of the decision.")
    policy: Policy = Field(description="The policy in force, defaults filled in.")
    assignments: Annotated[tuple[Assignment, ...], _ordered(lambda item: item.job)] = Field(
        description="One for every job that came in, by job id."
    )
    groups: Annotated[tuple[GroupReport, ...], _ordered(lambda item: item.group)] = Field(
        description="One for every group of the tree, by id."
    )
    certificate: Certificate = Field(description="What is proven about the plan.")
    calendar: Annotated[tuple[CalendarEntry, ...], _ordered(lambda item: item.job)] = Field(
        default=(), description="One for every large gang that waits, by job id."
    )
    unlocks: Annotated[tuple[Unlock, ...], _ordered(lambda item: (item.at, item.gpu_type, item.gpus))] = Field(
        default=(), description="When how many GPUs come out of protection, by time."
    )
    solver: SolverReport = Field(description="Timings, sizes, versions and hashes.")
    warnings: Annotated[tuple[PlanWarning, ...], _ordered(lambda item: (item.code, item.refs, item.message))] = Field(
        default=(), description="What was odd in the input and how it was read."
    )

    def to_json_bytes(self) -> bytes:
        """Return the plan as UTF-8 JSON, compact, fields in one fixed order: equal plans, equal bytes."""
        return (self._kept() or written(self)).with_solver(self)

    def with_solver(self, solver: SolverReport, text: Written | None = None) -> Plan:
        """Return the plan with another report of its solver, of which nothing else depends.

        Parameters
        ----------
        text : the plan as written, if the caller has it; it is kept for `to_json_bytes`. Unset: what this plan keeps.
        """
        plan = self.model_copy(update={"solver": solver})
        object.__setattr__(plan, "_text", self._kept() if text is None else text)
        return plan

    def _kept(self) -> Written | None:
        """Return what was written of this very plan, if anything was; a copy with other fields keeps nothing."""
        found: Written | None = getattr(self, "_text", None)
        return found
