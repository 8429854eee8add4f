"""The guard before all routes: who is asking, may they, and how much of the answer do they see."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import anyio
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenhand_api.access.grants import EVERYTHING, Grant
from evenhand_api.access.secrets import read_secret
from evenhand_api.access.tokens import grant_of
from evenhand_api.access.view import View, view_of
from evenhand_api.ledger.database import reading
from evenhand_api.ledger.opening import Ledger
from evenhand_api.rest.bodies import read_body, read_raw, timed
from evenhand_api.rest.checks import forbidden
from evenhand_api.rest.problems import Answer, Kind, Refusal, problem, problem_of
from evenhand_api.rest.rules import CLUSTER_LIST, RULES, Rule
from evenhand_models import EvenhandError

log = logging.getLogger(__name__)
T = TypeVar("T")
LOOKUPS = 8
"""Tokens looked up and answers cut at the same time."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The route a request goes to: its row's key, the names in its path."""

    key: tuple[str, str]
    path: Mapping[str, str]


class Guard:
    """ASGI middleware that lets through what `RULES` allows, and nothing else.

    Parameters
    ----------
    app : what is guarded.
    routes : its routes, to know beforehand where a request goes.
    ledger : where tokens and trees are.
    required : whether callers without a token are refused.
    most_bytes : largest body in bytes.
    body_within_s : seconds within which a body must have come.
    """

    def __init__(
        self,
        app: ASGIApp,
        routes: Sequence[BaseRoute],
        ledger: Ledger,
        *,
        required: bool,
        most_bytes: int,
        body_within_s: float,
    ) -> None:
        self._app = app
        self._routes = routes
        self._ledger = ledger
        self._required = required
        self._most_bytes = most_bytes
        self._body_within_s = body_within_s
        self._limiter: anyio.CapacityLimiter | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            raise RuntimeError(f"no {scope['type']} is served here")
        try:
            await self._serve(scope, timed(receive, self._body_within_s), send)
        except Refusal as refusal:
            await _written(problem(refusal.kind, refusal.detail, headers=refusal.headers))(scope, receive, send)
        except EvenhandError as error:
            answer = problem_of(error)
            if answer is None:
                raise
            await _written(answer)(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = self._asked(scope)
        rule = None if asked is None else RULES.get(asked.key)
        if asked is not None:
            scope.setdefault("state", {})["route"] = asked.key[1]
        if rule is not None and rule.scope is None:
            await self._app(scope, receive, send)
            return
        grant = await self._grant(scope)
        scope.setdefault("state", {})["grant"] = grant
        if asked is None:  # no such route: 404 or 405, but only to those who may ask at all
            await self._app(scope, receive, send)
            return
        if rule is None:
            log.error("%s %s has no row in the table of rules: refused", *asked.key)
            raise forbidden()
        self._allow(rule, grant, asked)
        if grant.whole_tree and (grant.cluster is None or asked.key != CLUSTER_LIST):
            await self._app(scope, receive, send)
        else:
            await self._serve_part(rule, grant, asked, scope, receive, send)

    def _asked(self, scope: Scope) -> Asked | None:
        for route in self._routes:
            match, child = route.matches(scope)
            if match is Match.FULL:
                method = "GET" if scope["method"] == "HEAD" else scope["method"]
                path = {name: str(value) for name, value in child.get("path_params", {}).items()}
                return Asked((method, str(getattr(route, "path", ""))), path)
        return None

    async def _grant(self, scope: Scope) -> Grant:
        """Say what the caller may do.

        Raises
        ------
        Refusal
            401 without a token where one is needed, or with one that does not work.
        """
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if not given:
            if self._required:
                raise _unauthenticated("This needs a token: Authorization: Bearer evh_...", "")
            return EVERYTHING
        kind, _, value = given[0].decode("latin-1").partition(" ")
        secret = read_secret(value.strip()) if kind.lower() == "bearer" and len(given) == 1 else None
        grant = None if secret is None else await self._read(lambda connection: grant_of(connection, secret))
        if grant is None:
            raise _unauthenticated("This is no token that works here.", ', error="invalid_token"')
        return grant

    def _allow(self, rule: Rule, grant: Grant, asked: Asked) -> None:
        """Check what needs no look into the ledger.

        Raises
        ------
        Refusal
            403 without the scope, for another cluster, or where a part of the tree is not enough.
        """
        if rule.scope not in grant.scopes:
            raise Refusal(Kind.FORBIDDEN, f"This token lacks the scope {rule.scope}.")
        if rule.all_clusters and grant.cluster is not None:
            raise forbidden()
        if "name" in asked.path and not grant.reaches(asked.path["name"]):
            raise forbidden()
        if not grant.whole_tree and rule.cut is None and asked.key != CLUSTER_LIST:
            raise forbidden()

    async def _serve_part(
        self, rule: Rule, grant: Grant, asked: Asked, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Let the route answer, and pass on what the token covers of it."""
        if rule.check is not None:
            receive = await self._checked(rule, grant, asked, scope, receive)
        elif asked.key != CLUSTER_LIST:
            await self._read(lambda connection: _view(connection, grant, asked))
        held = _Held()
        await self._app(scope, receive, held.send)
        if held.status != 200:
            await held.pass_on(send)
            return
        document = json.loads(held.body)
        cut = await self._read(lambda connection: _cut(connection, rule, grant, asked, document))
        answer = Response(json.dumps(cut).encode(), 200, {"Evenhand-View": "part"}, "application/json")
        await answer(scope, receive, send)

    async def _checked(self, rule: Rule, grant: Grant, asked: Asked, scope: Scope, receive: Receive) -> Receive:
        """Check what a request speaks of; returns its body to be read once more."""
        raw = b""
        body = b""
        if scope["method"] not in {"GET", "HEAD"}:
            raw = await read_raw(Request(scope, receive), self._most_bytes)
            body = await read_body(Request(scope, _again(raw, receive)), self._most_bytes)
        check = rule.check
        assert check is not None
        await self._read(lambda connection: check(_view(connection, grant, asked), asked.path, body))
        return _again(raw, receive)

    async def _read(self, what: Callable[[Connection], T]) -> T:
        """Run a function on one moment of the ledger, in a thread."""

        def work() -> T:
            with reading(self._ledger.engine()) as connection:
                return what(connection)

        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(LOOKUPS)
        return await anyio.to_thread.run_sync(work, limiter=self._limiter)


class _Held:
    """An answer held back until it is known what of it may be seen."""

    def __init__(self) -> None:
        self._messages: list[Message] = []

    async def send(self, message: Message) -> None:
        self._messages.append(message)

    @property
    def status(self) -> int:
        return int(self._messages[0]["status"])

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self._messages[1:])

    async def pass_on(self, send: Send) -> None:
        for message in self._messages:
            await send(message)


def _view(connection: Connection, grant: Grant, asked: Asked) -> View:
    """Return what the token sees of the cluster in the path; nothing and no cluster are refused alike."""
    view = view_of(connection, asked.path["name"], grant)
    if view is None:
        raise forbidden()
    return view


def _cut(connection: Connection, rule: Rule, grant: Grant, asked: Asked, document: dict[str, Any]) -> dict[str, Any]:
    if asked.key == CLUSTER_LIST:
        seen = [name for name in document["clusters"] if view_of(connection, name, grant) is not None]
        return document | {"clusters": seen}
    assert rule.cut is not None
    return rule.cut(document, _view(connection, grant, asked))


def _again(raw: bytes, receive: Receive) -> Receive:
    """Give a body that has been read once more, then whatever follows it."""
    waiting: list[Message] = [{"type": "http.request", "body": raw, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay


def _unauthenticated(detail: str, more: str) -> Refusal:
    return Refusal(Kind.UNAUTHENTICATED, detail, {"WWW-Authenticate": f'Bearer realm="evenhand"{more}'})


def _written(answer: Answer) -> Response:
    return Response(answer.body, answer.status, dict(answer.headers), answer.media_type)
