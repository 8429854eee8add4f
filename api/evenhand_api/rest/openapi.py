"""The service's description (OpenAPI 3.1), assembled from the models' own JSON Schema."""

from __future__ import annotations

import json
from typing import Any, cast

from evenhand_api import __version__
from evenhand_api.rest import forecasts
from evenhand_api.rest.clusters.links import links_of
from evenhand_api.rest.clusters.openapi import OPERATIONS, cluster_schemas, operation_parameters, request_body
from evenhand_api.rest.openapi_access import SECURITY_SCHEMES, add_access
from evenhand_api.rest.problems import PROBLEM_JSON, Kind
from evenhand_api.rest.replays.openapi import replay_paths
from evenhand_api.rest.rounds import TINY
from evenhand_api.rest.speedups import EXAMPLE
from evenhand_models import json_schema

Node = dict[str, Any]

PROBLEM_SCHEMA: Node = {
    "type": "object",
    "title": "Problem",
    "description": "What went wrong (RFC 9457).",
    "additionalProperties": False,
    "required": ["type", "title", "status", "detail", "errors"],
    "properties": {
        "type": {
            "type": "string",
            "format": "uri-reference",
            "enum": [kind.type for kind in Kind],
            "description": "Address on this service that says what the problem means.",
        },
        "title": {"type": "string", "description": "The problem in a few words, the same for each type."},
        "status": {"type": "integer", "minimum": 400, "maximum": 599, "description": "The HTTP status."},
        "detail": {"type": "string", "description": "What went wrong this time, in a sentence."},
        "errors": {
            "type": "array",
            "description": "All that is wrong with the request; empty where no field is at fault.",
            "items": {"$ref": "#/components/schemas/ProblemError"},
        },
    },
}

PROBLEM_ERROR_SCHEMA: Node = {
    "type": "object",
    "title": "ProblemError",
    "description": "One thing wrong with the request.",
    "additionalProperties": False,
    "required": ["pointer", "message"],
    "properties": {
        "pointer": {
            "type": "string",
            "description": "JSON pointer (RFC 6901) into the request, empty for the whole of it.",
        },
        "message": {"type": "string", "description": "One sentence with the ids and numbers it is about."},
    },
}

HEALTH_SCHEMA: Node = {
    "type": "object",
    "title": "Health",
    "description": "The service is alive.",
    "additionalProperties": False,
    "required": ["status", "version"],
    "properties": {
        "status": {"type": "string", "const": "alive", "description": "Always alive."},
        "version": {"type": "string", "description": "Version of evenhand."},
    },
}

READINESS_SCHEMA: Node = {
    "type": "object",
    "title": "Readiness",
    "description": "The service can solve rounds: a process has loaded the solver and solved a small one.",
    "additionalProperties": False,
    "required": ["status", "requests_in_house"],
    "properties": {
        "status": {"type": "string", "const": "ready", "description": "Always ready."},
        "requests_in_house": {
            "type": "integer",
            "minimum": 0,
            "description": "Requests being solved or waiting for a free process now.",
        },
    },
}


def openapi_document() -> Node:
    """Return the whole document: operations, models with every field described, problems."""
    models = cast("Node", _tidy(cluster_schemas() | json_schema()["$defs"]))
    paths: Node = {
        "/v1/allocate": {"post": _allocate()},
        "/v1/audit/speedups": {"post": _audit_speedups()},
        "/v1/fairness": {"post": _fairness()},
        forecasts.PATH: {"post": _whatif_start()},
        "/healthz": {"get": _healthz()},
        "/readyz": {"get": _readyz()},
        "/metrics": {"get": _metrics()},
    }
    paths |= _cluster_paths() | replay_paths(_reply, _problems)
    add_access(paths, _problems)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "evenhand",
            "version": __version__,
            "summary": "An even hand over uneven GPUs.",
            "description": "Who gets which GPUs of a shared cluster: fairly, optimally, with proof. "
            "Units stand in the names: _s are seconds, _gpu_hours GPU-hours, _at and now RFC 3339 instants "
            "with an offset. "
            "A field left out means no limit or unknown.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "securitySchemes": SECURITY_SCHEMES,
            "schemas": models
            | {
                "Problem": PROBLEM_SCHEMA,
                "ProblemError": PROBLEM_ERROR_SCHEMA,
                "Health": HEALTH_SCHEMA,
                "Readiness": READINESS_SCHEMA,
            },
        },
    }


def _cluster_paths() -> Node:
    """Lay the table of stateful operations out by path."""
    paths: Node = {}
    for operation in OPERATIONS:
        described: Node = {
            "operationId": operation.name,
            "summary": operation.summary,
            "description": operation.description,
            "parameters": operation_parameters(operation),
        }
        if operation.body is not None:
            described["requestBody"] = request_body(operation)
        reply = _reply(f"{operation.summary}.", operation.answer.__name__)
        if links := links_of(operation.name):
            reply["links"] = links
        replies = dict.fromkeys(operation.statuses, reply)
        described["responses"] = replies | _problems(list(operation.kinds))
        paths.setdefault(operation.path, {})[operation.method] = described
    return paths


def _allocate() -> Node:
    return _question(
        "allocate",
        "Decide one round",
        "Takes the state of the cluster and, if wanted, a policy; answers with the plan: what "
        "starts, goes on, moves, stops and waits, why, and what is proven about it. Nothing is kept: the "
        "same request gets the same plan (its solver timings aside).",
        _reply("The plan.", "Plan"),
    )


def _fairness() -> Node:
    return _question(
        "fairness",
        "Hold all objectives against each other",
        "Takes what allocate takes; answers with the fractional division of the GPUs by every objective at the "
        "same entitlements: throughput, sharing incentive, envy, Pareto gap and idle GPUs. Decides nothing; the "
        "policy's own objective does not matter.",
        _reply("All objectives side by side.", "ObjectiveComparison"),
    )


def _question(name: str, summary: str, description: str, reply: Node) -> Node:
    """Describe an operation that takes a state and a policy."""
    kinds = [
        Kind.MALFORMED,
        Kind.TOO_LARGE,
        Kind.UNSUPPORTED,
        Kind.INVALID,
        Kind.INTERNAL,
        Kind.OVER_CAPACITY,
    ]
    return {
        "operationId": name,
        "summary": summary,
        "description": f"{description} The body may come with Content-Encoding gzip.",
        "requestBody": {
            "required": True,
            "description": "The state, and the policy to decide by.",
            "content": {
                "application/json": {
                    "schema": {"$ref": "#/components/schemas/AllocateRequest"},
                    "examples": {"two_groups_one_node": {"value": json.loads(TINY)}},
                }
            },
        },
        "responses": {"200": reply} | _problems(kinds),
    }


def _audit_speedups() -> Node:
    kinds = [
        Kind.MALFORMED,
        Kind.TOO_LARGE,
        Kind.UNSUPPORTED,
        Kind.INVALID,
        Kind.INTERNAL,
        Kind.OVER_CAPACITY,
    ]
    return {
        "operationId": "audit_speedups",
        "summary": "Hold declared speedups against observed ones",
        "description": "Takes the state and what was observed of its jobs; answers who declares too much or too "
        "little and by how much, what that gains under each objective, which speedups the next rounds should go by, "
        "estimates for types that jobs leave out, and jobs declared resumable that came back without their progress. "
        "Nothing is kept. The body may come with Content-Encoding gzip.",
        "requestBody": {
            "required": True,
            "description": "The state, what was observed, and how to judge.",
            "content": {
                "application/json": {
                    "schema": {"$ref": "#/components/schemas/SpeedupAuditRequest"},
                    "examples": {"declares_six_does_two": {"value": json.loads(EXAMPLE)}},
                }
            },
        },
        "responses": {"200": _reply("What was found.", "SpeedupReport")} | _problems(kinds),
    }


def _whatif_start() -> Node:
    return {
        "operationId": "whatifStart",
        "summary": "Would a job start if it came now",
        "description": "Takes a state, if wanted a policy, and jobs that do not exist; answers whether they would start "
        "now, from when and by when otherwise, and who would go. A forecast, no reservation: nothing is held, "
        "nothing is kept, and the state is as it was.",
        "requestBody": {
            "required": True,
            "description": "The state, the policy to decide by, and the jobs to add.",
            "content": {
                "application/json": {
                    "schema": {"$ref": "#/components/schemas/WhatIfStartRequest"},
                    "examples": {"one_more_job": {"value": forecasts.example()}},
                }
            },
        },
        "responses": {"200": _reply("The forecast.", "WhatIfStart")} | _problems(list(forecasts.KINDS)),
    }


def _healthz() -> Node:
    return {
        "operationId": "healthz",
        "summary": "Is the service alive",
        "description": "Answers as long as the service accepts requests at all.",
        "responses": {"200": _reply("It is.", "Health")},
    }


def _readyz() -> Node:
    return {
        "operationId": "readyz",
        "summary": "Is the service ready to solve rounds",
        "description": "Answers 200 once a process has loaded the solver and solved a small round, as long as one lives "
        "and the ledger's database answers and has this version's tables.",
        "responses": {"200": _reply("It is.", "Readiness")} | _problems([Kind.NOT_READY]),
    }


def _metrics() -> Node:
    content = {"text/plain": {"schema": {"type": "string"}}}
    return {
        "operationId": "metrics",
        "summary": "Figures for Prometheus",
        "description": "Requests, rounds by stage, gaps, fallbacks, failed audits, preemptions, the queue, and what groups "
        "were owed and received.",
        "responses": {"200": {"description": "Prometheus's text format.", "content": content}}
        | _problems([Kind.INTERNAL]),
    }


def _reply(description: str, schema: str) -> Node:
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
    return {"description": description, "content": content}


def _problems(kinds: list[Kind]) -> Node:
    by_status: dict[int, list[Kind]] = {}
    for kind in kinds:
        by_status.setdefault(kind.status, []).append(kind)
    return {str(status): _problem(same) for status, same in sorted(by_status.items())}


def _problem(kinds: list[Kind]) -> Node:
    response: Node = {
        "description": " Or: ".join(f"{kind.title}. {kind.meaning}" for kind in kinds),
        "content": {PROBLEM_JSON: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    if kinds[0].status == 503:
        response["headers"] = {
            "Retry-After": {
                "required": True,
                "description": "Seconds after which to come back.",
                "schema": {"type": "integer", "minimum": 1},
            }
        }
    return response


def _tidy(node: object) -> object:
    """Point references at the components and leave out what docstrings say about Python."""
    if isinstance(node, list):
        return [_tidy(item) for item in node]
    if not isinstance(node, dict):
        return node
    tidy = {key: _tidy(value) for key, value in node.items()}
    if isinstance(reference := node.get("$ref"), str):
        tidy["$ref"] = reference.replace("#/$defs/", "#/components/schemas/")
    if isinstance(said := node.get("description"), str):
        tidy["description"] = said.split("\n\nRaises\n")[0]
    return tidy
