"""What a worker process does with a request: bytes in, a finished answer out. Never raises."""

from __future__ import annotations

import logging

from evenhand_api.metrics.figures import figures_of
from evenhand_api.rest.limits import check_size
from evenhand_api.rest.problems import Answer, Kind, problem, problem_of
from evenhand_models import AllocateRequest, FieldError, InvalidInput, parse_request

log = logging.getLogger(__name__)

TINY = b"""{"state": {
  "now": "2026-11-01T12:00:00Z",
  "gpu_types": [{"name": "h100"}],
  "nodes": [{"name": "n1", "gpu_type": "h100", "gpus": 8}],
  "groups": [{"id": "vision", "share": 1}, {"id": "language", "share": 1}],
  "usage": [{"group": "vision", "charged_gpu_hours": 120.0}],
  "jobs": [
    {"id": "train-1", "group": "vision", "gpus": 4, "speedup": {"h100": 1.0},
     "submitted_at": "2026-11-01T11:00:00Z", "contract": {"min_runtime_s": 3600, "resumable": true}},
    {"id": "train-2", "group": "language", "gpus": 8, "min_gpus": 4, "speedup": {"h100": 1.0},
     "submitted_at": "2026-11-01T11:30:00Z", "contract": {"min_runtime_s": 3600, "resumable": true}}
  ]}}"""
"""One node, two groups, two jobs: solved once by each process before the service says that it is ready."""


def answer_allocate(body: bytes, max_time_limit_s: float) -> Answer:
    """Answer POST /v1/allocate.

    Parameters
    ----------
    body : bytes
        The request's body, decompressed.
    max_time_limit_s : float
        Largest `time_limit_s` in seconds that the policy may ask for.
    """
    try:
        from evenhand import allocate  # only in a worker: the serving process never loads a solver

        request = _within_limit(parse_request(body), max_time_limit_s)
        plan = allocate(request.state, request.policy)
        return Answer(200, "application/json", plan.to_json_bytes(), figures=figures_of(plan))
    except Exception as error:  # noqa: BLE001 - whatever it is, it becomes one answer and one line in the log
        return answer_error(error, body)


def answer_fairness(body: bytes, max_time_limit_s: float) -> Answer:
    """Answer POST /v1/fairness: the same body, every objective side by side."""
    try:
        from evenhand import compare_objectives

        request = _within_limit(parse_request(body), max_time_limit_s)
        found = compare_objectives(request.state, request.policy)
        return Answer(200, "application/json", found.model_dump_json().encode())
    except Exception as error:  # noqa: BLE001 - as above
        return answer_error(error, body)


def _within_limit(request: AllocateRequest, max_time_limit_s: float) -> AllocateRequest:
    """Refuse a policy that asks for more time than the service gives."""
    limit_s = request.effective_policy.time_limit_s
    if limit_s > max_time_limit_s:
        message = f"time_limit_s is {limit_s:g}, above the {max_time_limit_s:g} this service allows."
        raise InvalidInput([FieldError("/policy/time_limit_s", message)])
    check_size(request.state, "/state")
    return request


def answer_error(error: Exception, body: bytes) -> Answer:
    """Turn an error into a problem by the table; a defect is logged with its traceback, answered without."""
    answer = problem_of(error, body)
    if answer is None:
        log.error("a round failed", exc_info=error)
        return problem(Kind.INTERNAL, "The round could not be solved. The service's log has the details.")
    return answer
