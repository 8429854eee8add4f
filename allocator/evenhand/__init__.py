"""evenhand decides who gets which GPUs of a shared cluster: fairly, as well as can be, and with proof.

from evenhand import ClusterState, Policy, allocate
plan = allocate(state, Policy(time_limit_s=2))
"""

from evenhand.audit import AuditReport, Finding, audit
from evenhand.errors import AuditFailed
from evenhand.fairness.comparison import compare_objectives
from evenhand.rounds import allocate
from evenhand.session import Session
from evenhand.speedups import audit_speedups, state_in_use
from evenhand.version import VERSION
from evenhand.window_envy import window_envy
from evenhand_models import (
    Action,
    Assignment,
    Certificate,
    ClusterState,
    EvenhandError,
    InvalidInput,
    Objective,
    ObjectiveComparison,
    Plan,
    Policy,
)

__version__ = VERSION

__all__ = [
    "Action",
    "Assignment",
    "AuditFailed",
    "AuditReport",
    "Certificate",
    "ClusterState",
    "EvenhandError",
    "Finding",
    "InvalidInput",
    "Objective",
    "ObjectiveComparison",
    "Plan",
    "Policy",
    "Session",
    "allocate",
    "audit",
    "audit_speedups",
    "compare_objectives",
    "state_in_use",
    "window_envy",
]
