"""Declared speedups against observed ones: who is off, by how much, what it gains, and what to use instead.

    report = audit_speedups(SpeedupAuditRequest(state=state, observations=observations))
    state = state_in_use(state, report)

Within a job only ratios between types mean anything, so every figure compares a type with a reference type,
on logarithms, and is two-sided: too high and too low are found alike. What cannot be found so: a job seen on
one type alone, slowing down on every type alike, and throttling that makes true what was declared.
"""

from evenhand.speedups.gain import (
    flagged_groups,
    found_wrong,
    gains_of_flagged,
    misreport_gain,
    misreport_gains,
    with_factors,
    with_gains,
    with_vectors,
)
from evenhand.speedups.in_use import observed_vectors, refused_jobs, vectors_in_use
from evenhand.speedups.judge import audit_speedups
from evenhand.speedups.resumable import resumable_in_use, state_in_use

__all__ = [
    "audit_speedups",
    "flagged_groups",
    "found_wrong",
    "gains_of_flagged",
    "misreport_gain",
    "misreport_gains",
    "observed_vectors",
    "refused_jobs",
    "resumable_in_use",
    "state_in_use",
    "vectors_in_use",
    "with_factors",
    "with_gains",
    "with_vectors",
]
