"""Replays in the service's description."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from evenhand_api.rest.problems import Kind
from evenhand_api.rest.replays.routes import PATH
from evenhand_api.rest.rounds import TINY

Node = dict[str, Any]
NUMBER: Node = {
    "name": "number",
    "in": "path",
    "required": True,
    "description": "Id of the replay, as POST answered it.",
    "schema": {"type": "string", "minLength": 1},
}
ASKS = [Kind.MALFORMED, Kind.TOO_LARGE, Kind.UNSUPPORTED, Kind.INVALID, Kind.INTERNAL, Kind.OVER_CAPACITY]


def example() -> Node:
    """A request that works: three jobs, with and without the first quarter of an hour."""
    state = json.loads(TINY)["state"]
    rows = ["job_id,group,submit_s,duration_s,gpus", "a,vision,0,3600,4", "b,language,60,1800,8", "c,vision,120,600,2"]
    less = {"name": "a quarter of an hour without", "cluster": {"lose": [{"gpu_type": "h100", "until_day": 0.01}]}}
    return {
        "trace": {"name": "three jobs", "text": "\n".join(rows)},
        "cluster": {name: state[name] for name in ("gpu_types", "nodes", "groups")},
        "scenarios": [{"name": "base"}, less],
        "schedulers": ["first_fit"],
    }


def replay_paths(reply: Callable[[str, str], Node], problems: Callable[[list[Kind]], Node]) -> Node:
    """Describe all operations on replays; `reply` and `problems` write responses."""
    listed = {"type": "array", "items": {"$ref": "#/components/schemas/ReplayStatus"}}
    taken = reply("It was taken in; Location is where it is watched.", "ReplayStatus")
    taken["headers"] = {
        "Location": {"description": "Path of the replay.", "required": True, "schema": {"type": "string"}}
    }
    stream = {"schema": {"type": "string", "description": "One event a change, its data a ReplayStatus."}}
    found = problems([Kind.NOT_FOUND])
    finished = problems([Kind.NOT_FOUND, Kind.NOT_FINISHED])
    return {
        PATH: {
            "post": {
                "operationId": "whatif",
                "summary": "Replay a trace in the background",
                "description": "Takes a trace, a cluster and scenarios; replays them with the engine itself or a "
                "comparator, in a process of its own. The request is checked whole before it is taken in.",
                "requestBody": {
                    "required": True,
                    "description": "The jobs, the cluster, and what to set side by side.",
                    "content": {
                        "application/json": {
                            "schema": {"$ref": "#/components/schemas/ReplayRequest"},
                            "examples": {"three_jobs": {"value": example()}},
                        }
                    },
                },
                "responses": {"202": taken} | problems(ASKS),
            },
            "get": {
                "operationId": "replays",
                "summary": "List replays",
                "description": "All that run or wait and the last that are over, those asked last first.",
                "responses": {
                    "200": {"description": "The replays.", "content": {"application/json": {"schema": listed}}}
                },
            },
        },
        PATH + "/{number}": {
            "parameters": [NUMBER],
            "get": {
                "operationId": "replay",
                "summary": "How far is a replay",
                "description": "Where it stands, and how much of it is done.",
                "responses": {"200": reply("Its status.", "ReplayStatus")} | found,
            },
            "delete": {
                "operationId": "cancelReplay",
                "summary": "Take a replay back",
                "description": "Ends it at once, waiting or running; one that is over stays as it is.",
                "responses": {"200": reply("Its status now.", "ReplayStatus")} | found,
            },
        },
        PATH + "/{number}/events": {
            "parameters": [NUMBER],
            "get": {
                "operationId": "replayEvents",
                "summary": "Watch a replay",
                "description": "Server-sent events: its status whenever it changes, until it is over.",
                "responses": {"200": {"description": "Events.", "content": {"text/event-stream": stream}}} | found,
            },
        },
        PATH + "/{number}/result": {
            "parameters": [NUMBER],
            "get": {
                "operationId": "replayResult",
                "summary": "What came of a replay",
                "description": "Figures of all runs side by side, and everything about every run.",
                "responses": {"200": reply("The outcome.", "ReplayOutcome")} | finished,
            },
        },
        PATH + "/{number}/report": {
            "parameters": [NUMBER],
            "get": {
                "operationId": "replayReport",
                "summary": "A replay as a page",
                "description": "One HTML page with plots; it needs no network. Needs matplotlib on the service.",
                "responses": {
                    "200": {"description": "The page.", "content": {"text/html": {"schema": {"type": "string"}}}}
                }
                | finished,
            },
        },
    }
