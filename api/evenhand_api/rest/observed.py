"""What is written down of every request: its id, how it was answered, how long it took."""

from __future__ import annotations

import logging
import re
import time
import uuid

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenhand_api.logs import FACTS, request_id
from evenhand_api.metrics import Metrics

log = logging.getLogger("evenhand_api.requests")
QUIET = frozenset({"/healthz", "/readyz", "/metrics"})
"""Asked all day long by machines: written down at level debug."""
HEADER = b"x-request-id"
_is_id = re.compile(rb"[A-Za-z0-9._-]{1,64}").fullmatch


class Observed:
    """ASGI middleware around everything else."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request and write it down."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = next((value for name, value in scope["headers"] if name == HEADER), b"")
        known_as = given if _is_id(given) else uuid.uuid4().hex.encode()
        token = request_id.set(known_as.decode())
        began = time.monotonic()
        status = 500

        async def tell(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (HEADER, known_as)]
            await send(message)

        try:
            await self._app(scope, receive, tell)
        finally:
            self._write(scope, status, time.monotonic() - began)
            request_id.reset(token)

    def _write(self, scope: Scope, status: int, took_s: float) -> None:
        route = scope.get("state", {}).get("route", "none")
        self._metrics.request(route, scope["method"] if route != "none" else "any", status, took_s)
        grant = scope.get("state", {}).get("grant")
        facts = {
            "method": scope["method"],
            "path": scope["path"],
            "status": status,
            "ms": round(1_000 * took_s, 1),
            "token": getattr(grant, "token", "") or None,
        }
        level = logging.DEBUG if scope["path"] in QUIET else logging.INFO
        log.log(level, "answered", extra={FACTS: {name: value for name, value in facts.items() if value is not None}})
