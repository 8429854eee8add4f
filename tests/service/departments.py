"""Two departments that must not learn of each other, their jobs, and three rounds in which they meet."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Engine

from evenhand import allocate
from evenhand_api.ledger.rounds import Posted, decide_round
from evenhand_api.rest.clusters.writes import write_config, write_events

CLUSTER = "sky"
OWN = frozenset({"acorn", "acorn/vision", "acorn/text", "seed-1", "seed-2", "seed-3", "uma.z", "kai.z"})
"""Names of the department that asks."""
STRANGERS = frozenset({"birch", "birch/deep", "quartz-1", "quartz-2", "quartz two, late", "jasper-9", "bo.b", "bea"})
"""Names of the other one; none is part of another word."""

CONFIG: dict[str, Any] = {
    "gpu_types": [{"name": "h100"}],
    "nodes": [{"name": "n1", "gpu_type": "h100", "gpus": 4}, {"name": "n2", "gpu_type": "h100", "gpus": 4}],
    "groups": [
        {"id": "acorn", "share": 1},
        {"id": "acorn/vision", "parent": "acorn", "share": 1},
        {"id": "acorn/text", "parent": "acorn", "share": 1},
        {"id": "birch", "share": 1},
        {"id": "birch/deep", "parent": "birch", "share": 1},
    ],
    "policy": {"time_limit_s": 5},
}
ELSEWHERE: dict[str, Any] = CONFIG | {"groups": [{"id": "cedar", "share": 1}]}


def job(name: str, group: str, user: str, gpus: int, minute: int, **more: Any) -> dict[str, Any]:
    submitted = f"2026-11-01T10:{minute:02d}:00Z"
    contract = {"min_runtime_s": 3600, "resumable": True}
    known = {"id": name, "group": group, "user": user, "gpus": gpus, "submitted_at": submitted, "contract": contract}
    return known | {"speedup": {"h100": 1.0}} | more


def running(name: str, group: str, user: str, node: str, gpus: int, started: str, **more: Any) -> dict[str, Any]:
    held = {"state": "running", "started_at": started, "placement": [{"node": node, "gpus": gpus}]}
    return job(name, group, user, gpus, 0, **held, **more)


NOON, LATER, NIGHT = "2026-11-01T12:00:00Z", "2026-11-01T12:10:00Z", "2026-11-01T14:00:00Z"
_QUARTZ = running("quartz-1", "birch/deep", "bo.b", "n1", 4, NOON, utilization=0.0)
ROUNDS: tuple[dict[str, Any], ...] = (
    {
        "now": NOON,
        "jobs": [
            job("quartz-1", "birch/deep", "bo.b", 4, 1),
            job("quartz-2", "birch/deep", "bea", 4, 2),
            job("seed-1", "acorn/vision", "uma.z", 8, 3),
        ],
    },
    {
        "now": LATER,
        "jobs": [
            _QUARTZ,
            running("quartz-2", "birch/deep", "bea", "n2", 4, NOON, utilization=0.01),
            job("seed-1", "acorn/vision", "uma.z", 8, 3),
            job("seed-2", "acorn/text", "kai.z", 4, 4),
            job("jasper-9", "gone", "bea", 1, 5),
        ],
    },
    {
        "now": NIGHT,
        "jobs": [
            _QUARTZ,
            running("quartz-2", "birch/deep", "bea", "n2", 4, NOON, utilization=0.01),
            job("quartz two, late", "birch/deep", "bea", 2, 6),
            job("seed-2", "acorn/text", "kai.z", 4, 4),
            job("seed-3", "acorn/text", "kai.z", 4, 5),
        ],
    },
)
EVENTS: dict[str, Any] = {
    "events": [
        {"kind": "started", "at": "2026-11-01T14:00:30Z", "job": "seed-2", "placement": [{"node": "n2", "gpus": 4}]},
        {"kind": "ended", "at": "2026-11-01T14:00:20Z", "job": "quartz-2"},
    ]
}


def seed(engine: Engine) -> None:
    """Write both clusters, decide the rounds, report the events."""
    write_config(engine, CLUSTER, json.dumps(CONFIG).encode(), 60.0)
    write_config(engine, "elsewhere", json.dumps(ELSEWHERE).encode(), 60.0)
    for request in ROUNDS:
        decide_round(engine, Posted(CLUSTER, json.dumps(request).encode()), 60.0, allocate)
    write_events(engine, CLUSTER, json.dumps(EVENTS).encode())
