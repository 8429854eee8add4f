"""Running the service: the address, the server, the last line."""

from __future__ import annotations

import socket

import uvicorn

from evenhand_api.access.tokens import any_token
from evenhand_api.commands.terminal import Failure, say
from evenhand_api.ledger.database import reading
from evenhand_api.ledger.errors import LedgerUnavailable
from evenhand_api.ledger.opening import Ledger
from evenhand_api.logs import write_log
from evenhand_api.rest import create_app
from evenhand_api.rest.workers import Workers
from evenhand_api.settings import Settings
from evenhand_api.slow_clients import server_options


def serve(settings: Settings) -> None:
    """Serve until a signal ends it; requests that are being solved are answered first.

    Raises
    ------
    Failure
        If the address cannot be had, or callers need a token and there is none.
    """
    write_log(settings.log_format, settings.log_level)
    if settings.tokens_required:
        _need_a_token(settings)
    listener = listen(settings)
    host, port = listener.getsockname()[:2]
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    say(f"evenhand: serving on http://{address} (documentation at /docs), Ctrl-C ends it")
    app = create_app(settings)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=max(1, round(settings.stop_within_s)) + 5,
        **server_options(settings.header_timeout_s, settings.max_connections),
    )
    with listener:
        _Server(config, app.state.workers).run([listener])


def listen(settings: Settings) -> socket.socket:
    """Open the address.

    Raises
    ------
    Failure
        If it cannot be had.
    """
    try:
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        listener = socket.create_server((settings.host, settings.port), family=family, backlog=128)
    except OSError as reason:
        raise Failure(
            f"cannot listen on {settings.host} port {settings.port}: {reason.strerror or reason}; "
            "--port or EVENHAND_PORT chooses another port."
        ) from None
    # asyncio does this for sockets that name their protocol, which those of create_server do not. Without it every
    # answer on a connection that is kept waits 40 ms for an acknowledgement.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


class _Server(uvicorn.Server):
    """Uvicorn's server, which tells the processes' queue as soon as it stops."""

    def __init__(self, config: uvicorn.Config, workers: Workers) -> None:
        super().__init__(config)
        self._workers = workers

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let what is in hand finish, refuse what waits."""
        self._workers.drain()
        await super().shutdown(sockets)


def _need_a_token(settings: Settings) -> None:
    """Refuse to serve where nobody could ask anything.

    Raises
    ------
    Failure
        If the ledger has no token that works, or cannot be opened.
    """
    ledger = Ledger(settings)
    try:
        with reading(ledger.engine()) as connection:
            if any_token(connection):
                return
    except LedgerUnavailable as away:
        raise Failure(f"tokens are needed to serve on {settings.host}, and {away}.") from None
    finally:
        ledger.close()
    raise Failure(
        f"not serving on {settings.host} without a token: anybody who can reach it could decide who gets which GPUs. "
        "Make one with: evenhand token create NAME --scope administer"
    )
