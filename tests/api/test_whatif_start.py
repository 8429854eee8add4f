"""What if one job came now, at the doors: the command line and POST /v1/whatif/start."""

import json
from pathlib import Path

import jsonschema
import pytest

from evenhand_api.rest.forecasts import example
from evenhand_api.rest.openapi import openapi_document
from evenhand_models import parse_document, state_hash

JOB = dict(example()["add"][0])


@pytest.fixture
def files(tmp_path: Path, tiny):
    state, added = tmp_path / "state.json", tmp_path / "job.json"
    state.write_text(json.dumps(tiny))
    added.write_text(json.dumps(JOB))
    return state, added


def test_the_example_of_the_document_is_answered_by_its_schema_and_holds_nothing(client) -> None:
    answer = client.post("/v1/whatif/start", json=example())
    assert answer.status_code == 200, answer.text
    schema = {"$ref": "#/components/schemas/WhatIfStart", "components": openapi_document()["components"]}
    jsonschema.Draft202012Validator(schema).validate(answer.json())
    said = answer.json()
    assert said["reservation"] is False
    state = parse_document(json.dumps({"state": example()["state"]}).encode()).state
    assert said["state_hash"] == state_hash(state)
    assert said["jobs"][0]["job"] == "maybe-1"


def test_the_service_and_the_command_line_say_the_same(client, run, files) -> None:
    state, added = files
    done = run("whatif", str(state), "--add", str(added), "--json", "--rounds", "10")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == client.post("/v1/whatif/start", json=example()).json()


def test_all_that_is_wrong_with_added_jobs_is_said_with_pointers(client) -> None:
    asked = dict(example())
    asked["add"] = [
        JOB | {"id": "train-1"},
        JOB | {"gpus": 0},
        JOB | {"id": "x", "contract": {"min_runtime_s": 99_999}},
        JOB | {"id": "y", "gpus": 3, "min_gpus": 4},
    ]
    answer = client.post("/v1/whatif/start", json=asked)
    assert answer.status_code == 422
    pointers = [error["pointer"] for error in answer.json()["errors"]]
    assert sorted(pointers) == ["/add/0/id", "/add/1/gpus", "/add/2/contract/min_runtime_s", "/add/3/min_gpus"]


def test_nothing_to_add_is_refused(client) -> None:
    answer = client.post("/v1/whatif/start", json=dict(example()) | {"add": []})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/add"


def test_the_report_says_when_and_that_nothing_is_reserved(run, files) -> None:
    state, added = files
    done = run("whatif", str(state), "--add", str(added))
    assert done.returncode == 0, done.stderr
    said = done.stdout.decode()
    assert "not a reservation" in said
    assert "maybe-1" in said
    assert "unchanged" in said


def test_a_file_may_hold_a_list_of_jobs_and_bad_ones_are_one_line_each(run, files, tmp_path: Path) -> None:
    state, _ = files
    listed = tmp_path / "jobs.json"
    listed.write_text(json.dumps([JOB, JOB | {"gpus": -1}]))
    done = run("whatif", str(state), "--add", str(listed))
    assert done.returncode == 3
    assert done.stderr.decode().splitlines()[0].startswith("/add/1/gpus: ")
    assert done.stdout == b""


def test_only_one_file_can_be_standard_input(run, files) -> None:
    done = run("whatif", "-", "--add", "-", input=b"{}")
    assert done.returncode == 2


def test_the_smallest_time_limit_is_a_number_of_rounds_like_any_other(client) -> None:
    asked = dict(example()) | {"policy": {"time_limit_s": 5e-324}}
    assert client.post("/v1/whatif/start", json=asked).status_code == 200
