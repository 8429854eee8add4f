"""A server that costs a fork to start: it decides rounds and records events over a pipe, and may be killed any time."""

from __future__ import annotations

import json
import multiprocessing
from multiprocessing.connection import Connection
from random import Random
from typing import Any

from sqlalchemy import Engine

from evenhand import allocate
from evenhand_api.ledger.clusters import find_cluster
from evenhand_api.ledger.database import open_engine, writing
from evenhand_api.ledger.events import record_events
from evenhand_api.ledger.rounds import Posted, decide_round
from evenhand_api.ledger.turns import turn
from evenhand_api.ledger.words import EventBatch
from evenhand_models.parse import parse_fields


def serve_one(engine: Engine, kind: str, key: str, body: bytes) -> bytes:
    """Do one request as the service does it."""
    if kind == "round":
        return decide_round(engine, Posted("lab", body, key), 60.0, allocate)[0]
    with writing(engine) as connection:
        batch = parse_fields(body, EventBatch)
        record_events(connection, find_cluster(connection, "lab", lock=True), batch.events)
    return b"{}"


_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["evenhand", "evenhand_api.ledger.rounds", "evenhand_api.ledger.events"])


class Forked:
    """A server in a process forked from one that has the solver loaded."""

    def __init__(self, url: str) -> None:
        self._near, far = _processes.Pipe()
        self._process = _processes.Process(target=_live, args=(far, url), daemon=True)
        self._process.start()
        far.close()

    def ask(self, request: tuple[str, str, bytes], within_s: float | None) -> bytes | None:
        """Send a request; None if there was no answer in time."""
        self._near.send(request)
        if not self._near.poll(within_s):
            return None
        answer: bytes = self._near.recv_bytes()
        return answer

    def kill(self) -> None:
        self._process.kill()
        self._process.join()
        self._near.close()


def _live(pipe: Connection, url: str) -> None:
    engine = open_engine(url)
    while True:
        try:
            request = pipe.recv()
        except EOFError:
            return
        pipe.send_bytes(serve_one(engine, *request))


class Killed:
    """A client whose server is killed `kills` times at random moments; it sends again what was not answered."""

    def __init__(self, url: str, kills: int, seed: int, longest_s: float) -> None:
        self._url, self._left = url, kills
        self._rng = Random(seed)
        self._longest_s = longest_s
        self.kills = 0
        self._server = Forked(url)

    def send(self, kind: str, key: str, body: bytes) -> dict[str, Any]:
        while True:
            deadly = self._left > 0 and self._rng.random() < 0.7
            patience = self._rng.uniform(0, self._longest_s) if deadly else 60.0
            answer = self._server.ask((kind, key, body), patience)
            if not deadly:  # how often it is killed depends on the seed alone, when it is on the machine too
                assert answer is not None, "the server died by itself, or did not answer"
                found: dict[str, Any] = json.loads(answer)
                return found
            self._left -= 1
            self.kills += 1
            self._server.kill()  # in the middle of it, or when it was done and the answer was lost
            self._server = Forked(self._url)

    def close(self) -> None:
        self._server.kill()


class Holding:
    """A process that has the turn of the first cluster and never gives it back."""

    def __init__(self, url: str) -> None:
        self._near, far = _processes.Pipe()
        self._process = _processes.Process(target=_hold, args=(far, url), daemon=True)
        self._process.start()
        assert self._near.recv_bytes() == b"held"

    def kill(self) -> None:
        self._process.kill()
        self._process.join()


def _hold(pipe: Connection, url: str) -> None:
    with turn(open_engine(url), 1):
        pipe.send_bytes(b"held")
        pipe.recv_bytes()  # nothing ever comes
