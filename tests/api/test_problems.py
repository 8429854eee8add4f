"""Whatever goes wrong is an application/problem+json, and nothing about the inside leaks."""

import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient

from evenhand_api.rest import create_app
from evenhand_api.rest.problems import KINDS_OF_ERRORS, Kind
from evenhand_api.rest.rounds import answer_error
from evenhand_api.settings import Settings
from evenhand_models import EvenhandError, FieldError, InvalidInput

JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """The doors alone; bodies of at most 1,000 bytes."""
    from stand_in_rounds import obey

    data_dir = str(tmp_path_factory.mktemp("ledger"))
    app = create_app(Settings(max_concurrent=1, max_body_mb=0.001, data_dir=data_dir), obey)

    async def defect(_: Request) -> Response:
        raise RuntimeError("secret path /etc/shadow")

    app.router.routes.insert(0, Route("/docs", defect))

    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


def is_problem(answer: Any, status: int) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    assert problem["status"] == status
    assert set(problem) == {"type", "title", "status", "detail", "errors"}
    assert problem["type"] in {kind.type for kind in Kind}
    return problem


def test_an_unknown_path_is_a_problem(doors: TestClient) -> None:
    is_problem(doors.get("/v2/allocate"), 404)
    is_problem(doors.post("/v1/allocate/", content=b"{}", headers=JSON), 404)


def test_a_wrong_method_is_a_problem_that_lists_the_right_ones(doors: TestClient) -> None:
    answer = doors.get("/v1/allocate")
    is_problem(answer, 405)
    assert answer.headers["allow"] == "POST"


@pytest.mark.parametrize(
    "content_type",
    [None, "", "text/plain", "application/xml", "application/json; charset=latin-1", "json", "*/*"],
)
def test_anything_but_json_in_utf8_is_refused(doors: TestClient, content_type: str | None) -> None:
    headers = {} if content_type is None else {"Content-Type": content_type}
    is_problem(doors.post("/v1/allocate", content=b"{}", headers=headers), 415)


@pytest.mark.parametrize(
    "content_type",
    ["application/json", "Application/JSON; Charset=UTF-8", 'application/json;charset="utf-8"'],
)
def test_json_in_utf8_is_taken_however_it_is_written(doors: TestClient, content_type: str) -> None:
    assert doors.post("/v1/allocate", content=b"{}", headers={"Content-Type": content_type}).status_code == 200


def test_an_unknown_encoding_is_refused_naming_those_known(doors: TestClient) -> None:
    answer = doors.post("/v1/allocate", content=b"{}", headers=JSON | {"Content-Encoding": "br"})
    is_problem(answer, 415)
    assert answer.headers["accept-encoding"] == "gzip"


def test_a_body_above_the_limit_is_refused_announced_or_not(doors: TestClient) -> None:
    is_problem(doors.post("/v1/allocate", content=b" " * 1001 + b"{}", headers=JSON), 413)
    is_problem(doors.post("/v1/allocate", content=(b" " * 100 for _ in range(11)), headers=JSON), 413)


def test_a_small_gzip_that_unpacks_to_much_is_refused(doors: TestClient) -> None:
    bomb = gzip.compress(b" " * 1_000_000)
    assert len(bomb) < 1_000 + 100
    is_problem(
        doors.post("/v1/allocate", content=bomb[:999] and bomb, headers=JSON | {"Content-Encoding": "gzip"}),
        413,
    )


@pytest.mark.parametrize(
    "packed", [b"nonsense", gzip.compress(b"{}", mtime=0)[:-4], gzip.compress(b"{}", mtime=0) + b"more"]
)
def test_broken_gzip_is_a_bad_request(doors: TestClient, packed: bytes) -> None:
    is_problem(doors.post("/v1/allocate", content=packed, headers=JSON | {"Content-Encoding": "gzip"}), 400)


def test_gzip_in_several_parts_is_read_whole(doors: TestClient) -> None:
    packed = gzip.compress(b'{"echo":') + gzip.compress(b" 1}")
    answer = doors.post("/v1/allocate", content=packed, headers=JSON | {"Content-Encoding": "gzip"})
    assert answer.json()["echo"] == 1


@pytest.mark.parametrize("body", [b"", b"  \n"])
def test_an_empty_body_is_a_bad_request(doors: TestClient, body: bytes) -> None:
    is_problem(doors.post("/v1/allocate", content=body, headers=JSON), 400)


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b'{"state": NaN}',
        b'{"state": 1, "state": 2}',
        b'\xff\xfe{"state"}',
        b"[" * 100_000,
        b"9" * 10_000,
    ],
)
def test_what_is_no_strict_json_is_a_bad_request_and_what_is_json_is_not(body: bytes) -> None:
    from evenhand_models import parse_request

    with pytest.raises(InvalidInput) as refused:
        parse_request(body)
    assert answer_error(refused.value, body).status == 400


def test_json_of_the_wrong_shape_is_unprocessable() -> None:
    from evenhand_models import parse_request

    for body in (b"[]", b"null", b"1", b"{}", b'{"state": []}'):
        with pytest.raises(InvalidInput) as refused:
            parse_request(body)
        answer = answer_error(refused.value, body)
        assert answer.status == 422
        assert json.loads(answer.body)["errors"]


def test_a_defect_in_the_service_is_a_problem_without_its_inside(doors: TestClient) -> None:
    answer = doors.get("/docs")
    is_problem(answer, 500)
    assert "shadow" not in answer.text
    assert "Traceback" not in answer.text


def test_a_defect_in_a_round_is_logged_and_answered_without_its_inside(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken(EvenhandError):
        pass

    for defect in (Broken("secret"), ZeroDivisionError("secret")):
        answer = answer_error(defect, b"{}")
        assert answer.status == 500
        assert b"secret" not in answer.body
        assert caplog.records[-1].exc_info is not None


def test_the_table_of_errors_is_closed_and_its_statuses_are_errors() -> None:
    assert dict(KINDS_OF_ERRORS)[InvalidInput] is Kind.INVALID
    assert len({kind.slug for kind in Kind}) == len(Kind)
    assert all(400 <= kind.status < 600 for kind in Kind)


def test_a_pointer_with_any_character_can_be_written() -> None:
    answer = answer_error(InvalidInput([FieldError("/\ud800/é/\x00", "bad")]), b"{}")
    assert json.loads(answer.body)["errors"][0]["pointer"] == "/\ud800/é/\x00"
