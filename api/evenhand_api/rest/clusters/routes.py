"""The stateful doors' routes. Rounds go to the worker processes; the rest is short and runs in threads."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeVar

import anyio
from fastapi import FastAPI
from sqlalchemy import Connection, Engine
from starlette.requests import Request
from starlette.responses import Response

from evenhand_api.ledger.database import reading
from evenhand_api.ledger.opening import Ledger
from evenhand_api.ledger.rounds import Posted
from evenhand_api.rest.bodies import read_body
from evenhand_api.rest.clusters import reads, writes
from evenhand_api.rest.clusters.message import packed
from evenhand_api.rest.clusters.parameters import Query, cluster_name, idempotency_key
from evenhand_api.rest.clusters.speedups import answer_speedups, speedups_message
from evenhand_api.rest.problems import Answer
from evenhand_api.rest.workers import Workers
from evenhand_api.settings import Settings

T = TypeVar("T")
THREADS = 12
"""Requests that use the database at the same time in this process; fewer than the connections there may be."""
MOST_LISTED = 1_000
"""Most rounds in one list."""


class Doors:
    """What the routes share: the ledger, the worker processes, threads for the database."""

    def __init__(self, settings: Settings, workers: Workers, ledger: Ledger) -> None:
        self.settings = settings
        self._workers = workers
        self._ledger = ledger
        self._limiter: anyio.CapacityLimiter | None = None

    async def read(self, what: Callable[[Connection], T]) -> T:
        """Run a function on one moment of the ledger."""

        def work() -> T:
            with reading(self._ledger.engine()) as connection:
                return what(connection)

        return await self.in_thread(work)

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run what blocks in a thread."""
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(THREADS)
        return await anyio.to_thread.run_sync(work, limiter=self._limiter)

    async def write(self, work: Callable[[Engine], T]) -> T:
        """Run a function that writes the ledger."""
        return await self.in_thread(lambda: work(self._ledger.engine()))

    async def body(self, request: Request) -> bytes:
        """Read the request's body, and keep it for whoever has to say what is wrong with it."""
        body: bytes = await read_body(request, self.settings.max_body_bytes)
        request.state.body = body
        return body

    async def decide(self, posted: Posted) -> Answer:
        """Let a worker process decide a round."""
        await self.in_thread(self._ledger.engine)  # migrated before a worker opens it
        return await self._workers.answer(packed(self._ledger.url, posted))

    async def audit_speedups(self, name: str) -> Answer:
        """Let a worker process audit a cluster's speedups."""
        await self.in_thread(self._ledger.engine)
        return await self._workers.answer(speedups_message(self._ledger.url, name), answer_speedups)


def add_cluster_routes(app: FastAPI, settings: Settings, workers: Workers, ledger: Ledger) -> None:
    """Add the stateful routes to an application."""
    doors = Doors(settings, workers, ledger)
    _add_writes(app, doors)
    _add_reads(app, doors)


def _add_writes(app: FastAPI, doors: Doors) -> None:
    @app.put("/v1/clusters/{name}", include_in_schema=False)
    async def put_cluster(request: Request) -> Response:
        name = cluster_name(request)
        body = await doors.body(request)
        limit_s, most = doors.settings.max_time_limit_s, doors.settings.max_nodes
        versions, created = await doors.write(lambda engine: writes.write_config(engine, name, body, limit_s, most))
        return document(versions, 201 if created else 200)

    @app.post("/v1/clusters/{name}/rounds", include_in_schema=False)
    async def post_round(request: Request) -> Response:
        name, key = cluster_name(request), idempotency_key(request)
        body = await doors.body(request)
        answer = await doors.decide(Posted(name, body, key))
        return Response(answer.body, answer.status, dict(answer.headers), answer.media_type)

    @app.post("/v1/clusters/{name}/events", include_in_schema=False)
    async def post_events(request: Request) -> Response:
        name = cluster_name(request)
        body = await doors.body(request)
        return document(await doors.write(lambda engine: writes.write_events(engine, name, body)))

    @app.post("/v1/clusters/{name}/observations", include_in_schema=False)
    async def post_observations(request: Request) -> Response:
        name = cluster_name(request)
        body = await doors.body(request)
        return document(await doors.write(lambda engine: writes.write_observations(engine, name, body)))

    @app.post("/v1/clusters/{name}/adjustments", include_in_schema=False)
    async def post_adjustment(request: Request) -> Response:
        name = cluster_name(request)
        body = await doors.body(request)
        return document(await doors.write(lambda engine: writes.write_adjustment(engine, name, body)), 201)


def _add_reads(app: FastAPI, doors: Doors) -> None:
    @app.get("/v1/clusters", include_in_schema=False)
    async def list_clusters(request: Request) -> Response:
        Query(request, ())
        return document(await doors.read(reads.clusters_document))

    @app.get("/v1/clusters/{name}", include_in_schema=False)
    async def get_cluster(request: Request) -> Response:
        Query(request, ())
        name = cluster_name(request)
        return document(await doors.read(lambda connection: reads.cluster_document(connection, name)))

    @app.get("/v1/clusters/{name}/rounds", include_in_schema=False)
    async def list_rounds(request: Request) -> Response:
        query = Query(request, ("before", "most"))
        name, before = cluster_name(request), query.number("before", 0, 2**31 - 1)
        most = query.number("most", 1, MOST_LISTED) or 100
        return document(await doors.read(lambda connection: reads.rounds_document(connection, name, before, most)))

    @app.get("/v1/clusters/{name}/rounds/{n}", include_in_schema=False)
    async def get_round(request: Request) -> Response:
        Query(request, ())
        name, said = cluster_name(request), str(request.path_params["n"])
        n = int(said) if said.isascii() and said.isdecimal() and len(said) < 10 else -1
        body = await doors.read(lambda connection: reads.round_bytes(connection, name, n))
        return Response(body, 200, media_type="application/json")

    @app.get("/v1/clusters/{name}/jobs/{job:path}/explanation", include_in_schema=False)
    async def explain_job(request: Request) -> Response:
        Query(request, ())
        name, job = cluster_name(request), str(request.path_params["job"])
        return document(await doors.read(lambda connection: reads.explanation_document(connection, name, job)))

    @app.get("/v1/clusters/{name}/groups", include_in_schema=False)
    async def get_groups(request: Request) -> Response:
        at, name = Query(request, ("at",)).instant("at"), cluster_name(request)
        return document(await doors.read(lambda connection: reads.groups_document(connection, name, at)))

    @app.get("/v1/clusters/{name}/speedups", include_in_schema=False)
    async def get_speedups(request: Request) -> Response:
        Query(request, ())
        answer = await doors.audit_speedups(cluster_name(request))
        return Response(answer.body, answer.status, dict(answer.headers), answer.media_type)

    for path, report in (
        ("owed-received", reads.owed_document),
        ("occupancy", reads.occupancy_document),
        ("usage", reads.usage_document),
    ):
        _add_report(app, doors, path, report)


def _add_report(app: FastAPI, doors: Doors, path: str, report: Callable[..., reads.Document]) -> None:
    """Add a report over a period."""

    @app.get(f"/v1/clusters/{{name}}/{path}", include_in_schema=False)
    async def get_report(request: Request) -> Response:
        query, name = Query(request, ("from", "to")), cluster_name(request)
        start, end = query.instant("from"), query.instant("to")
        return document(await doors.read(lambda connection: report(connection, name, start, end)))


def document(value: reads.Document, status: int = 200) -> Response:
    """Answer with JSON."""
    return Response(json.dumps(value).encode(), status, media_type="application/json")
