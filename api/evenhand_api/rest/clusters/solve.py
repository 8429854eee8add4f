"""What a worker process does with a message: a stateful round, or a request that nothing is kept of."""

from __future__ import annotations

from functools import cache

from sqlalchemy import Engine

from evenhand_api.ledger.database import open_engine
from evenhand_api.ledger.rounds import decide_round
from evenhand_api.rest.clusters.message import MARK, unpacked
from evenhand_api.rest.problems import Answer
from evenhand_api.rest.rounds import answer_allocate, answer_error


def answer_any(message: bytes, max_time_limit_s: float) -> Answer:
    """Answer one message; never raises."""
    if message.startswith(MARK):
        return answer_round(message, max_time_limit_s)
    return answer_allocate(message, max_time_limit_s)


def answer_round(message: bytes, max_time_limit_s: float) -> Answer:
    """Answer POST /v1/clusters/{name}/rounds."""
    url, posted = unpacked(message)
    try:
        from evenhand import allocate  # only in a worker: the serving process never loads a solver

        body, again = decide_round(worker_engine(url), posted, max_time_limit_s, allocate)
        return Answer(200, "application/json", body, {"Idempotent-Replayed": "true"} if again else {})
    except Exception as error:  # noqa: BLE001 - whatever it is, it becomes one answer and one line in the log
        return answer_error(error, posted.body)


@cache
def worker_engine(url: str) -> Engine:
    """The process's own connections to the ledger, which the service has migrated."""
    return open_engine(url)
