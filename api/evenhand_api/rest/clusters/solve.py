"""What a worker process does with a message: a stateful round, or a request that nothing is kept of."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING

from sqlalchemy import Engine

from evenhand_api.ledger.database import open_engine
from evenhand_api.ledger.rounds import decide_round
from evenhand_api.metrics.figures import Figures, figures_of
from evenhand_api.rest.clusters.message import MARK, unpacked
from evenhand_api.rest.limits import check_size
from evenhand_api.rest.problems import Answer
from evenhand_api.rest.rounds import answer_allocate, answer_error
from evenhand_models import ClusterState, Plan, Policy

if TYPE_CHECKING:
    from evenhand import Session


def answer_any(message: bytes, max_time_limit_s: float) -> Answer:
    """Answer one message; never raises."""
    if message.startswith(MARK):
        return answer_round(message, max_time_limit_s)
    return answer_allocate(message, max_time_limit_s)


def answer_round(message: bytes, max_time_limit_s: float) -> Answer:
    """Answer POST /v1/clusters/{name}/rounds."""
    url, posted = unpacked(message)
    try:
        found: list[Figures] = []

        def decide(state: ClusterState, policy: Policy) -> Plan:
            check_size(state, "")
            plan = decided(url, posted.cluster, state, policy)
            found.append(figures_of(plan))
            return plan

        body, again = decide_round(worker_engine(url), posted, max_time_limit_s, decide)
        headers = {"Idempotent-Replayed": "true"} if again else {}
        figures = None if again else found[-1].of_round(posted.cluster, number_of(body))
        return Answer(200, "application/json", body, headers, figures)
    except Exception as error:  # noqa: BLE001 - whatever it is, it becomes one answer and one line in the log
        return answer_error(error, posted.body)


def decided(url: str, cluster: str, state: ClusterState, policy: Policy) -> Plan:
    """A round's plan; where answers may vary (`deterministic: false`) it begins with what the last one of this process learnt."""
    from evenhand import Session, allocate  # only in a worker: the serving process never loads a solver

    if policy.deterministic:
        return allocate(state, policy)
    session = _SESSIONS.pop((url, cluster), None) or Session()
    _SESSIONS[url, cluster] = session
    while len(_SESSIONS) > MOST_SESSIONS:
        del _SESSIONS[next(iter(_SESSIONS))]
    session.policy = policy
    return session.allocate(state)


_SESSIONS: dict[tuple[str, str], Session] = {}
"""Of this process, by ledger and cluster, the one used last at the end."""
MOST_SESSIONS = 64


def number_of(answer: bytes) -> int:
    """Read a round's number off its answer, without reading the plan."""
    head, _, _ = answer.partition(b',"plan":')
    return int(json.loads(head + b"}")["round"])


@cache
def worker_engine(url: str) -> Engine:
    """The process's own connections to the ledger, which the service has migrated."""
    return open_engine(url)
