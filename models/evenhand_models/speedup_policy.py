"""How declared speedups are judged by what was observed, and what follows."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field, Strict

from evenhand_models.quantities import Evidence, Few, Fraction, Id, Seconds, WireModel

Spread = Annotated[float, Strict(), Field(ge=0.001, le=3, allow_inf_nan=False)]
"""Standard deviation of the logarithm of a rate, about the relative error where small."""
Confidence = Annotated[float, Strict(), Field(ge=0.5, le=0.9999, allow_inf_nan=False)]
"""Probability that an interval covers what it is about."""


class SpeedupUse(StrEnum):
    """Which speedups the next rounds go by."""

    DECLARED = "declared"
    """What was declared."""
    OBSERVED = "observed"
    """What was observed, where there is evidence enough."""
    BLEND = "blend"
    """Between the two, the nearer to what was observed the more of it there is."""


class SpeedupConsequence(StrEnum):
    """What happens where declared speedups are found wrong."""

    WARN = "warn"
    """Nothing but the report."""
    USE_OBSERVED = "use_observed"
    """What was observed replaces what was declared."""
    REFUSE = "refuse"
    """Waiting jobs that declare so are refused; for those that run, what was observed is used."""


class SpeedupPolicy(WireModel):
    """How declared speedups are judged, and what follows; every field has a default."""

    use: SpeedupUse = Field(
        default=SpeedupUse.DECLARED, description="Which speedups the next rounds go by: declared, observed or blend."
    )
    consequence: SpeedupConsequence = Field(
        default=SpeedupConsequence.WARN,
        description="What happens where declared speedups are found wrong: warn, use_observed or refuse.",
    )
    min_observations: Evidence = Field(
        default=5, description="Fewest observations on the type, and on the reference type, that count as evidence."
    )
    min_seconds: Seconds = Field(
        default=600, description="Fewest seconds observed on the type, and on the reference type."
    )
    min_jobs: Evidence = Field(
        default=1, description="Fewest jobs of a group observed on both types for a finding about the group."
    )
    shortest_observation_s: Seconds = Field(
        default=30, description="Observations of fewer seconds are left out: warming up is no work."
    )
    tolerance: Fraction = Field(
        default=0.1, description="Declared speedups off by so much, as a share, are as good as right."
    )
    confidence: Confidence = Field(default=0.98, description="Confidence of the intervals, two-sided, 0.5 to 0.9999.")
    noise: Spread = Field(
        default=0.1,
        description="Standard deviation of the logarithm of an honest rate: what is expected before anything is "
        "observed, and how far blend trusts what was declared.",
    )
    reference_type: Id | None = Field(
        default=None,
        description="Type that the others are compared with; unset, or not observed in a group: of the types most "
        "observed together with others, the one observed slowest.",
    )
    min_like_jobs: Evidence = Field(
        default=3, description="Fewest like jobs from which the speedup of an undeclared type is estimated."
    )
    checkpoint_s: Seconds = Field(
        default=3_600, description="Seconds of work that a resumable job may lose with a requeue."
    )
    min_progress_kept: Fraction = Field(
        default=0.5, description="Share of its progress that a resumable job must have kept, where it lost more."
    )
    most_gains: Few = Field(
        default=10,
        description="For so many groups at most, the worst first, what they gain by what they declare is measured.",
    )
