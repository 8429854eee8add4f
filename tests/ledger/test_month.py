"""A month of rounds, kept and decided again: hash for hash, and charged as a plain recomputation says."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from sqlalchemy import Engine

from evenhand import allocate
from evenhand_api.ledger.clusters import find_cluster, put_cluster
from evenhand_api.ledger.database import open_engine, reading, writing
from evenhand_api.ledger.replay import replay
from evenhand_api.ledger.words import ClusterConfig
from ledger.forked import serve_one
from ledger.simulated import CONFIG, CROWDED, Life
from ledger.test_killed import check

DAY = 24 * 60
BUSY = (0, 0, 1)
"""New jobs a minute with which the queue comes and goes for as long as one likes."""


def lived(engine: Engine, minutes: int, arrivals: Sequence[int], daily: Callable[[int], None]) -> Life:
    """A life of so many minutes, in the ledger; tells after each day how many rounds there were."""
    with writing(engine) as connection:
        put_cluster(connection, "lab", ClusterConfig.model_validate(CONFIG))
    life = Life(11, minutes, arrivals)

    def send(kind: str, key: str, body: bytes) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(serve_one(engine, kind, key, body))
        if kind == "round" and answer["round"] % DAY == 0:
            daily(answer["round"])
        return answer

    life.live(send)
    return life


def replayed(url: str, first: int, last: int) -> list[int]:
    """Decide rounds again; which are not what they were."""
    engine = open_engine(url)
    with reading(engine) as connection:
        done = list(replay(connection, find_cluster(connection, "lab"), allocate, first, last))
    engine.dispose()
    assert [one.n for one in done] == list(range(first, last + 1))
    return [one.n for one in done if not (one.same_state and one.same_plan)]


def test_an_hour_of_rounds_is_decided_again_hash_for_hash(engine: Engine, url: str) -> None:
    life = lived(engine, 60, CROWDED, lambda _: None)
    check(engine, life, 60)
    assert replayed(url, 1, 60) == []


@pytest.mark.heavy
def test_a_month_of_rounds_is_decided_again_hash_for_hash(
    engine: Engine, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    minutes = 30 * DAY
    spent = time.process_time()

    def say(what: str) -> Callable[[int], None]:
        def daily(rounds: int) -> None:
            with capsys.disabled():
                print(f"{rounds} rounds {what}, {time.process_time() - spent:.0f} s of CPU", flush=True)

        return daily

    life = lived(engine, minutes, BUSY, say("kept"))
    check(engine, life, minutes)
    again = say("decided again")
    for first in range(1, minutes, DAY):
        assert replayed(url, first, first + DAY - 1) == []
        again(first + DAY - 1)
