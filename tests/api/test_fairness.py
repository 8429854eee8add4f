"""Objectives side by side: on the command line, over REST, as a picture."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from instances import body, instance
from starlette.testclient import TestClient
from typer.testing import CliRunner

from evenhand import compare_objectives
from evenhand_api.cli import app
from evenhand_api.report import as_text
from evenhand_api.report.fairness import fairness_report
from evenhand_api.rest.openapi import openapi_document
from evenhand_models import Objective

SMALL = "tests/instances/small.json.gz"
ROOT = Path(__file__).parents[2]


def typed(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.parametrize("width", [40, 80, 100, 200])
def test_the_report_names_every_objective_and_no_line_is_wider_than_the_terminal(width: int) -> None:
    text = as_text(fairness_report(compare_objectives(instance("small")), width, rows=3), width)
    assert max(map(len, text.splitlines())) <= width
    if width >= 80:
        for objective in Objective:
            assert f"\n{objective} " in text
        for word in ("throughput", "incentive", "envy", "Pareto", "idle", "and 4 more groups"):
            assert word in text
    assert ("to equal  " in text) == (width >= 80)


def test_the_command_prints_the_report_and_with_json_nothing_but_json() -> None:
    said = typed("fairness", ROOT / SMALL)
    assert said.exit_code == 0, said.output
    assert "Objectives side by side" in said.stdout
    as_json = typed("fairness", ROOT / SMALL, "--json")
    assert json.loads(as_json.stdout) == json.loads(compare_objectives(instance("small")).model_dump_json())


def test_help_explains_the_exit_codes() -> None:
    said = typed("fairness", "--help")
    assert said.exit_code == 0
    assert "Exit codes" in said.output


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_equal_comparisons_make_equal_pictures(kind: str, tmp_path: Path) -> None:
    one, two = tmp_path / f"one.{kind}", tmp_path / f"two.{kind}"
    for out in (one, two):
        said = typed("fairness", ROOT / SMALL, "--plot", out)
        assert said.exit_code == 0, said.output
        assert str(out) in said.stderr
    assert one.read_bytes() == two.read_bytes()
    assert len(one.read_bytes()) < 200_000
    if kind == "svg":
        text = one.read_text()
        assert text.startswith("<?xml")
        for word in (*Objective, "least sharing incentive", "Pareto gap", "equal split"):
            assert word in text


def test_a_picture_of_another_kind_is_wrong_usage() -> None:
    said = typed("fairness", ROOT / SMALL, "--plot", "a.gif")
    assert said.exit_code == 2
    assert "a.gif must end in .svg or .png" in said.stderr


def test_a_picture_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    said = typed("fairness", ROOT / SMALL, "--plot", tmp_path / "nowhere" / "a.svg")
    assert said.exit_code == 4
    assert "cannot be written" in said.stderr
    assert "Traceback" not in said.output


def test_without_matplotlib_a_picture_is_refused_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in [n for n in sys.modules if n.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "evenhand_api.report.fairness_plot", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    said = typed("fairness", ROOT / SMALL, "--plot", tmp_path / "a.svg")
    assert said.exit_code == 4
    assert said.stderr == "evenhand: plots need matplotlib: pip install 'evenhand[plot]'.\n"
    assert typed("fairness", ROOT / SMALL).exit_code == 0


def test_a_broken_state_is_told_by_pointers(tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    path.write_text('{"now": "noon"}')
    said = typed("fairness", path)
    assert said.exit_code == 3
    assert "/now" in said.stderr


def test_the_service_answers_what_the_library_finds(client: TestClient) -> None:
    answer = client.post("/v1/fairness", content=body("small"), headers={"Content-Type": "application/json"})
    assert answer.status_code == 200, answer.text
    assert answer.json() == json.loads(compare_objectives(instance("small")).model_dump_json())
    document = openapi_document()
    schema = {"$ref": "#/components/schemas/ObjectiveComparison", "components": document["components"]}
    jsonschema.Draft202012Validator(schema).validate(answer.json())


def test_the_service_still_decides_rounds_in_the_same_process(client: TestClient, tiny: Any) -> None:
    assert set(client.post("/v1/fairness", json=tiny).json()) >= {"objectives", "owed"}
    assert set(client.post("/v1/allocate", json=tiny).json()) >= {"assignments", "certificate"}


@pytest.mark.parametrize(
    ("spoil", "pointer"),
    [
        (lambda request: request["state"]["jobs"][0].update(gpus=-1), "/state/jobs/0/gpus"),
        (lambda request: request.update(policy={"time_limit_s": 3600}), "/policy/time_limit_s"),
    ],
)
def test_a_bad_request_is_a_problem_with_its_pointer(
    client: TestClient, tiny: Any, spoil: Callable[[Any], None], pointer: str
) -> None:
    spoil(tiny)
    answer = client.post("/v1/fairness", json=tiny)
    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
