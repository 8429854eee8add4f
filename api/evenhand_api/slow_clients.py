"""Connections whose request's head does not come: closed after a while, which uvicorn by itself does not do."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


def protocol_with(head_within_s: float) -> type[H11Protocol]:
    """Return uvicorn's HTTP protocol, closing connections that take longer for a request's head."""

    class Impatient(H11Protocol):
        """HTTP/1.1 with a time limit from the connection, or a head's first byte, to the head's end."""

        _alarm: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            """Start the clock."""
            super().connection_made(transport)
            self._start()

        def data_received(self, data: bytes) -> None:
            """Stop the clock once the head is there; start it when a next head begins."""
            super().data_received(data)
            if self.conn.their_state is not h11.IDLE:
                self._stop()
            elif self._alarm is None and self.conn.trailing_data[0]:
                self._start()

        def connection_lost(self, exc: Exception | None) -> None:
            """Forget the clock."""
            self._stop()
            super().connection_lost(exc)

        def _start(self) -> None:
            self._alarm = self.loop.call_later(head_within_s, self._too_slow)

        def _stop(self) -> None:
            if self._alarm is not None:
                self._alarm.cancel()
                self._alarm = None

        def _too_slow(self) -> None:
            self._alarm = None
            if self.transport is not None and not self.transport.is_closing():
                self.transport.abort()

    return Impatient


def server_options(header_timeout_s: float, max_connections: int) -> dict[str, Any]:
    """Return what uvicorn is told about connections."""
    return {
        "http": protocol_with(header_timeout_s),
        "timeout_keep_alive": max(1, round(header_timeout_s)),
        "limit_concurrency": max_connections,
    }
