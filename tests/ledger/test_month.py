"""A month of rounds, kept and decided again: hash for hash, and charged as a plain recomputation says."""

from __future__ import annotations

import json
import os
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest
from sqlalchemy import Engine

from evenhand import allocate
from evenhand_api.ledger.clusters import find_cluster, put_cluster
from evenhand_api.ledger.database import open_engine, reading, writing
from evenhand_api.ledger.replay import replay
from evenhand_api.ledger.words import ClusterConfig
from ledger.forked import serve_one
from ledger.simulated import CONFIG, Life
from ledger.test_killed import check

PARTS = 48


def lived(engine: Engine, minutes: int) -> Life:
    """A life of so many minutes, in the ledger."""
    with writing(engine) as connection:
        put_cluster(connection, "lab", ClusterConfig.model_validate(CONFIG))
    life = Life(11, minutes)

    def send(kind: str, key: str, body: bytes) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(serve_one(engine, kind, key, body))
        return answer

    life.live(send)
    return life


def replayed(url: str, first: int, last: int) -> tuple[int, list[int]]:
    """How many rounds were decided again, and those that are not what they were."""
    engine = open_engine(url)
    with reading(engine) as connection:
        done = list(replay(connection, find_cluster(connection, "lab"), allocate, first, last))
    engine.dispose()
    return len(done), [one.n for one in done if not (one.same_state and one.same_plan)]


def test_an_hour_of_rounds_is_decided_again_hash_for_hash(engine: Engine, url: str) -> None:
    life = lived(engine, 60)
    check(engine, life, 60)
    assert replayed(url, 1, 60) == (60, [])


@pytest.mark.heavy
def test_a_month_of_rounds_is_decided_again_hash_for_hash(engine: Engine, url: str) -> None:
    minutes = 30 * 24 * 60
    lived(engine, minutes)
    ends = [minutes * part // PARTS for part in range(PARTS + 1)]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        parts = list(pool.map(replayed, [url] * PARTS, [e + 1 for e in ends], ends[1:]))
    assert sum(count for count, _ in parts) == minutes
    assert [n for _, bad in parts for n in bad] == []
