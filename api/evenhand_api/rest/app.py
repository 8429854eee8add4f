"""The service as an ASGI application: routes, and how errors leave."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from evenhand_api import __version__
from evenhand_api.rest.bodies import read_body
from evenhand_api.rest.docs import CONTENT_SECURITY_POLICY, docs_page
from evenhand_api.rest.openapi import openapi_document
from evenhand_api.rest.problems import KINDS_OF_STATUSES, Answer, Kind, Refusal, problem
from evenhand_api.rest.rounds import TINY, answer_allocate, answer_fairness
from evenhand_api.rest.speedups import answer_audit_speedups
from evenhand_api.rest.workers import Work, Workers
from evenhand_api.settings import Settings

log = logging.getLogger(__name__)


class Service(FastAPI):
    """FastAPI that describes itself from the models' own JSON Schema."""

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI 3.1 document."""
        if self.openapi_schema is None:
            self.openapi_schema = openapi_document()
        return self.openapi_schema


def create_app(settings: Settings | None = None, work: Work = answer_allocate) -> Service:
    """Build the service.

    Parameters
    ----------
    settings : Settings, optional
        How it runs; left out: all defaults. The environment is read by the command line, not here.
    work : callable, optional
        What its processes do with a body; for tests. A module's top-level function.
    """
    settings = settings or Settings()
    workers = Workers(settings, work, TINY)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        workers.start()
        try:
            yield
        finally:
            await workers.close()

    app = Service(
        title="evenhand",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    _add_routes(app, settings, workers)
    _add_error_handlers(app)
    return app


def _add_routes(app: Service, settings: Settings, workers: Workers) -> None:
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
        if workers.complaint is not None:
            raise Refusal(Kind.NOT_READY, workers.complaint, {"Retry-After": "2"})
        return JSONResponse({"status": "ready", "requests_in_house": workers.in_house})

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        headers = {"Content-Security-Policy": CONTENT_SECURITY_POLICY}
        return HTMLResponse(docs_page(app.openapi()), headers=headers)


def _add_error_handlers(app: Service) -> None:
    @app.exception_handler(Refusal)
    async def refused(_: Request, refusal: Refusal) -> Response:
        return _response(problem(refusal.kind, refusal.detail, headers=refusal.headers))

    @app.exception_handler(HTTPException)
    async def by_framework(request: Request, error: HTTPException) -> Response:
        kind = KINDS_OF_STATUSES.get(error.status_code, Kind.HTTP)
        detail = f"{request.method} {request.url.path}: {error.detail}."
        return _response(problem(kind, detail, headers=error.headers))

    @app.exception_handler(Exception)
    async def defect(_: Request, __: Exception) -> Response:  # the server logs the traceback
        return _response(problem(Kind.INTERNAL, "The request could not be served. The service's log has the details."))


def _response(answer: Answer) -> Response:
    return Response(answer.body, answer.status, dict(answer.headers), answer.media_type)


def openapi_bytes() -> bytes:
    """Return the OpenAPI document as indented JSON."""
    return json.dumps(openapi_document(), indent=2).encode() + b"\n"
