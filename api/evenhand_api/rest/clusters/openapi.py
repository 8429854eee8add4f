"""The stateful doors in the service's description: one table of operations."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from evenhand_api.ledger.words import AdjustmentRequest, ClusterConfig, EventBatch, ObservationBatch, RoundRequest
from evenhand_api.rest.clusters import answers
from evenhand_api.rest.clusters.parameters import CLUSTER_NAME, KEY_HEADER
from evenhand_api.rest.problems import Kind
from evenhand_models import SpeedupReport

Node = dict[str, Any]
READS = (Kind.NOT_FOUND, Kind.INVALID, Kind.INTERNAL, Kind.LEDGER_UNAVAILABLE)
WRITES = (*READS, Kind.MALFORMED, Kind.TOO_LARGE, Kind.UNSUPPORTED)


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation: where, what it takes, what it answers."""

    method: str
    path: str
    name: str
    summary: str
    description: str
    answer: type[BaseModel]
    kinds: tuple[Kind, ...]
    body: type[BaseModel] | None = None
    example: Node | None = None
    query: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ("200",)
    keyed: bool = False


_CONFIG: Node = {
    "gpu_types": [{"name": "h100"}],
    "nodes": [{"name": "n1", "gpu_type": "h100", "gpus": 8}],
    "groups": [{"id": "vision", "share": 1}, {"id": "language", "share": 1}],
}
_ROUND: Node = {
    "now": "2026-11-01T12:00:00Z",
    "jobs": [
        {
            "id": "train-1",
            "group": "vision",
            "gpus": 4,
            "speedup": {"h100": 1.0},
            "submitted_at": "2026-11-01T11:00:00Z",
            "contract": {"min_runtime_s": 3600},
        }
    ],
}
_EVENTS: Node = {
    "events": [
        {
            "kind": "started",
            "job": "train-1",
            "group": "vision",
            "min_runtime_s": 3600,
            "at": "2026-11-01T12:00:02Z",
            "placement": [{"node": "n1", "gpus": 4}],
        },
        {"kind": "ended", "job": "train-1", "at": "2026-11-01T12:30:02Z"},
    ]
}
_ADJUSTMENT: Node = {
    "group": "vision",
    "charged_gpu_hours": -1.5,
    "reason": "node n1 was broken",
    "author": "ops",
    "at": "2026-11-01T12:00:00Z",
}

_OBSERVATIONS: Node = {
    "observations": [{"job": "train-1", "gpu_type": "h100", "gpus": 4, "work_done": 8000, "seconds": 1000}]
}
OPERATIONS = (
    Operation(
        "get",
        "/v1/clusters",
        "list_clusters",
        "Which clusters there are",
        "Lists their names.",
        answers.ClusterList,
        (Kind.INVALID, Kind.INTERNAL, Kind.LEDGER_UNAVAILABLE),
    ),
    Operation(
        "put",
        "/v1/clusters/{name}",
        "put_cluster",
        "Write a cluster's configuration",
        "Types, nodes, organisation tree and policy. Checked as a whole before it is written: what cannot hold is "
        "refused, and the last good one stays in force. The same one again changes nothing.",
        answers.ClusterVersions,
        tuple(k for k in WRITES if k is not Kind.NOT_FOUND),
        ClusterConfig,
        _CONFIG,
        statuses=("200", "201"),
    ),
    Operation(
        "get",
        "/v1/clusters/{name}",
        "get_cluster",
        "How a cluster stands",
        "Its versions, its last round, the configuration in force, its nodes as rounds have left them.",
        answers.ClusterStanding,
        READS,
    ),
    Operation(
        "post",
        "/v1/clusters/{name}/rounds",
        "post_round",
        "Decide a round and keep it",
        "Takes all jobs as they are now and what changed of the nodes; usage comes from the ledger. Rounds of one "
        "cluster take turns. With an Idempotency-Key the same request again gets the stored answer.",
        answers.RoundAnswer,
        (*WRITES, Kind.STALE_STATE, Kind.CLOCK_WENT_BACK, Kind.KEY_REUSED, Kind.OVER_CAPACITY),
        RoundRequest,
        _ROUND,
        keyed=True,
    ),
    Operation(
        "get",
        "/v1/clusters/{name}/rounds",
        "list_rounds",
        "Rounds, the latest first",
        "Lists up to most rounds (100 unless said) whose number is below before.",
        answers.RoundList,
        READS,
        query=("before", "most"),
    ),
    Operation(
        "get",
        "/v1/clusters/{name}/rounds/{n}",
        "get_round",
        "A round as it was answered",
        "Gives the stored answer, byte for byte.",
        answers.RoundAnswer,
        READS,
    ),
    Operation(
        "post",
        "/v1/clusters/{name}/events",
        "post_events",
        "Report what happened",
        "Jobs that started, were resized or ended, nodes that went down or came back: charges follow to the "
        "microsecond. Order and repetition do no harm. All events of a request are recorded, or none.",
        answers.EventsRecorded,
        WRITES,
        EventBatch,
        _EVENTS,
    ),
    Operation(
        "post",
        "/v1/clusters/{name}/adjustments",
        "post_adjustment",
        "Adjust a group's usage",
        "Adds charged GPU-hours to a group or takes them off, with a reason, kept for good.",
        answers.Adjustment,
        WRITES,
        AdjustmentRequest,
        _ADJUSTMENT,
        statuses=("201",),
    ),
    Operation(
        "post",
        "/v1/clusters/{name}/observations",
        "post_observations",
        "Report what jobs did on their GPUs",
        "Work done on GPUs of a type in some time: what the audit of speedups goes by.",
        answers.EventsRecorded,
        WRITES,
        ObservationBatch,
        _OBSERVATIONS,
    ),
    Operation(
        "get",
        "/v1/clusters/{name}/speedups",
        "get_speedups",
        "Declared speedups against observed ones",
        "The last round's jobs and those that have ended, against all that was reported: who is off, what it gains.",
        SpeedupReport,
        (*READS, Kind.OVER_CAPACITY),
    ),
    Operation(
        "get",
        "/v1/clusters/{name}/jobs/{job}/explanation",
        "explain_job",
        "Why a job runs, waits or was stopped",
        "The last answer it got and every change decided about it, kept after it has ended.",
        answers.JobExplanation,
        READS,
    ),
    Operation(
        "get",
        "/v1/clusters/{name}/groups",
        "get_groups",
        "What groups used and how they fare",
        "Usage as the policy remembers it up to at (the last round's instant unless said), and the last round's report.",
        answers.Groups,
        READS,
        query=("at",),
    ),
    Operation(
        "get",
        "/v1/clusters/{name}/owed-received",
        "get_owed_received",
        "Owed against received, by hour and group",
        "Owed is the lesser of demand and product of shares times capacity; two figures of what was delivered.",
        answers.OwedReceived,
        READS,
        query=("from", "to"),
    ),
    Operation(
        "get",
        "/v1/clusters/{name}/occupancy",
        "get_occupancy",
        "Held against used",
        "What groups hold, what their jobs report to use of it, who holds GPUs idle. Nothing is decided by it.",
        answers.Occupancy,
        READS,
        query=("from", "to"),
    ),
    Operation(
        "get",
        "/v1/clusters/{name}/usage",
        "get_usage",
        "Charges over a period",
        "What every group was charged from from to to, exactly; the last window unless said.",
        answers.UsageReport,
        READS,
        query=("from", "to"),
    ),
)

_INSTANT: Node = {"type": "string", "format": "date-time"}
_PARAMETERS: dict[str, Node] = {
    "name": {
        "in": "path",
        "description": "Name of the cluster.",
        "schema": {"type": "string", "pattern": CLUSTER_NAME},
    },
    "n": {
        "in": "path",
        "description": "Number of the round, the first is 1.",
        "schema": {"type": "integer", "minimum": 1, "maximum": 999_999_999},
    },
    "job": {
        "in": "path",
        "description": "Id of the job, percent-encoded.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 256},
    },
    "before": {
        "in": "query",
        "description": "Only rounds with a lower number.",
        "schema": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1},
    },
    "most": {"in": "query", "description": "How many.", "schema": {"type": "integer", "minimum": 1, "maximum": 1_000}},
    "at": {"in": "query", "description": "Up to which instant.", "schema": _INSTANT},
    "from": {
        "in": "query",
        "description": "Begin of the period; a week before its end unless said.",
        "schema": _INSTANT,
    },
    "to": {"in": "query", "description": "End of the period; the last round unless said.", "schema": _INSTANT},
    KEY_HEADER: {
        "in": "header",
        "description": "Makes the request safe to send again: the same key, the same answer.",
        "schema": {"type": "string", "pattern": "^[!-~]{1,200}$"},
    },
}


def cluster_schemas() -> Node:
    """Return the JSON Schema of every model that only the stateful doors use, references as pydantic writes them."""
    models = [model for o in OPERATIONS for model in (o.body, o.answer) if model is not None]
    _, schema = models_json_schema([(model, "validation") for model in models])
    return dict(sorted(schema["$defs"].items()))


def operation_parameters(operation: Operation) -> list[Node]:
    """Describe the parameters of an operation."""
    in_path = [part[1:-1] for part in operation.path.split("/") if part.startswith("{")]
    named = [*in_path, *operation.query, *([KEY_HEADER] if operation.keyed else [])]
    return [{"name": name, "required": name in in_path} | _PARAMETERS[name] for name in named]


def request_body(operation: Operation) -> Node:
    """Describe what an operation takes."""
    assert operation.body is not None
    content: Node = {"schema": {"$ref": f"#/components/schemas/{operation.body.__name__}"}}
    content["examples"] = {"example": {"value": json.loads(json.dumps(operation.example))}}
    return {"required": True, "description": operation.summary + ".", "content": {"application/json": content}}
