"""How to decide: the objective, the memory of past use, the price of a start, the limits of a round."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from evenhand_models.quantities import (
    Factor,
    Flag,
    Fraction,
    PositiveSeconds,
    Seconds,
    Seed,
    Threads,
    TimeLimit,
    WireModel,
)


class Objective(StrEnum):
    """What a fair division of unlike GPUs is."""

    ENVY_FREE = "envy_free"
    """Most throughput subject to envy-freeness and sharing incentive (OEF, cooperative)."""
    NASH = "nash"
    """Competitive equilibrium from entitlements (Eisenberg-Gale)."""
    EQUAL_THROUGHPUT = "equal_throughput"
    """Equal throughput by entitlement (OEF, non-cooperative): does not reward over-declared speedups."""
    MAX_MIN = "max_min"
    """The least served, measured by throughput, as well as possible (Gavel)."""
    MAX_THROUGHPUT = "max_throughput"
    """Most throughput, whoever gets it."""
    FAIR_SHARE = "fair_share"
    """Entitlement only, blind to speedups."""


class ThroughputUnit(StrEnum):
    """Which GPU type a job's throughput is counted in."""

    BEST = "best"
    """A GPU of the job's best usable type counts 1."""
    SLOWEST = "slowest"
    """A GPU of the job's slowest usable type counts 1."""


class Policy(WireModel):
    """The rules of a round; every field has a default, and the plan echoes what was in force."""

    objective: Objective = Field(
        default=Objective.ENVY_FREE,
        description="envy_free, nash, equal_throughput, max_min, max_throughput or fair_share.",
    )
    window_s: PositiveSeconds = Field(
        default=604_800, description="Length in seconds of the sliding window in which usage counts."
    )
    half_life_s: PositiveSeconds | None = Field(
        default=None,
        description="Half-life in seconds of exponential decay of usage, in place of the window; unset: no decay.",
    )
    horizon_s: PositiveSeconds = Field(
        default=604_800,
        description="Seconds over which past imbalance is paid back; small: the least served first, "
        "large: today's shares only.",
    )
    max_protection_s: Seconds = Field(
        default=28_800,
        description="Longest contract in seconds; a pending job that asks for more is refused.",
    )
    throughput_unit: ThroughputUnit = Field(
        default=ThroughputUnit.BEST,
        description="best or slowest: the usable type at which a job's speedup counts 1.",
    )
    lookahead_s: PositiveSeconds = Field(
        default=3_600,
        description="Seconds over which what a start or a move brings is counted, against what it costs.",
    )
    restart_cost_s: Seconds = Field(default=300, description="Run time in seconds lost by each start.")
    urgency: Factor = Field(
        default=4.0,
        description="How steeply what a group is owed gains weight against lost work as it falls behind: average usage "
        "for a share over its own, to this power, between 1 and 300.",
    )
    lost_work_weight: Factor = Field(
        default=8.0, description="How many times work counts that a stop would lose, against work that is done."
    )
    debug_contract_s: Seconds = Field(
        default=600,
        description="Longest contract in seconds of a debug run: a job that cannot resume and is no larger than the largest "
        "node. It is owed a start at once, whatever its group holds, where who makes way loses little; 0: there are none.",
    )
    debug_share: Fraction = Field(default=0.125, description="Share of the GPUs that debug runs may be owed at once.")
    allow_migration: Flag = Field(
        default=True, description="Whether resumable jobs past their protection may be moved."
    )
    time_limit_s: TimeLimit = Field(
        default=5.0, description="Seconds of wall time within which a feasible, verified answer must come."
    )
    seed: Seed = Field(default=0, description="Seed of the solvers' choices.")
    workers: Threads = Field(
        default=1,
        description="Threads a round may use. With deterministic two at most are, for the same plan sooner; else all are, "
        "for a better plan in the same time.",
    )
    deterministic: Flag = Field(
        default=True,
        description="Limit work by the solver's own count rather than the clock, so that the same input "
        "gives the "
        "same plan on any machine.",
    )
