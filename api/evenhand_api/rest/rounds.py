"""What a worker process does with a request: bytes in, a finished answer out. Never raises."""

from __future__ import annotations

import logging

from evenhand_api.rest.problems import Answer, Kind, kind_of, problem
from evenhand_models import AllocateRequest, FieldError, InvalidInput, parse_request
from evenhand_models.parse import read_json

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
        return Answer(200, "application/json", plan.to_json_bytes())
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
    return request


def answer_error(error: Exception, body: bytes) -> Answer:
    """Turn an error into a problem by the table; a defect is logged with its traceback, answered without."""
    kind = kind_of(error)
    if kind is Kind.INTERNAL or not isinstance(error, InvalidInput):
        log.error("a round failed", exc_info=error)
        return problem(Kind.INTERNAL, "The round could not be solved. The service's log has the details.")
    if not _is_json(body):
        return problem(Kind.MALFORMED, error.errors[0].message, error.errors)
    count = len(error.errors)
    return problem(
        kind,
        f"{count} {'error' if count == 1 else 'errors'} in the request; nothing was decided.",
        error.errors,
    )


def _is_json(body: bytes) -> bool:
    try:
        read_json(body)
    except InvalidInput:
        return False
    return True
