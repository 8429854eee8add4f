"""A service whose rounds are solved in the test's own process: nothing to start, nothing to wait for."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.testclient import TestClient

from evenhand_api.metrics import Metrics
from evenhand_api.rest import create_app
from evenhand_api.rest.clusters.solve import answer_any
from evenhand_api.rest.problems import Answer
from evenhand_api.rest.workers import Work
from evenhand_api.settings import Settings


def inline_client(settings: Settings) -> TestClient:
    """Return a client of the whole application; no process is ever started."""
    app = create_app(settings)
    workers: Any = app.state.workers
    metrics: Metrics = workers._metrics

    async def answer(body: bytes, work: Work | None = None) -> Answer:
        done = await asyncio.to_thread(work or answer_any, body, settings.max_time_limit_s)
        if done.figures is not None:
            metrics.round(done.figures, 0.1)
        return done

    workers.answer = answer
    workers.start = lambda: None
    return TestClient(app, raise_server_exceptions=False)
