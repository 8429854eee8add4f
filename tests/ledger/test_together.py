"""Several services on one ledger, several clients on one cluster: rounds take turns, none is lost."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from cases.states import NOW, after, job
from sqlalchemy import Engine, select

from evenhand_api.ledger.clusters import put_cluster
from evenhand_api.ledger.database import reading, writing
from evenhand_api.ledger.tables import rounds
from evenhand_api.ledger.turns import turn
from evenhand_api.ledger.words import ClusterConfig
from ledger.clusters import Cluster, ended, started, wire
from ledger.forked import Forked, Holding
from ledger.simulated import CONFIG


def posts(url: str, servers: int, each: int) -> list[dict[str, Any]]:
    """Rounds posted by several servers at once, each with a job of its own; every answer."""

    def client(number: int) -> list[dict[str, Any]]:
        server = Forked(url)
        try:
            answers = []
            for i in range(each):
                now = NOW + timedelta(minutes=1)
                body = {"now": now.isoformat(), "jobs": [wire(job(f"j{number}-{i}", "a", 1))]}
                answer = server.ask(("round", f"{number}-{i}", json.dumps(body).encode()), 120)
                assert answer is not None
                answers.append(json.loads(answer))
            return answers
        finally:
            server.kill()

    with ThreadPoolExecutor(servers) as pool:
        return [answer for answers in pool.map(client, range(servers)) for answer in answers]


def all_are_kept(engine: Engine, answers: list[dict[str, Any]]) -> None:
    assert sorted(a["round"] for a in answers) == list(range(1, len(answers) + 1))
    assert sorted(a["state_version"] for a in answers) == list(range(1, len(answers) + 1))
    with reading(engine) as connection:
        kept = {row.n: row.plan_hash for row in connection.execute(select(rounds.c.n, rounds.c.plan_hash))}
    assert kept == {a["round"]: a["plan"]["solver"]["plan_hash"] for a in answers}


@pytest.fixture
def lab(engine: Engine) -> Engine:
    with writing(engine) as connection:
        put_cluster(connection, "lab", ClusterConfig.model_validate(CONFIG))
    return engine


def test_two_services_on_one_ledger_lose_no_round(lab: Engine, url: str) -> None:
    all_are_kept(lab, posts(url, 2, 6))


@pytest.mark.heavy
def test_sixteen_services_on_one_ledger_lose_no_round(lab: Engine, url: str) -> None:
    all_are_kept(lab, posts(url, 16, 40))


def test_a_turn_ends_with_the_process_that_holds_it(lab: Engine, url: str) -> None:
    dying = Holding(url)
    dying.kill()
    began = time.monotonic()
    with turn(lab, 1):
        assert time.monotonic() - began < 30


def test_events_and_reads_go_on_while_a_round_is_decided(cluster: Cluster) -> None:
    cluster.configure("1x8 H100", {"A": 1.0, "B": 1.0})
    cluster.round(NOW, [])
    engine = cluster.client.app.state.ledger.engine()  # type: ignore[attr-defined]
    with reading(engine) as connection:
        number = connection.exec_driver_sql(
            f"SELECT id FROM clusters WHERE name = '{cluster.path.rsplit('/', 1)[1]}'"
        ).scalar_one()
    with ThreadPoolExecutor(1) as pool:
        with turn(engine, number):  # as a solver holds it for as long as it works
            waiting = pool.submit(cluster.round, after(20), [])
            cluster.events(started("j", after(5), {"n0": 8}, group="A", min_runtime_s=60), ended("j", after(15)))
            assert cluster.charged() == {"A": 8 * 10 / 60}
            assert cluster.get()["last_round"] == 1
            assert not waiting.done()
        assert waiting.result(120)["round"] == 2
