"""Real processes under load: no error, nothing lost, reads stay quick, and a stop that finishes what is in hand.

Figures depend on the machine, so these are heavy tests; each prints what it measured (pytest -s).
"""

from __future__ import annotations

import gzip
import json
import os
import signal
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from ledger.postgres import Server

from service.departments import CONFIG, ROUNDS
from service.processes import ROOT, Service, ask, serving

CLIENTS, ROUNDS_EACH, CLUSTERS = 16, 1_000, 4
PHILLY = ROOT / "examples" / "states" / "philly_3vc_day40.json.gz"


def big(time_limit_s: float) -> bytes:
    request = json.loads(gzip.decompress(PHILLY.read_bytes()))
    return json.dumps(request | {"policy": {"time_limit_s": time_limit_s}}).encode()


def percentile(seconds: list[float], part: float) -> float:
    return statistics.quantiles(seconds, n=1_000)[round(part * 1_000) - 1]


def say(what: str, seconds: list[float]) -> None:
    figures = ", ".join(f"p{100 * p:g} {1e3 * percentile(seconds, p):.1f} ms" for p in (0.5, 0.9, 0.99))
    print(f"\n{what}: {len(seconds):,} requests, {figures}, longest {1e3 * max(seconds):.1f} ms")


def cpu_s(service: Service) -> float:
    """CPU seconds the service's own process has used."""
    fields = Path(f"/proc/{service.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def post_rounds(service: Service, client: int, each: int) -> tuple[list[int], list[float]]:
    """Post rounds one after the other; returns their numbers and how long each took."""
    connection, path = service.connect(), f"/v1/clusters/load{client % CLUSTERS}/rounds"
    numbers, took = [], []
    for n in range(each):
        began = time.monotonic()
        key = f"{client}-{n}"
        status, body = ask(connection, "POST", path, ROUNDS[0], **{"Idempotency-Key": key})
        took.append(time.monotonic() - began)
        assert status == 200, body
        numbers.append(json.loads(body)["round"])
    connection.close()
    return numbers, took


def load(services: list[Service], clients: int, each: int) -> list[float]:
    """Let clients post rounds of a few clusters through all services; every round must be answered and kept once."""
    for cluster in range(CLUSTERS):
        assert services[0].ask("PUT", f"/v1/clusters/load{cluster}", CONFIG)[0] == 201
    with ThreadPoolExecutor(clients) as crowd:
        done = list(crowd.map(lambda c: post_rounds(services[c % len(services)], c, each), range(clients)))
    for cluster in range(CLUSTERS):
        own = sorted(n for client, (numbers, _) in enumerate(done) if client % CLUSTERS == cluster for n in numbers)
        assert own == list(range(1, len(own) + 1))
        standing = json.loads(services[-1].ask("GET", f"/v1/clusters/load{cluster}")[1])
        assert standing["last_round"] == len(own)
    return [seconds for _, took in done for seconds in took]


@pytest.mark.heavy
def test_sixteen_clients_with_a_thousand_rounds_each_get_no_error(tmp_path: Path) -> None:
    with serving(tmp_path, max_waiting=64, log_level="warning") as service:
        say("small rounds, one process on SQLite", load([service], CLIENTS, ROUNDS_EACH))
        assert service.metric("processes_lost_total") == 0
        assert service.metric("refused_total") == 0


@pytest.mark.heavy
@pytest.mark.postgres
def test_two_services_on_one_database_serialise_rounds_and_lose_none(postgres: Server, tmp_path: Path) -> None:
    shared = {"database_url": postgres.new_database("load"), "max_waiting": 64, "log_level": "warning"}
    with serving(tmp_path / "a", **shared) as one, serving(tmp_path / "b", **shared) as two:
        say("small rounds, two services on one PostgreSQL", load([one, two], CLIENTS, ROUNDS_EACH // 4))


@pytest.mark.heavy
def test_reads_stay_quick_while_all_processes_solve(tmp_path: Path) -> None:
    with serving(tmp_path, max_concurrent=2, log_level="warning") as service:
        assert service.ask("PUT", "/v1/clusters/sky", CONFIG)[0] == 201
        for request in ROUNDS:
            assert service.ask("POST", "/v1/clusters/sky/rounds", request)[0] == 200
        enough = threading.Event()

        def solve() -> None:
            while not enough.is_set():
                assert service.ask("POST", "/v1/allocate", big(30))[0] == 200

        with ThreadPoolExecutor(2) as solving:
            threads = [solving.submit(solve) for _ in range(2)]
            while service.metric("rounds_in_hand") < 2:
                time.sleep(0.05)
            connection, took = service.connect(), []
            paths = ("", "/groups", "/rounds", "/usage", "/jobs/seed-1/explanation", "/occupancy")
            before = cpu_s(service)
            for n in range(1_200):
                began = time.monotonic()
                status, _ = ask(connection, "GET", f"/v1/clusters/sky{paths[n % len(paths)]}")
                took.append(time.monotonic() - began)
                assert status == 200
            spent = cpu_s(service) - before
            enough.set()
            connection.close()
        for thread in threads:
            thread.result()
        say(f"reads while two rounds are solved ({1e3 * spent / 1_200:.1f} ms of the service's CPU each)", took)
        assert percentile(took, 0.99) < 0.05


@pytest.mark.heavy
def test_told_to_stop_it_finishes_the_round_in_hand_and_leaves(tmp_path: Path) -> None:
    with serving(tmp_path, max_concurrent=1) as service, ThreadPoolExecutor(2) as crowd:
        in_hand = crowd.submit(service.ask, "POST", "/v1/allocate", big(20))
        while service.metric("rounds_in_hand") < 1:
            time.sleep(0.02)
        waits = crowd.submit(service.ask, "POST", "/v1/allocate", big(20))
        while service.metric("rounds_waiting") < 1:
            time.sleep(0.02)
        service.process.send_signal(signal.SIGTERM)
        status, body = waits.result()
        assert (status, json.loads(body)["type"]) == (503, "/docs#problem-stopping")
        status, body = in_hand.result()
        assert status == 200
        assert json.loads(body)["certificate"]["verified"]
        assert service.process.wait(60) in {0, -signal.SIGTERM}


@pytest.mark.heavy
def test_a_round_that_needs_more_memory_than_there_may_be_takes_only_its_own_process(tmp_path: Path) -> None:
    with serving(tmp_path, max_concurrent=1, worker_memory_mb=250) as service:
        status, _ = service.ask("POST", "/v1/allocate", big(5))
        assert status == 500
        while service.ask("GET", "/readyz")[0] != 200:
            time.sleep(0.1)
        assert service.ask("PUT", "/v1/clusters/sky", CONFIG)[0] == 201
        assert service.ask("POST", "/v1/clusters/sky/rounds", ROUNDS[0])[0] == 200
