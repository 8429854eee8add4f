"""From one stateful operation to the next: what of an answer tells where to go on, for the service's description."""

from __future__ import annotations

from typing import Any

Node = dict[str, Any]

_NAME = {"name": "$request.path.name"}
_ROUND = _NAME | {"n": "$response.body#/round"}
_FIRST_JOB = _NAME | {"job": "$response.body#/plan/assignments/0/job"}
_REPORTS = ("get_groups", "get_usage", "get_owed_received", "get_occupancy", "get_speedups")

LINKS: dict[str, tuple[tuple[str, Node, str], ...]] = {
    "list_clusters": (("get_cluster", {"name": "$response.body#/clusters/0"}, "How the first of them stands."),),
    "put_cluster": (
        ("get_cluster", _NAME, "The configuration in force, and the nodes."),
        ("post_round", _NAME, "A round under this configuration."),
        ("post_events", _NAME, "What happened on its nodes."),
    ),
    "get_cluster": (
        ("put_cluster", _NAME, "Its configuration, changed."),
        ("post_round", _NAME, "Its next round."),
        ("list_rounds", _NAME, "Its rounds."),
        ("get_round", _NAME | {"n": "$response.body#/last_round"}, "Its last round; none where last_round is 0."),
        *((report, _NAME, "What the ledger says of it.") for report in _REPORTS),
    ),
    "post_round": (
        ("get_round", _ROUND, "The same answer again, later."),
        ("explain_job", _FIRST_JOB, "Why the first job of the plan runs or waits."),
        ("post_events", _NAME, "What came of the plan: starts, ends, lost nodes."),
        ("get_groups", _NAME, "How groups stand after it."),
    ),
    "list_rounds": (("get_round", _NAME | {"n": "$response.body#/rounds/0/round"}, "The latest of them."),),
    "get_round": (("explain_job", _FIRST_JOB, "What has been decided about the first job of the plan."),),
    "explain_job": (("get_round", _NAME | {"n": "$response.body#/latest/round"}, "The round that said so."),),
    "post_events": (
        ("get_usage", _NAME, "What has been charged."),
        ("post_round", _NAME, "A round that knows of the events."),
    ),
    "post_adjustment": (("get_usage", _NAME, "What has been charged, the adjustment included."),),
    "post_observations": (("get_speedups", _NAME, "Declared speedups against what was observed."),),
}
BODIES: dict[tuple[str, str], Node] = {("get_cluster", "put_cluster"): {"requestBody": "$response.body#/config"}}
"""What the next request may begin with."""


def links_of(operation: str) -> Node:
    """Return the links of an operation's answers, as OpenAPI writes them; empty if there are none."""
    return {
        f"{operation}_to_{target}": {"operationId": target, "parameters": parameters, "description": why}
        | BODIES.get((operation, target), {})
        for target, parameters, why in LINKS.get(operation, ())
    }
