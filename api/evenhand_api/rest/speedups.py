"""POST /v1/audit/speedups: declared speedups held against observed ones."""

from __future__ import annotations

from evenhand_api.rest.problems import Answer
from evenhand_api.rest.rounds import answer_error
from evenhand_models import FieldError, InvalidInput, parse_speedup_audit

EXAMPLE = b"""{"state": {
  "now": "2026-11-01T12:00:00Z",
  "gpu_types": [{"name": "a100"}, {"name": "h100"}],
  "nodes": [{"name": "n1", "gpu_type": "a100", "gpus": 8}, {"name": "n2", "gpu_type": "h100", "gpus": 8}],
  "groups": [{"id": "vision", "share": 1}, {"id": "language", "share": 1}],
  "jobs": [
    {"id": "train-1", "group": "vision", "gpus": 4, "speedup": {"a100": 1.0, "h100": 6.0},
     "submitted_at": "2026-11-01T11:00:00Z", "contract": {"min_runtime_s": 3600}},
    {"id": "train-2", "group": "language", "gpus": 8, "speedup": {"a100": 1.0, "h100": 2.0},
     "submitted_at": "2026-11-01T11:30:00Z", "contract": {"min_runtime_s": 3600}}
  ]},
 "observations": [
    {"job": "train-1", "gpu_type": "a100", "gpus": 4, "work_done": 4000, "seconds": 1000},
    {"job": "train-1", "gpu_type": "a100", "gpus": 4, "work_done": 4100, "seconds": 1000},
    {"job": "train-1", "gpu_type": "a100", "gpus": 4, "work_done": 3900, "seconds": 1000},
    {"job": "train-1", "gpu_type": "h100", "gpus": 4, "work_done": 8100, "seconds": 1000},
    {"job": "train-1", "gpu_type": "h100", "gpus": 4, "work_done": 7900, "seconds": 1000},
    {"job": "train-1", "gpu_type": "h100", "gpus": 4, "work_done": 8000, "seconds": 1000}
  ],
 "policy": {"use": "observed", "min_observations": 3}}"""
"""Declares six times the pace on an H100 and does twice as much there."""


def answer_audit_speedups(body: bytes, max_time_limit_s: float) -> Answer:
    """Answer POST /v1/audit/speedups; never raises.

    Parameters
    ----------
    body : bytes
        The request's body, decompressed.
    max_time_limit_s : float
        Largest `time_limit_s` in seconds that the round policy may ask for.
    """
    try:
        from evenhand.speedups import audit_speedups, with_gains  # only in a worker, as a round

        request = parse_speedup_audit(body)
        policy = request.effective_round_policy
        if policy.time_limit_s > max_time_limit_s:
            message = f"time_limit_s is {policy.time_limit_s:g}, above the {max_time_limit_s:g} this service allows."
            raise InvalidInput([FieldError("/round_policy/time_limit_s", message)])
        report = with_gains(request.state, audit_speedups(request), policy)
        return Answer(200, "application/json", report.model_dump_json().encode())
    except Exception as error:  # noqa: BLE001 - whatever it is, it becomes one answer and one line in the log
        return answer_error(error, body)
