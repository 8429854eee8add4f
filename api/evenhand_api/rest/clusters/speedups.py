"""GET /v1/clusters/{name}/speedups: declared speedups against what was measured, in a worker process like a round."""

from __future__ import annotations

import json

from evenhand_api.ledger.clusters import find_cluster
from evenhand_api.ledger.database import reading
from evenhand_api.ledger.observed import audit_request
from evenhand_api.rest.clusters.solve import worker_engine
from evenhand_api.rest.problems import Answer
from evenhand_api.rest.rounds import answer_error


def speedups_message(url: str, cluster: str) -> bytes:
    """Write what a worker has to know: the ledger's address and the cluster."""
    return json.dumps([url, cluster]).encode()


def answer_speedups(message: bytes, max_time_limit_s: float) -> Answer:
    """Answer GET /v1/clusters/{name}/speedups; never raises."""
    url, name = json.loads(message)
    try:
        from evenhand.speedups import audit_speedups, with_gains  # only in a worker, as a round

        with reading(worker_engine(url)) as connection:
            request = audit_request(connection, find_cluster(connection, name))
        policy = request.effective_round_policy
        limit_s = min(policy.time_limit_s, max_time_limit_s)
        policy = policy.model_copy(update={"time_limit_s": limit_s})
        report = with_gains(request.state, audit_speedups(request), policy)
        return Answer(200, "application/json", report.model_dump_json().encode())
    except Exception as error:  # noqa: BLE001 - whatever it is, it becomes one answer and one line in the log
        return answer_error(error, b"{}")
