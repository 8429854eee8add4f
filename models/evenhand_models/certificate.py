"""The proof that comes with a plan: goals and bounds, hard rules, envy and floors."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from evenhand_models.quantities import Flag, GpusByType, Id, Number, Text, WireModel


class CertificateStatus(StrEnum):
    """How good the plan is known to be."""

    OPTIMAL = "optimal"
    """Nothing better exists under the documented weights."""
    FEASIBLE = "feasible"
    """Keeps every rule; the gap says how much better a plan could be at most."""
    FALLBACK = "fallback"
    """The greedy plan: keeps every rule, served because the better one was late or failed its audit."""


class Goal(WireModel):
    """One ranked goal: what was reached and what could be reached at most."""

    name: Text = Field(description="Name of the goal.")
    value: Number = Field(description="What the plan reaches, in unit.")
    bound: Number | None = Field(default=None, description="No plan does better than this, in unit; unset: unknown.")
    unit: Text = Field(description="Unit of value and bound.")
    weight: Number = Field(description="Weight of one unit in the objective.")


class EnvyPair(WireModel):
    """A group that would do better with another's GPUs scaled to its own entitlement."""

    group: Id = Field(description="The group that envies.")
    envied: Id = Field(description="The group it envies.")
    envy: Number = Field(description="Throughput it would gain, as a share of its own slice's throughput.")
    forced_by_pins: Number = Field(description="Part of envy that protected jobs force on any plan.")
    ours: Number = Field(description="Part of envy that another plan could have avoided.")


class Certificate(WireModel):
    """What is proven about a plan."""

    status: CertificateStatus = Field(description="optimal, feasible or fallback.")
    cut_by_time: Flag = Field(description="Whether the wall limit cut the search short.")
    goals: tuple[Goal, ...] = Field(description="The goals in rank order, first the most important.")
    objective: Number = Field(description="Weighted sum of the goals the plan reaches, throughput units.")
    bound: Number | None = Field(
        default=None, description="No plan's objective is above this, throughput units; unset: unknown."
    )
    gap: Number | None = Field(
        default=None,
        description="Bound less objective as a share of target_throughput; unset: that is 0, or no bound is known.",
    )
    target_throughput: Number = Field(description="Throughput of the fair fractional target, all groups together.")
    capacity_ok: Flag = Field(description="No node is over its usable GPUs.")
    protection_ok: Flag = Field(description="Every protected job is exactly where it was.")
    gangs_ok: Flag = Field(description="Every gang is whole and of one type.")
    max_envy: Number = Field(description="Largest envy of any pair, as a share of the envier's slice.")
    envy: tuple[EnvyPair, ...] = Field(default=(), description="The pairs above tolerance.")
    target_proven: Flag = Field(
        default=True,
        description="Whether the fair target is proven best by the objective (envy_free: by its last lines, rule T4); "
        "false: it is fair, with envy of at most a "
        "hundredth of a floor, but the groups were too many for the time allowed.",
    )
    floor_slack: Number = Field(description="Total shortfall below floors in the fractional target; above 0: a defect.")
    target_envy_slack: Number = Field(
        description="Total envy in the fractional target, by what bundles are worth; above 0 though target_proven: a defect."
    )
    pareto_gap: Number | None = Field(
        default=None,
        description="No division brings more than this share of value above the fair target with no group worse off; "
        "unset: not computed.",
    )
    pareto_prices: GpusByType = Field(
        default_factory=dict,
        description="Throughput per GPU by type, the prices that prove pareto_gap; a type left out costs nothing.",
    )
    throughput: Number = Field(description="Throughput of the plan, throughput units.")
    upper_bound: Number | None = Field(
        default=None, description="No division of these GPUs brings more throughput; unset: unknown."
    )
    equal_split: Number | None = Field(
        default=None, description="Throughput if every type were split by entitlement; unset: not computed."
    )
    max_min: Number | None = Field(default=None, description="Throughput under max_min fairness; unset: not computed.")
    verified: Flag = Field(description="Whether the independent checker passed the plan.")
