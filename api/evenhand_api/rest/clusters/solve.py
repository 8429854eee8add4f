"""What a worker process does with a message: a stateful round, or a request that nothing is kept of."""

from __future__ import annotations

import json
from functools import cache

from sqlalchemy import Engine

from evenhand_api.ledger.database import open_engine
from evenhand_api.ledger.rounds import decide_round
from evenhand_api.metrics.figures import Figures, figures_of
from evenhand_api.rest.clusters.message import MARK, unpacked
from evenhand_api.rest.limits import check_size
from evenhand_api.rest.problems import Answer
from evenhand_api.rest.rounds import answer_allocate, answer_error
from evenhand_models import ClusterState, Plan, Policy


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

        found: list[Figures] = []

        def decide(state: ClusterState, policy: Policy) -> Plan:
            check_size(state, "")
            plan = allocate(state, policy)
            found.append(figures_of(plan))
            return plan

        body, again = decide_round(worker_engine(url), posted, max_time_limit_s, decide)
        headers = {"Idempotent-Replayed": "true"} if again else {}
        figures = None if again else found[-1].of_round(posted.cluster, number_of(body))
        return Answer(200, "application/json", body, headers, figures)
    except Exception as error:  # noqa: BLE001 - whatever it is, it becomes one answer and one line in the log
        return answer_error(error, posted.body)


def number_of(answer: bytes) -> int:
    """Read a round's number off its answer, without reading the plan."""
    head, _, _ = answer.partition(b',"plan":')
    return int(json.loads(head + b"}")["round"])


@cache
def worker_engine(url: str) -> Engine:
    """The process's own connections to the ledger, which the service has migrated."""
    return open_engine(url)
