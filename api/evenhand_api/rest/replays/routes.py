"""The doors to replays: POST, status, server-sent events, outcome, report, DELETE."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse

from evenhand_api.rest.bodies import read_body
from evenhand_api.rest.problems import Kind, Refusal
from evenhand_api.rest.replays.house import House, Replay
from evenhand_api.rest.replays.process import answer_check
from evenhand_api.rest.workers import Workers
from evenhand_api.settings import Settings
from evenhand_models.replays import ReplayState

PATH = "/v1/whatif"
HEARTBEAT_S = 15.0
PAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def add_replay_routes(app: FastAPI, settings: Settings, workers: Workers, house: House) -> None:
    """Add the routes to the service."""

    # One route a path: the framework's Allow header names the methods of one route only.
    @app.api_route(PATH, methods=["GET", "POST"], include_in_schema=False)
    async def ask_or_list(request: Request) -> Response:
        if request.method == "GET":
            return JSONResponse([replay.status().model_dump(mode="json") for replay in house.all()])
        house.check_room()
        body = await read_body(request, settings.max_body_bytes)
        answer = await workers.answer(body, answer_check)
        if answer.status != 202:
            return Response(answer.body, answer.status, dict(answer.headers), answer.media_type)
        replay = house.take(body, int(answer.body))
        return _status(replay, 202, {"Location": f"{PATH}/{replay.number}"})

    @app.api_route(PATH + "/{number}", methods=["GET", "DELETE"], include_in_schema=False)
    async def status_or_cancel(request: Request, number: str) -> Response:
        replay = house.find(number)
        if request.method == "DELETE":
            house.cancel(replay)
        return _status(replay)

    @app.get(PATH + "/{number}/events", include_in_schema=False)
    async def events(number: str) -> Response:
        stream = _events(house.find(number))
        return StreamingResponse(stream, media_type="text/event-stream", headers={"Cache-Control": "no-store"})

    @app.get(PATH + "/{number}/result", include_in_schema=False)
    async def result(number: str) -> Response:
        return Response(_done(house.find(number)).outcome, media_type="application/json")

    @app.get(PATH + "/{number}/report", include_in_schema=False)
    async def report(number: str) -> Response:
        page = _done(house.find(number)).page
        if page is None:
            raise Refusal(Kind.NOT_FOUND, "There is no report: plots need matplotlib, the extra evenhand[plot].")
        return HTMLResponse(page, headers={"Content-Security-Policy": PAGE_POLICY})


def _status(replay: Replay, code: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(replay.status().model_dump_json(), code, headers, "application/json")


def _done(replay: Replay) -> Replay:
    """The replay, if it is done.

    Raises
    ------
    Refusal
        409 if it is not.
    """
    if replay.state is not ReplayState.DONE:
        why = f" {replay.detail}" if replay.detail else ""
        raise Refusal(Kind.NOT_FINISHED, f"Replay {replay.number} is {replay.state}, not done.{why}")
    return replay


async def _events(replay: Replay) -> AsyncIterator[str]:
    """Yield the status whenever it changes, until it is over; a comment now and then keeps the line open."""
    said = ""
    while True:
        changed = replay.changed
        now = replay.status().model_dump_json()
        if now != said:
            said = now
            yield f"event: {replay.state}\ndata: {now}\n\n"
        if replay.over:
            return
        try:
            await asyncio.wait_for(changed.wait(), HEARTBEAT_S)
        except TimeoutError:
            yield ": still there\n\n"
