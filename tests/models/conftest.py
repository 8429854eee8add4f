"""A small sound request as plain data, and the ways to break it."""

import copy
import json

import pytest

from evenhand_models import InvalidInput, parse_request

NOW = "2026-11-01T12:00:00Z"
SOUND = {
    "state": {
        "now": NOW,
        "gpu_types": [{"name": "h100", "charge_rate": 2.0}, {"name": "a100"}],
        "nodes": [
            {"name": "n0", "gpu_type": "h100", "gpus": 8, "labels": {"rack": "r0", "pod": "p0"}},
            {"name": "n1", "gpu_type": "h100", "gpus": 8, "unavailable_gpus": 1},
            {"name": "n2", "gpu_type": "a100", "gpus": 8, "foreign_gpus": 2, "status": "cordoned"},
        ],
        "groups": [{"id": "org", "share": 1}, {"id": "a", "parent": "org", "share": 3}],
        "usage": [{"group": "a", "charged_gpu_hours": 12.5}],
        "jobs": [
            {
                "id": "waits",
                "group": "a",
                "gpus": 4,
                "speedup": {"h100": 2.0, "a100": 1},
                "submitted_at": NOW,
            },
            {
                "id": "runs",
                "group": "a",
                "gpus": 12,
                "speedup": {"h100": 1.0},
                "submitted_at": "2026-11-01T10:00:00Z",
                "contract": {"min_runtime_s": 3600, "resumable": False},
                "state": "running",
                "started_at": "2026-11-01T11:00:00Z",
                "placement": [{"node": "n1", "gpus": 4}, {"node": "n0", "gpus": 8}],
            },
        ],
    }
}


@pytest.fixture
def sound():
    """A fresh copy of the sound request; its jobs are `waits` and `runs`."""
    return copy.deepcopy(SOUND)


@pytest.fixture
def errors_of():
    """Parse a document and return its errors as {pointer: message}; none if it parses."""

    def read(document):
        try:
            parse_request(document if isinstance(document, bytes) else json.dumps(document).encode())
        except InvalidInput as refused:
            return {error.pointer: error.message for error in refused.errors}
        return {}

    return read
