"""Replays in the background: checked, taken in, watched, taken back, fetched; a few at a time."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from service.inline import inline_client
from stand_in_replays import pretend
from starlette.testclient import TestClient

from evenhand_api.rest.openapi import openapi_document
from evenhand_api.rest.replays.openapi import example
from evenhand_api.settings import Settings
from evenhand_api.whatif.asked import asked, outcome

LONG = "\n".join(
    ["job_id,group,submit_s,duration_s,gpus", *(f"j{i},vision,{i * 40},900,{1 + i % 8}" for i in range(40_000))]
)
"""Jobs whose replay would take far longer than a test."""


def judge(name: str, value: object) -> None:
    document = openapi_document()
    schema = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
    jsonschema.Draft202012Validator(schema).validate(value)


def until(condition: Callable[[], Any]) -> Any:
    end = time.monotonic() + 120
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.1)
    return found


@pytest.fixture
def doors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., TestClient]:
    """Services that check requests in this process and start real processes for replays, which only pretend."""
    monkeypatch.setattr("evenhand_api.rest.replays.house.replay_in_background", pretend)
    return lambda **settings: inline_client(Settings(data_dir=str(tmp_path), **settings))


def long() -> dict[str, Any]:
    return example() | {"trace": {"text": LONG}, "schedulers": ["evenhand"]}


def test_a_replay_is_taken_in_watched_and_fetched(client: TestClient) -> None:
    judge("ReplayRequest", example())
    answer = client.post("/v1/whatif", json=example())
    assert answer.status_code == 202, answer.text
    judge("ReplayStatus", answer.json())
    place = answer.headers["location"]
    assert place == f"/v1/whatif/{answer.json()['id']}"
    assert answer.json()["runs"] == 2
    with client.stream("GET", f"{place}/events") as events:
        assert events.headers["content-type"].startswith("text/event-stream")
        lines = [line for line in events.iter_lines() if line]
    said = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    assert [line for line in lines if line.startswith("event: ")][-1] == "event: done"
    assert [status["share"] for status in said] == sorted(status["share"] for status in said)
    assert said[-1] == client.get(place).json()
    assert (said[-1]["state"], said[-1]["share"], said[-1]["runs_finished"]) == ("done", 1.0, 2)
    result = client.get(f"{place}/result")
    assert result.status_code == 200
    judge("ReplayOutcome", result.json())
    assert [run["label"] for run in result.json()["runs"]] == [
        "base / first_fit", "a quarter of an hour without / first_fit",
    ]  # fmt: skip
    page = client.get(f"{place}/report")
    assert page.headers["content-type"].startswith("text/html")
    assert "a quarter of an hour without" in page.text
    assert client.get("/v1/whatif").json() == [said[-1]]


def test_a_replay_in_the_background_says_what_the_library_says() -> None:
    request = asked(json.dumps(example()).encode())
    told: list[float] = []
    body, page = outcome(request, "x", lambda share, _: told.append(share))
    assert told[-1] == 1.0
    assert page is not None
    document = json.loads(body)
    first = next(figure for figure in document["figures"] if figure["key"] == "completed")
    assert [value["value"]["mean"] for value in first["values"]] == [3.0, 3.0]
    assert document["odd_rows"] == 0


def test_what_is_wrong_is_said_with_pointers_before_anything_is_taken_in(client: TestClient) -> None:
    before = client.get("/v1/whatif").json()

    def pointers(**change: Any) -> list[str]:
        answer = client.post("/v1/whatif", json=example() | change)
        assert answer.status_code == 422, answer.text
        return [error["pointer"] for error in answer.json()["errors"]]

    assert pointers(trace={"text": "hello"}) == ["/trace/text"]
    assert pointers(trace={"text": LONG[:200], "group_by": "vc"}) == ["/trace/group_by"]
    assert pointers(schedulers=["best"]) == ["/schedulers/0"]
    assert pointers(scenarios=[{"name": "a"}, {"name": "a"}]) == ["/scenarios/1/name"]
    assert pointers(scenarios=[{"name": "a", "policy": {"horizon_s": 0}}]) == ["/scenarios/0/policy/horizon_s"]
    assert pointers(scenarios=[{"name": "a", "cluster": {"lose": [{"gpu_type": "x"}]}}]) == [
        "/scenarios/0/cluster/lose/0"
    ]
    assert pointers(seeds=list(range(100)), schedulers=["fifo", "evenhand"]) == [""]
    doubled = example()["cluster"]
    doubled["groups"] = [{"id": "a", "parent": "a", "share": 1}]
    assert pointers(cluster=doubled) != []
    assert client.get("/v1/whatif").json() == before


def test_a_running_replay_can_be_taken_back_and_makes_room_for_the_next(doors: Callable[..., TestClient]) -> None:
    with doors(max_waiting_replays=1) as client:
        first = client.post("/v1/whatif", json=long()).headers["location"]
        second = client.post("/v1/whatif", json=example()).headers["location"]
        until(lambda: client.get(first).json()["state"] == "running")
        assert client.get(second).json()["state"] == "waiting"
        refused = client.post("/v1/whatif", json=example())
        assert refused.status_code == 503
        assert int(refused.headers["retry-after"]) > 0
        assert client.get(f"{first}/result").status_code == 409
        assert client.get(f"{first}/result").json()["type"] == "/docs#problem-not-finished"
        assert client.delete(first).json()["state"] == "cancelled"
        until(lambda: client.get(second).json()["state"] == "done")
        assert client.get(first).json()["state"] == "cancelled"
        assert client.delete(second).json()["state"] == "done"


def test_a_waiting_replay_that_is_taken_back_never_runs(doors: Callable[..., TestClient]) -> None:
    with doors() as client:
        first = client.post("/v1/whatif", json=long()).headers["location"]
        second = client.post("/v1/whatif", json=example()).headers["location"]
        assert client.delete(second).json()["state"] == "cancelled"
        assert client.delete(first).json()["state"] == "cancelled"
        third = client.post("/v1/whatif", json=example()).headers["location"]
        until(lambda: client.get(third).json()["state"] == "done")
        assert client.get(second).json()["state"] == "cancelled"


def test_finished_replays_are_forgotten_but_the_last_ones(doors: Callable[..., TestClient]) -> None:
    with doors(keep_replays=1) as client:
        places = []
        for _ in range(2):
            places.append(client.post("/v1/whatif", json=example()).headers["location"])
            until(lambda: client.get(places[-1]).json()["state"] == "done")
        places.append(client.post("/v1/whatif", json=example()).headers["location"])
        assert [client.get(place).status_code for place in places] == [404, 200, 200]


@pytest.mark.parametrize("door", ["", "/events", "/result", "/report"])
def test_a_replay_that_is_not_there_is_404(client: TestClient, door: str) -> None:
    answer = client.get(f"/v1/whatif/nothing{door}")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
