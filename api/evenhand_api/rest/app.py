"""The service as an ASGI application: routes, and how errors leave."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Match

from evenhand_api import __version__
from evenhand_api.ledger.errors import LedgerUnavailable
from evenhand_api.ledger.opening import Ledger
from evenhand_api.metrics import Metrics
from evenhand_api.metrics.owed import OwedGauge
from evenhand_api.rest.bodies import read_body
from evenhand_api.rest.clusters import add_cluster_routes
from evenhand_api.rest.clusters.solve import answer_any
from evenhand_api.rest.docs import CONTENT_SECURITY_POLICY, docs_page
from evenhand_api.rest.forecasts import add_forecast_route
from evenhand_api.rest.guard import Guard
from evenhand_api.rest.observed import Observed
from evenhand_api.rest.openapi import openapi_document
from evenhand_api.rest.problems import KINDS_OF_STATUSES, Answer, Kind, Refusal, problem, problem_of
from evenhand_api.rest.readiness import LedgerCheck
from evenhand_api.rest.replays import House, add_replay_routes
from evenhand_api.rest.rounds import TINY, answer_fairness
from evenhand_api.rest.speedups import answer_audit_speedups
from evenhand_api.rest.workers import Work, Workers
from evenhand_api.settings import Settings
from evenhand_models import EvenhandError

log = logging.getLogger(__name__)


class Service(FastAPI):
    """FastAPI that describes itself from the models' own JSON Schema."""

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI 3.1 document."""
        if self.openapi_schema is None:
            self.openapi_schema = openapi_document()
        return self.openapi_schema


def create_app(settings: Settings | None = None, work: Work = answer_any) -> Service:
    """Build the service.

    Parameters
    ----------
    settings : Settings, optional
        How it runs; left out: all defaults. The environment is read by the command line, not here.
    work : callable, optional
        What its processes do with a body; for tests. A module's top-level function.
    """
    settings = settings or Settings()
    metrics = Metrics()
    workers = Workers(settings, work, TINY, metrics)
    ledger = Ledger(settings)
    house = House(settings.max_replays, settings.max_waiting_replays, settings.keep_replays)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        workers.start()
        house.start()
        opening = asyncio.create_task(asyncio.to_thread(_open, ledger))
        try:
            yield
        finally:
            await house.close()
            await workers.close()
            await opening
            ledger.close()

    app = Service(
        title="evenhand",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    _add_routes(app, settings, workers, LedgerCheck(ledger))
    add_forecast_route(app, settings, workers)
    add_replay_routes(app, settings, workers, house)
    _add_metrics(app, metrics, OwedGauge(ledger, settings.metrics_owed_hours))
    add_cluster_routes(app, settings, workers, ledger)
    _add_error_handlers(app)
    app.state.ledger, app.state.workers = ledger, workers
    app.add_middleware(
        Guard,
        routes=app.router.routes,
        ledger=ledger,
        required=settings.tokens_required,
        most_bytes=settings.max_body_bytes,
        body_within_s=settings.body_timeout_s,
    )
    app.add_middleware(Observed, metrics=metrics)
    return app


def _open(ledger: Ledger) -> None:
    """Migrate the ledger's database; where it is away, the first request that needs it tries again."""
    try:
        ledger.engine()
    except LedgerUnavailable as reason:
        log.error("%s; the stateful operations answer 503 until it can", reason)


def _add_routes(app: Service, settings: Settings, workers: Workers, database: LedgerCheck) -> None:
    @app.post("/v1/allocate", include_in_schema=False)
    async def allocate(request: Request) -> Response:
        body = await read_body(request, settings.max_body_bytes)
        return _response(await workers.answer(body))

    @app.post("/v1/audit/speedups", include_in_schema=False)
    async def audit_speedups(request: Request) -> Response:
        body = await read_body(request, settings.max_body_bytes)
        return _response(await workers.answer(body, answer_audit_speedups))

    @app.post("/v1/fairness", include_in_schema=False)
    async def fairness(request: Request) -> Response:
        body = await read_body(request, settings.max_body_bytes)
        return _response(await workers.answer(body, answer_fairness))

    @app.get("/healthz", include_in_schema=False)
    async def healthz() -> Response:
        return JSONResponse({"status": "alive", "version": __version__})

    @app.get("/readyz", include_in_schema=False)
    async def readyz() -> Response:
        complaint = workers.complaint or await database.complaint()
        if complaint is not None:
            raise Refusal(Kind.NOT_READY, complaint, {"Retry-After": "2"})
        return JSONResponse({"status": "ready", "requests_in_house": workers.in_house})

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        headers = {"Content-Security-Policy": CONTENT_SECURITY_POLICY}
        return HTMLResponse(docs_page(app.openapi()), headers=headers)


def _add_metrics(app: Service, metrics: Metrics, owed: OwedGauge) -> None:
    metrics.watch_owed(lambda: owed.rows)
    metrics.watch(lambda: [("ledger_up", "Whether the ledger answered when last asked for metrics.", owed.up)])

    @app.get("/metrics", include_in_schema=False)
    async def prometheus() -> Response:
        await asyncio.to_thread(owed.refresh)
        return Response(metrics.written(), media_type=CONTENT_TYPE_LATEST)


def _add_error_handlers(app: Service) -> None:
    @app.exception_handler(Refusal)
    async def refused(_: Request, refusal: Refusal) -> Response:
        return _response(problem(refusal.kind, refusal.detail, headers=refusal.headers))

    @app.exception_handler(EvenhandError)
    async def by_us(request: Request, error: EvenhandError) -> Response:
        body = getattr(request.state, "body", None)
        answer = problem_of(error, body)
        if answer is None:
            raise error
        return _response(answer)

    @app.exception_handler(HTTPException)
    async def by_framework(request: Request, error: HTTPException) -> Response:
        kind = KINDS_OF_STATUSES.get(error.status_code, Kind.HTTP)
        detail = f"{request.method} {request.url.path}: {error.detail}."
        headers = dict(error.headers or {})
        if kind is Kind.METHOD_NOT_ALLOWED:
            headers["Allow"] = ", ".join(_methods_at(request))
        return _response(problem(kind, detail, headers=headers))

    @app.exception_handler(Exception)
    async def defect(_: Request, __: Exception) -> Response:  # the server logs the traceback
        return _response(problem(Kind.INTERNAL, "The request could not be served. The service's log has the details."))


def _methods_at(request: Request) -> list[str]:
    """List the methods a path has: each of its routes knows only its own; a path by its name goes before a pattern."""
    found = [route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE]
    exact = [route for route in found if getattr(route, "path", "") == request.url.path]
    return sorted({method for route in exact or found for method in getattr(route, "methods", None) or ()})


def _response(answer: Answer) -> Response:
    return Response(answer.body, answer.status, dict(answer.headers), answer.media_type)


def openapi_bytes() -> bytes:
    """Return the OpenAPI document as indented JSON."""
    return json.dumps(openapi_document(), indent=2).encode() + b"\n"
