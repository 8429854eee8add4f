"""The words of evenhand: cluster state and policy in, plan out. Imports pydantic and nothing else.

The same models serve REST, the command line, files and the library. They are frozen and strict; see
`evenhand_models.errors` for what building one may raise.
"""

from evenhand_models.certificate import Certificate, CertificateStatus, EnvyPair, Goal
from evenhand_models.cluster import ClusterState, check_state
from evenhand_models.comparison import GroupOutcome, ObjectiveComparison, ObjectiveOutcome, Owed
from evenhand_models.errors import EvenhandError, FieldError, InvalidInput
from evenhand_models.groups import Group, Usage
from evenhand_models.hardware import GpuType, Node, NodeStatus, Placement
from evenhand_models.hashing import canonical_bytes, canonical_state_bytes, plan_hash, seal, state_hash
from evenhand_models.jobs import Contract, Job, JobState
from evenhand_models.observations import DeclaredJob, Observation, ObservedWork, SpeedupAuditRequest
from evenhand_models.parse import parse_document, parse_plan, parse_policy, parse_request, parse_state
from evenhand_models.parse_observations import parse_observations, parse_observations_csv, parse_speedup_audit
from evenhand_models.plan import Action, Assignment, CalendarEntry, GroupReport, Plan, SolverReport, Unlock
from evenhand_models.policy import Objective, Policy, ThroughputUnit
from evenhand_models.reasons import PlanWarning, Reason, ReasonCode, WarningCode
from evenhand_models.request import AllocateRequest
from evenhand_models.schema import json_schema
from evenhand_models.speedup_policy import SpeedupConsequence, SpeedupPolicy, SpeedupUse
from evenhand_models.speedup_report import (
    EstimateSource,
    GroupSpeedup,
    HintCode,
    JobSpeedup,
    LeftOut,
    LeftOutCode,
    MisreportGain,
    ProfileHint,
    RefutedResume,
    SpeedupFlag,
    SpeedupRatio,
    SpeedupReport,
    UndeclaredSpeedup,
)
from evenhand_models.tree import check_tree

__all__ = [
    "Action",
    "AllocateRequest",
    "Assignment",
    "CalendarEntry",
    "Certificate",
    "CertificateStatus",
    "ClusterState",
    "Contract",
    "DeclaredJob",
    "EnvyPair",
    "EstimateSource",
    "EvenhandError",
    "FieldError",
    "Goal",
    "GpuType",
    "Group",
    "GroupOutcome",
    "GroupReport",
    "GroupSpeedup",
    "HintCode",
    "InvalidInput",
    "Job",
    "JobSpeedup",
    "JobState",
    "LeftOut",
    "LeftOutCode",
    "MisreportGain",
    "Node",
    "NodeStatus",
    "Objective",
    "ObjectiveComparison",
    "ObjectiveOutcome",
    "Observation",
    "ObservedWork",
    "Owed",
    "Placement",
    "Plan",
    "PlanWarning",
    "Policy",
    "ProfileHint",
    "Reason",
    "ReasonCode",
    "RefutedResume",
    "SolverReport",
    "SpeedupAuditRequest",
    "SpeedupConsequence",
    "SpeedupFlag",
    "SpeedupPolicy",
    "SpeedupRatio",
    "SpeedupReport",
    "SpeedupUse",
    "ThroughputUnit",
    "UndeclaredSpeedup",
    "Unlock",
    "Usage",
    "WarningCode",
    "canonical_bytes",
    "canonical_state_bytes",
    "check_state",
    "check_tree",
    "json_schema",
    "parse_document",
    "parse_observations",
    "parse_observations_csv",
    "parse_plan",
    "parse_policy",
    "parse_request",
    "parse_speedup_audit",
    "parse_state",
    "plan_hash",
    "seal",
    "state_hash",
]
