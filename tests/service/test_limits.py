"""Sizes, memory, slow clients, the way down: what a service that runs for years refuses or outlives."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.requests import Request
from starlette.types import Message

from evenhand_api.rest import limits
from evenhand_api.rest.bodies import timed
from evenhand_api.rest.limits import Limits, check_size, enforce, resident_mb
from evenhand_api.rest.problems import Answer, Kind, Refusal
from evenhand_api.rest.readiness import LedgerCheck
from evenhand_api.rest.rounds import TINY, answer_allocate
from evenhand_api.rest.slots import Slot, Task
from evenhand_api.rest.workers import Workers
from evenhand_api.settings import Settings
from evenhand_api.slow_clients import server_options
from evenhand_models import parse_request
from service.departments import CLUSTER, CONFIG, ROUNDS
from service.inline import inline_client


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits._InForce, "limits", Limits(max_jobs=1, max_nodes=1))


@pytest.mark.usefixtures("small")
def test_a_state_with_too_many_jobs_is_refused_by_number_and_pointer() -> None:
    answer = answer_allocate(TINY, 60.0)
    assert answer.status == 422
    (error,) = json.loads(answer.body)["errors"]
    assert error == {"pointer": "/state/jobs", "message": "2 jobs are more than the 1 this service takes (max_jobs)."}


@pytest.mark.usefixtures("small")
def test_a_round_with_too_many_nodes_is_refused_and_not_kept(tmp_path: Path) -> None:
    client = inline_client(Settings(data_dir=str(tmp_path)))
    client.put(f"/v1/clusters/{CLUSTER}", json=CONFIG)
    answer = client.post(f"/v1/clusters/{CLUSTER}/rounds", json=ROUNDS[0])
    assert {error["pointer"] for error in answer.json()["errors"]} == {"/jobs", "/nodes"}
    assert client.get(f"/v1/clusters/{CLUSTER}/rounds").json()["rounds"] == []


def test_a_configuration_with_more_nodes_than_a_round_may_have_is_refused_and_the_last_one_stays(
    tmp_path: Path,
) -> None:
    client = inline_client(Settings(data_dir=str(tmp_path), max_nodes=2))
    assert client.put(f"/v1/clusters/{CLUSTER}", json=CONFIG).status_code == 201
    more = [{"name": f"n{i}", "gpu_type": "h100", "gpus": 8} for i in range(3)]
    answer = client.put(f"/v1/clusters/{CLUSTER}", json=CONFIG | {"nodes": more})
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error == {"pointer": "/nodes", "message": "3 nodes are more than the 2 this service takes (max_nodes)."}
    assert len(client.get(f"/v1/clusters/{CLUSTER}").json()["config"]["nodes"]) == 2


def test_without_limits_everything_is_taken() -> None:
    check_size(parse_request(TINY).state, "")


def hungry(body: bytes, _: float) -> Answer:
    """Take as many MB as the body says."""
    taken = b"x" * (int(body) * 1_000_000)
    return Answer(200, "text/plain", str(len(taken)).encode())


def _hungry_child(megabytes: int, results: Any) -> None:
    enforce(Limits(memory_mb=400))
    try:
        results.put(hungry(str(megabytes).encode(), 1.0).status)
    except MemoryError:
        results.put("refused by the system")


@pytest.mark.parametrize(("megabytes", "outcome"), [(50, 200), (500, "refused by the system")])
def test_a_process_cannot_have_more_memory_than_it_may(megabytes: int, outcome: object) -> None:
    context = multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    process = context.Process(target=_hungry_child, args=(megabytes, results))
    process.start()
    assert results.get() == outcome
    process.join()
    results.close()


def test_the_resident_memory_of_a_process_is_known_and_of_none_is_nothing() -> None:
    import os

    assert 10 < resident_mb(os.getpid()) < 10_000
    assert resident_mb(0) == 0.0


class Stand(Slot):
    """A slot without a process: holds what it is told to, answers when it is told to."""

    def __init__(self, held_mb: float = 0.0) -> None:
        self.ready = True
        self.held_mb = held_mb
        self.go = threading.Event()
        self.ended = threading.Event()

    @property
    def alive(self) -> bool:
        return not self.ended.is_set()

    def ask(self, task: Task, within_s: float) -> Answer | None:
        self.go.wait()
        return None if self.ended.is_set() else Answer(200, "text/plain", task.body)

    def resident_mb(self) -> float:
        return self.held_mb

    def end(self) -> None:
        self.ended.set()
        self.go.set()


def nothing(body: bytes, _: float) -> Answer:
    return Answer(200, "text/plain", body)


@contextmanager
def stands(monkeypatch: pytest.MonkeyPatch, *slots: Stand, **settings: Any) -> Iterator[Workers]:
    """Workers over stands that take the place of processes, first come first."""
    waiting = list(slots)
    monkeypatch.setattr("evenhand_api.rest.workers.Slot", lambda _: waiting.pop(0))
    yield Workers(Settings(max_concurrent=1, **settings), nothing, b"first")


async def start(workers: Workers, stand: Stand) -> None:
    """Let the first round of a stand be solved, then make it wait for its next."""
    stand.go.set()
    workers.start()
    while workers._free.empty():
        await asyncio.sleep(0.001)
    stand.go.clear()


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0.001)


def test_told_to_stop_what_waits_is_refused_and_what_is_in_hand_is_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        stand = Stand()
        with stands(monkeypatch, stand) as workers:
            await start(workers, stand)
            in_hand = asyncio.create_task(workers.answer(b"mine"))
            await settled()
            waits = asyncio.create_task(workers.answer(b"yours"))
            await settled()
            assert {name: number for name, _, number in workers._gauges()}["rounds_waiting"] == 1
            workers.drain()
            with pytest.raises(Refusal) as refused:
                await waits
            assert refused.value.kind is Kind.STOPPING
            assert int(refused.value.headers["Retry-After"]) > 0
            with pytest.raises(Refusal):
                await workers.answer(b"late")
            assert not in_hand.done()
            stand.go.set()
            assert (await in_hand).body == b"mine"
            assert workers.complaint is not None
            await workers.close()

    asyncio.run(scene())


def test_what_is_in_hand_too_long_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        stand = Stand()
        with stands(monkeypatch, stand, stop_within_s=0.01) as workers:
            await start(workers, stand)
            in_hand = asyncio.create_task(workers.answer(b"mine"))
            await settled()
            workers.drain()
            with pytest.raises(Refusal) as given_back:
                await in_hand
            assert given_back.value.kind is Kind.STOPPING
            await workers.close()
            assert stand.ended.is_set()

    asyncio.run(scene())


def test_a_process_that_holds_too_much_is_replaced_after_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        heavy, fresh = Stand(held_mb=600), Stand()
        fresh.go.set()
        with stands(monkeypatch, heavy, fresh, worker_memory_mb=1_000) as workers:
            heavy.go.set()
            workers.start()
            assert (await workers.answer(b"one")).body == b"one"
            assert (await workers.answer(b"two")).body == b"two"
            await settled()
            assert heavy.ended.wait(10)
            assert not fresh.ended.is_set()
            assert b"evenhand_processes_renewed_total 1.0" in workers._metrics.written()
            await workers.close()

    asyncio.run(scene())


def test_a_body_that_does_not_come_in_time_is_refused() -> None:
    async def never() -> Message:
        await asyncio.sleep(3600)
        raise AssertionError

    async def scene() -> None:
        scope = {"type": "http", "headers": []}
        with pytest.raises(Refusal) as refused:
            await Request(scope, timed(never, 0.01)).body()
        assert refused.value.kind is Kind.TOO_SLOW
        assert refused.value.headers == {"Connection": "close"}

    asyncio.run(scene())


def test_a_body_in_many_parts_is_read_whole_and_the_clock_stops_at_its_end() -> None:
    parts = [{"type": "http.request", "body": b"ab", "more_body": True}, {"type": "http.request", "body": b"c"}]

    async def come() -> Message:
        if parts:
            return parts.pop(0)
        await asyncio.sleep(0.05)
        return {"type": "http.disconnect"}

    async def scene() -> None:
        receive = timed(come, 0.02)
        assert await Request({"type": "http", "headers": []}, receive).body() == b"abc"
        assert (await receive())["type"] == "http.disconnect"

    asyncio.run(scene())


def test_a_connection_whose_head_does_not_come_is_closed_and_others_are_served() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    async def scene() -> None:
        config = uvicorn.Config(app, lifespan="off", log_config=None, **server_options(0.3, 10))
        server = uvicorn.Server(config)
        listener = socket.create_server(("127.0.0.1", 0))
        serving = asyncio.create_task(server.serve([listener]))
        where = listener.getsockname()
        slow_in, slow_out = await asyncio.open_connection(*where)
        slow_out.write(b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow")
        silent_in, silent_out = await asyncio.open_connection(*where)
        good_in, good_out = await asyncio.open_connection(*where)
        good_out.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await good_in.readline()).startswith(b"HTTP/1.1 200")
        for reader in (slow_in, silent_in):
            assert await reader.read() == b""
        for writer in (slow_out, silent_out, good_out):
            writer.close()
        server.should_exit = True
        await serving
        listener.close()

    asyncio.run(scene())


def test_the_ledger_is_not_asked_twice_at_once_and_silence_is_a_complaint(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    answer = threading.Event()

    def slow(_: object) -> None:
        asked.append(1)
        answer.wait()

    monkeypatch.setattr("evenhand_api.rest.readiness._complaint", slow)
    monkeypatch.setattr("evenhand_api.rest.readiness.PATIENCE_S", 0.02)

    async def scene() -> None:
        check = LedgerCheck(None)  # type: ignore[arg-type]
        said = await asyncio.gather(check.complaint(), check.complaint())
        assert all(text is not None and "did not answer" in text for text in said)
        assert len(asked) == 1
        answer.set()
        await settled()
        assert await check.complaint() is None

    asyncio.run(scene())
