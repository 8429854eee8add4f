"""Named cluster states: request bodies as JSON, one file each."""

from __future__ import annotations

import gzip
from pathlib import Path

from evenhand_models import ClusterState, parse_request

HERE = Path(__file__).parent
NAMES = tuple(sorted(path.name.split(".")[0] for path in HERE.glob("*.json*")))
"""Names of all instances."""


def body(name: str) -> bytes:
    """Return the request body of an instance, as it would be posted."""
    packed = HERE / f"{name}.json.gz"
    return gzip.decompress(packed.read_bytes()) if packed.exists() else (HERE / f"{name}.json").read_bytes()


def instance(name: str) -> ClusterState:
    """Return the state of an instance, validated."""
    return parse_request(body(name)).state
