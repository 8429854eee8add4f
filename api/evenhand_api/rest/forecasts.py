"""POST /v1/whatif/start: would a job start if it came now. A worker's work, its route and its description."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from evenhand_api.rest.bodies import read_body
from evenhand_api.rest.problems import Answer, Kind
from evenhand_api.rest.rounds import TINY, answer_error
from evenhand_api.rest.workers import Workers
from evenhand_api.settings import Settings
from evenhand_models import FieldError, InvalidInput
from evenhand_models.whatif import parse_whatif_start

PATH = "/v1/whatif/start"
MOST_ROUNDS = 24
KINDS = (Kind.MALFORMED, Kind.TOO_LARGE, Kind.UNSUPPORTED, Kind.INVALID, Kind.INTERNAL, Kind.OVER_CAPACITY)
"""Problems it answers with."""


def answer_whatif_start(body: bytes, max_time_limit_s: float) -> Answer:
    """Answer POST /v1/whatif/start; so many later rounds are decided as fit into `max_time_limit_s` seconds."""
    try:
        from evenhand.whatif import what_if_start  # only in a worker: the serving process never loads a solver

        asked = parse_whatif_start(body)
        limit_s = 5.0 if asked.policy is None else asked.policy.time_limit_s
        if limit_s > max_time_limit_s:
            message = f"time_limit_s is {limit_s:g}, above the {max_time_limit_s:g} this service allows."
            raise InvalidInput([FieldError("/policy/time_limit_s", message)])
        rounds = max(0, int(min(MOST_ROUNDS, max_time_limit_s / limit_s - 2)))
        answer = what_if_start(asked.state, asked.add, asked.policy, rounds=rounds)
        return Answer(200, "application/json", answer.model_dump_json().encode())
    except Exception as error:  # noqa: BLE001 - whatever it is, it becomes one answer and one line in the log
        return answer_error(error, body)


def add_forecast_route(app: FastAPI, settings: Settings, workers: Workers) -> None:
    """Add the route to the service."""

    @app.post(PATH, include_in_schema=False)
    async def whatif_start(request: Request) -> Response:
        body = await read_body(request, settings.max_body_bytes)
        answer = await workers.answer(body, answer_whatif_start)
        return Response(answer.body, answer.status, dict(answer.headers), answer.media_type)


def example() -> Mapping[str, Any]:
    """A request that works."""
    job = {
        "id": "maybe-1",
        "group": "vision",
        "gpus": 4,
        "speedup": {"h100": 1.0},
        "contract": {"min_runtime_s": 3_600, "resumable": True},
    }
    document: dict[str, Any] = json.loads(TINY)
    return document | {"add": [job]}
