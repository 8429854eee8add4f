"""Spoiled bodies: every door answers with what was done or with what is wrong, never with a failure, and memory stays flat."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from starlette.testclient import TestClient

from evenhand_api.rest.limits import resident_mb
from evenhand_api.rest.rounds import TINY
from evenhand_api.settings import Settings
from service.departments import CLUSTER, CONFIG, EVENTS, ROUNDS
from service.inline import inline_client
from service.mutations import mutated

SKY = f"/v1/clusters/{CLUSTER}"
DOORS: list[tuple[str, str, Any]] = [
    ("POST", "/v1/allocate", json.loads(TINY)),
    ("PUT", SKY, CONFIG),
    ("POST", f"{SKY}/rounds", ROUNDS[1]),
    ("POST", f"{SKY}/events", EVENTS),
    ("POST", f"{SKY}/adjustments", {"group": "acorn", "charged_gpu_hours": -5, "reason": "mine", "author": "uma"}),
]
JSON = {"Content-Type": "application/json"}


@pytest.fixture
def client(tmp_path: Path) -> TestClient:
    client = inline_client(Settings(data_dir=str(tmp_path)))
    assert client.put(SKY, json=CONFIG).status_code == 201
    return client


def knock(client: TestClient, seed: int) -> int:
    """Send one spoiled body to one door; returns the status."""
    random = Random(seed)
    method, path, right = random.choice(DOORS)
    body = mutated(right, random)
    answer = client.request(method, path, content=body, headers=JSON)
    assert 200 <= answer.status_code < 300 or 400 <= answer.status_code < 500, (seed, answer.text, body)
    if answer.status_code >= 400:
        problem = answer.json()
        assert answer.headers["content-type"] == "application/problem+json"
        if problem["type"].endswith(("invalid-input", "malformed")):
            assert problem["errors"] or not body.strip(), (seed, answer.text)
            assert all(e["pointer"] == "" or e["pointer"].startswith("/") for e in problem["errors"]), (
                seed,
                answer.text,
            )
            assert all(e["message"] for e in problem["errors"])
    return answer.status_code


def test_no_spoiled_body_makes_a_door_fail(client: TestClient) -> None:
    statuses = Counter(knock(client, seed) for seed in range(400))
    assert statuses[200] > 20
    assert statuses[422] > 100
    assert statuses[400] > 20


@pytest.mark.heavy
def test_a_hundred_thousand_spoiled_bodies_leave_the_doors_standing_and_memory_flat(client: TestClient) -> None:
    for seed in range(1_000, 21_000):
        knock(client, seed)
    before = resident_mb(os.getpid())
    for seed in range(21_000, 101_000):
        knock(client, seed)
    assert resident_mb(os.getpid()) - before < 64
