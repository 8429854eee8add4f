"""Killed at any moment, the ledger has lost nothing it acknowledged and counted nothing twice."""

from __future__ import annotations

import json
import time
from fractions import Fraction
from typing import Any

import pytest
from cases.states import NOW
from sqlalchemy import Engine, func, select

from evenhand_api.ledger.amounts import PER_GPU_HOUR
from evenhand_api.ledger.clusters import find_cluster, put_cluster
from evenhand_api.ledger.database import open_engine, reading, writing
from evenhand_api.ledger.instants import to_us
from evenhand_api.ledger.rollups import differences
from evenhand_api.ledger.tables import rounds
from evenhand_api.ledger.usage import window_usage
from evenhand_api.ledger.words import ClusterConfig
from ledger.forked import Killed, serve_one
from ledger.plain import used
from ledger.simulated import CONFIG, Life


def configured(url: str) -> None:
    engine = open_engine(url)
    with writing(engine) as connection:
        put_cluster(connection, "lab", ClusterConfig.model_validate(CONFIG))
    engine.dispose()


def undisturbed(url: str, seed: int, minutes: int) -> tuple[Life, float]:
    """The same life with a server nobody kills; also how long its longest request took."""
    configured(url)
    engine = open_engine(url)
    life, took = Life(seed, minutes), [0.0]

    def send(kind: str, key: str, body: bytes) -> dict[str, Any]:
        began = time.monotonic()
        answer: dict[str, Any] = json.loads(serve_one(engine, kind, key, body))
        took.append(time.monotonic() - began)
        return answer

    life.live(send)
    check(engine, life, minutes)
    engine.dispose()
    return life, max(took)


def check(engine: Engine, life: Life, minutes: int) -> None:
    """What is in the ledger is what happened, once."""
    with reading(engine) as connection:
        cluster = find_cluster(connection, "lab")
        assert cluster.last_round == minutes
        query = select(func.count()).select_from(rounds).where(rounds.c.cluster_id == cluster.id)
        assert connection.execute(query).scalar_one() == minutes
        assert differences(connection, cluster.id) == []
        end = to_us(NOW) + minutes * 60 * 10**6
        exact = window_usage(connection, cluster.id, to_us(NOW), end)
        found = {group: Fraction(amount, PER_GPU_HOUR) for group, amount in exact.items()}
        assert found == used(life.world, 0, minutes)
        assert found


def survives(url: str, elsewhere: str, seed: int, minutes: int, kills: int) -> int:
    calm, longest_s = undisturbed(elsewhere, seed, minutes)
    configured(url)
    client = Killed(url, kills, seed, longest_s)
    life = Life(seed, minutes)
    try:
        life.live(client.send)
    finally:
        client.close()
    engine = open_engine(url)
    check(engine, life, minutes)
    engine.dispose()
    assert life.hashes == calm.hashes
    return client.kills


@pytest.fixture
def elsewhere(tmp_path: Any, migrated_sqlite: Any) -> str:
    path = tmp_path / "calm.sqlite3"
    path.write_bytes(migrated_sqlite.read_bytes())
    return f"sqlite:///{path}"


def test_killed_a_dozen_times_it_says_and_decides_the_same(url: str, elsewhere: str) -> None:
    assert survives(url, elsewhere, seed=5, minutes=15, kills=12) == 12


@pytest.mark.heavy
def test_killed_500_times_it_says_and_decides_the_same(url: str, elsewhere: str) -> None:
    assert survives(url, elsewhere, seed=6, minutes=900, kills=500) == 500
