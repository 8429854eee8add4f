"""Rounds in processes of their own: bounded, undisturbed by each other, replaced when they die."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from stand_in_rounds import never_well, obey
from starlette.testclient import TestClient

from evenhand_api.rest import create_app
from evenhand_api.rest.workers import Work
from evenhand_api.settings import Settings

JSON = {"Content-Type": "application/json"}


@contextmanager
def doors(work: Work = obey, **settings: Any) -> Iterator[Callable[..., Any]]:
    """The doors with obedient processes; gives a function that posts a wish."""
    with TestClient(create_app(Settings(**settings), work), raise_server_exceptions=False) as client:

        def wish(**what: Any) -> Any:
            return client.post("/v1/allocate", content=json.dumps(what).encode(), headers=JSON)

        wish.get = client.get  # type: ignore[attr-defined]
        yield wish


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_two_requests_at_once_get_their_own_answers_from_two_processes() -> None:
    with doors(max_concurrent=2) as wish, ThreadPoolExecutor(2) as both:
        slow, quick = both.submit(wish, echo="slow", sleep_s=1.0), both.submit(wish, echo="quick")
        assert quick.result().json()["echo"] == "quick"
        assert slow.result().json()["echo"] == "slow"
        many = [both.submit(wish, echo=i, sleep_s=0.02 * (i % 3)) for i in range(12)]
        assert [answer.result().json()["echo"] for answer in many] == list(range(12))
        assert len({answer.result().json()["pid"] for answer in many}) == 2


def test_above_capacity_the_answer_is_503_at_once_with_a_time_to_come_back() -> None:
    with doors(max_concurrent=1, max_waiting=1) as wish, ThreadPoolExecutor(2) as crowd:
        until(lambda: wish.get("/readyz").status_code == 200)
        taken = [crowd.submit(wish, echo=i, sleep_s=2.0) for i in range(2)]
        until(lambda: wish.get("/readyz").json()["requests_in_house"] == 2)
        began = time.monotonic()
        refused = wish(echo="too many")
        assert time.monotonic() - began < 1.5
        assert refused.status_code == 503
        assert refused.headers["content-type"] == "application/problem+json"
        assert int(refused.headers["retry-after"]) >= 1
        assert [answer.result().status_code for answer in taken] == [200, 200]
        assert wish(echo="later").status_code == 200


def test_health_is_answered_while_a_round_is_solved() -> None:
    with doors(max_concurrent=1) as wish:
        until(lambda: wish.get("/readyz").status_code == 200)
        thread = threading.Thread(target=wish, kwargs={"sleep_s": 1.5})
        thread.start()
        until(lambda: wish.get("/readyz").json()["requests_in_house"] == 1)
        began = time.monotonic()
        assert wish.get("/healthz").status_code == 200
        assert time.monotonic() - began < 1.0
        thread.join()


def test_a_process_that_dies_takes_only_its_own_request_with_it() -> None:
    with doors(max_concurrent=2) as wish, ThreadPoolExecutor(2) as both:
        until(lambda: wish.get("/readyz").status_code == 200)
        other = both.submit(wish, echo="other", sleep_s=1.0)
        lost = both.submit(wish, die=True).result()
        assert lost.status_code == 500
        assert lost.headers["content-type"] == "application/problem+json"
        assert other.result().json()["echo"] == "other"
        pids = {both.submit(wish, sleep_s=0.3).result().json()["pid"] for _ in range(2)}
        assert pids
        until(lambda: wish(echo="again").status_code == 200)


def test_a_round_that_overruns_is_given_up_and_its_process_replaced() -> None:
    with doors(max_concurrent=1, max_time_limit_s=0.5, grace_s=0.5) as wish:
        until(lambda: wish.get("/readyz").status_code == 200)
        began = time.monotonic()
        assert wish(sleep_s=30).status_code == 500
        assert time.monotonic() - began < 20
        until(lambda: wish(echo="again").status_code == 200)


def test_readiness_says_why_when_the_first_round_fails() -> None:
    with doors(never_well, max_concurrent=1) as wish:
        until(lambda: "failed" in wish.get("/readyz").json()["detail"])
        answer = wish.get("/readyz")
        assert answer.status_code == 503
        assert int(answer.headers["retry-after"]) >= 1
        assert wish.get("/healthz").status_code == 200


@pytest.mark.parametrize("setting", [{"max_concurrent": 0}, {"max_body_mb": 0}, {"port": 70_000}, {"hots": "x"}])
def test_settings_that_make_no_sense_are_refused(setting: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(setting))):
        Settings(**setting)


def test_a_service_that_was_ended_can_be_started_again() -> None:
    app = create_app(Settings(max_concurrent=1), obey)
    for _ in range(2):
        with TestClient(app, raise_server_exceptions=False) as client:
            assert client.post("/v1/allocate", content=b"{}", headers=JSON).status_code == 200
