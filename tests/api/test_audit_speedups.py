"""The audit of declared speedups through its doors: the command line and POST /v1/audit/speedups."""

import csv
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from evenhand_api.cli import app
from evenhand_api.rest.openapi import openapi_document
from evenhand_api.rest.speedups import EXAMPLE
from evenhand_models import Objective, SpeedupReport, parse_document, parse_state

ROOT = Path(__file__).parents[2]
STATE = ROOT / "examples" / "speedups" / "state.json"
SEEN = ROOT / "examples" / "speedups" / "observations.json"
TABLE = ROOT / "examples" / "speedups" / "observations.csv"
ADDRESS = "/v1/audit/speedups"


def typed(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["audit-speedups", *(str(argument) for argument in arguments)])


def reported(*arguments: object) -> SpeedupReport:
    done = typed(*arguments, "--json")
    assert done.exit_code in {0, 1}, done.stderr
    return SpeedupReport.model_validate_json(done.stdout)


@pytest.fixture
def asked() -> dict[str, Any]:
    """A request that is right, to be spoiled at will."""
    found: dict[str, Any] = json.loads(EXAMPLE)
    return found


def written(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


# What it says


def test_the_example_finds_the_liar_what_it_gains_and_the_lost_progress() -> None:
    report = reported(STATE, SEEN)
    assert [(g.group, g.gpu_type, g.flag) for g in report.groups if g.flag != "none"] == [
        ("language", "h100", "overdeclared")
    ]
    assert [g.objective for g in report.gains] == list(Objective)
    assert {g.group for g in report.gains} == {"language"}
    assert [(r.job, r.kept, r.lost_gpu_hours) for r in report.refuted] == [("s-tts", 0.0, pytest.approx(20))]
    assert [(u.job, u.gpu_type) for u in report.undeclared] == [("s-tts", "h100")]


def test_the_report_shows_every_section_and_is_no_wider_than_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for columns in ("60", "80", "140"):
        monkeypatch.setenv("COLUMNS", columns)
        done = typed(STATE, SEEN)
        assert done.exit_code == 0, done.stderr
        assert max(map(len, done.stdout.splitlines())) <= int(columns)
        said = " ".join(done.stdout.split())
        for part in ("1 group and 2 jobs", "overdeclared", "What it gains", "equal_throughput", "s-tts", "In the next"):
            assert part in said, part


def test_the_documentation_shows_what_the_command_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "110")
    monkeypatch.chdir(ROOT)
    shown = (ROOT / "docs" / "speedups.md").read_text().split("```text\n")[1].split("```")[0]
    command, _, output = shown.partition("\n")
    assert command.startswith("$ evenhand audit-speedups ")
    assert typed(*command.split()[3:]).stdout == output


def test_json_is_the_report_and_nothing_else() -> None:
    assert typed(STATE, SEEN, "--json").stdout.count("\n") == 1


def test_without_gains_nothing_is_solved_and_none_is_reported() -> None:
    assert reported(STATE, SEEN, "--no-gains").gains == ()


def test_a_table_says_the_same_as_json(tmp_path: Path) -> None:
    by_json, by_table = reported(STATE, SEEN), reported(STATE, TABLE)
    assert by_json == by_table
    packed = tmp_path / "observations.csv.gz"
    packed.write_bytes(gzip.compress(b"\xef\xbb\xbf" + TABLE.read_bytes().replace(b"\n", b"\r\n")))
    assert reported(STATE, packed) == by_json


def test_a_bare_list_of_observations_will_do(tmp_path: Path) -> None:
    bare = written(tmp_path / "seen.json", json.loads(SEEN.read_text())["observations"])
    assert reported(STATE, bare) == reported(STATE, SEEN)


def test_schemas_describe_the_file_of_observations_and_the_report() -> None:
    for which, document in (
        ("observations", SEEN.read_text()),
        ("speedup-report", typed(STATE, SEEN, "--json").stdout),
    ):
        schema = json.loads(CliRunner().invoke(app, ["schema", which]).stdout)
        jsonschema.Draft202012Validator(schema).validate(json.loads(document))


# Use and consequence


@pytest.mark.parametrize(
    ("use", "consequence", "code", "changed", "refused"),
    [
        ("declared", "warn", 0, set(), set()),
        ("observed", "warn", 0, {"l-7b", "l-13b", "v-resnet", "v-vit"}, set()),
        ("blend", "warn", 0, {"l-7b", "l-13b", "v-resnet", "v-vit"}, set()),
        ("declared", "use_observed", 0, {"l-7b", "l-13b"}, set()),
        ("declared", "refuse", 1, {"l-7b", "l-13b"}, {"l-7b", "l-13b"}),
    ],
)
def test_use_and_consequence_say_what_the_next_rounds_go_by(
    use: str, consequence: str, code: int, changed: set[str], refused: set[str]
) -> None:
    done = typed(STATE, SEEN, "--policy", use, "--consequence", consequence, "--json", "--no-gains")
    assert done.exit_code == code
    report = SpeedupReport.model_validate_json(done.stdout)
    assert (report.policy.use, report.policy.consequence) == (use, consequence)
    assert {entry.job for entry in report.jobs if entry.changed} == changed
    assert {entry.job for entry in report.jobs if entry.refused} == refused


def test_refuse_is_code_0_where_nothing_is_wrong(tmp_path: Path) -> None:
    document = json.loads(SEEN.read_text())
    document["observations"] = [o for o in document["observations"] if o["job"].startswith("v-")]
    assert typed(STATE, written(tmp_path / "seen.json", document), "--consequence", "refuse").exit_code == 0


def test_the_state_for_the_next_round_holds_the_vectors_and_a_round_takes_it(tmp_path: Path) -> None:
    out = tmp_path / "next.json.gz"
    report = reported(STATE, SEEN, "--policy", "observed", "--consequence", "refuse", "--write-state", out)
    state = parse_state(gzip.decompress(out.read_bytes()))
    expected = {entry.job: entry.speedup for entry in report.jobs if not entry.refused}
    assert {job.id: job.speedup for job in state.jobs} == expected
    done = CliRunner().invoke(app, ["allocate", str(out)])
    assert done.exit_code == 0, done.stderr


def test_a_request_stays_a_request_and_may_be_written_over_itself(tmp_path: Path) -> None:
    before = {"state": json.loads(STATE.read_text()), "policy": {"objective": "nash"}}
    file = written(tmp_path / "round.json", before)
    done = typed(file, SEEN, "--policy", "observed", "--write-state", file)
    assert done.exit_code == 0, done.stderr
    after = parse_document(file.read_bytes())
    assert after.policy is not None
    assert after.policy.objective == "nash"
    was = parse_document(json.dumps(before).encode()).state
    assert after.state.model_copy(update={"jobs": was.jobs}) == was
    assert [entry.name for entry in tmp_path.iterdir()] == ["round.json"]


def test_gains_are_measured_by_the_policy_of_the_rounds(tmp_path: Path) -> None:
    policy = written(tmp_path / "policy.json", {"throughput_unit": "slowest"})
    best, slowest = reported(STATE, SEEN), reported(STATE, SEEN, "--round-policy", policy)
    assert [g.honest for g in best.gains] != [g.honest for g in slowest.gains]
    level = next(g for g in slowest.gains if g.objective is Objective.EQUAL_THROUGHPUT)
    assert level.gain is not None
    assert level.gain < 0


# What goes wrong


def test_faults_are_code_3_with_pointers_into_the_file_of_observations(tmp_path: Path) -> None:
    good = json.loads(SEEN.read_text())["observations"][:3]
    wrong = [good[0] | {"seconds": 0}, good[1] | {"gpus": -1}, good[2] | {"job": "", "colour": "red"}]
    file = written(tmp_path / "seen.json", {"observations": wrong})
    done = typed(STATE, file)
    assert done.exit_code == 3
    assert done.stdout == ""
    for pointer in ("/observations/0/seconds", "/observations/1/gpus", "/observations/2/job", "/observations/2/colour"):
        assert f"{file}#{pointer}: " in done.stderr
    done = typed(STATE, written(file, wrong))
    assert f"{file}#/0/seconds: " in done.stderr
    late = [good[0], good[1] | {"ended_at": "2027-01-01T00:00:00Z"}]
    assert f"{file}#/1/ended_at: " in typed(STATE, written(file, late)).stderr
    again = {"observations": late, "ended_jobs": [{"id": "l-7b", "group": "x", "speedup": {}}]}
    said = typed(STATE, written(file, again)).stderr
    assert f"{file}#/observations/1/ended_at: " in said
    assert f"{file}#/ended_jobs/0/id: " in said


def test_faults_of_a_table_are_named_by_line_and_column(tmp_path: Path) -> None:
    head = "job,gpu_type,gpus,work_done,seconds,ended_at\n"
    file = tmp_path / "seen.csv"
    rows = "l-7b,h100,8,1,60,\n\nl-7b,h100,eight,NaN,0,\nl-7b,h100,8,1e999,1_000,noon\n"
    said = typed(STATE, written(file, head + rows)).stderr
    for pointer in ("/4/gpus", "/4/work_done", "/4/seconds", "/5/work_done", "/5/seconds", "/5/ended_at"):
        assert f"{file}#{pointer}: " in said
    assert f"{file}#/2" not in said
    late = "l-7b,h100,8,1,60,\n\nl-7b,h100,8,1,60,2027-01-01T00:00:00Z\n"
    assert f"{file}#/4/ended_at: " in typed(STATE, written(file, head + late)).stderr
    assert f"{file}#/1/speed: " in typed(STATE, written(file, "job,speed\na,1\n")).stderr
    assert "twice" in typed(STATE, written(file, "job,job\na,1\n")).stderr
    assert f"{file}#/2: " in typed(STATE, written(file, head + "a,b,1,1,1,,,\n")).stderr
    assert "required" in typed(STATE, written(file, "job\na\n")).stderr


@pytest.mark.parametrize("name", ["seen.json", "seen.csv"])
@pytest.mark.parametrize(
    "content", [b"", b"\x00\xff" * 99, b'"', b"[" * 100_000, b"null", b"1", b'{"observations": 3}']
)
def test_garbage_is_code_3_and_never_a_traceback(tmp_path: Path, name: str, content: bytes) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    done = typed(STATE, file)
    assert done.exit_code == 3, done.output
    assert done.stdout == ""
    assert "defect" not in done.stderr


def test_wrong_usage_is_code_2() -> None:
    for arguments in (
        ("-", "-"),
        (STATE,),
        (STATE, SEEN, "--policy", "guess"),
        (STATE, SEEN, "--consequence", "shame"),
        (STATE, SEEN, "--write-state", "-"),
    ):
        assert typed(*arguments).exit_code == 2


def test_a_state_that_cannot_be_written_is_code_4(tmp_path: Path) -> None:
    for place in (tmp_path / "missing" / "next.json", tmp_path, ".", ""):
        done = typed(STATE, SEEN, "--no-gains", "--write-state", place)
        assert done.exit_code == 4
        assert "cannot be written" in done.stderr


def test_the_command_explains_its_exit_codes() -> None:
    assert "Exit codes" in typed("--help").output


def test_observations_may_come_by_standard_input(run: Callable[..., Any]) -> None:
    done = run("audit-speedups", str(STATE), "-", "--json", "--no-gains", input=SEEN.read_bytes())
    assert done.returncode == 0, done.stderr
    assert SpeedupReport.model_validate_json(done.stdout).groups


# REST


def test_the_service_answers_as_the_command_does(client: TestClient) -> None:
    seen = json.loads(SEEN.read_text())
    answer = client.post(ADDRESS, json={"state": json.loads(STATE.read_text())} | seen)
    assert answer.status_code == 200, answer.text
    assert SpeedupReport.model_validate_json(answer.content) == reported(STATE, SEEN)


def test_the_answer_holds_the_vectors_of_the_next_rounds(client: TestClient, asked: dict[str, Any]) -> None:
    answer = client.post(ADDRESS, json=asked).json()
    vectors = {entry["job"]: entry["speedup"] for entry in answer["jobs"]}
    assert vectors["train-1"]["h100"] == pytest.approx(2, rel=0.02)
    assert vectors["train-2"] == {"a100": 1.0, "h100": 2.0}
    assert {gain["objective"] for gain in answer["gains"]} == {objective.value for objective in Objective}


def test_request_and_answer_fit_their_schemas(client: TestClient, asked: dict[str, Any]) -> None:
    document = openapi_document()
    answer = client.post(ADDRESS, json=asked).json()
    for value, name in ((asked, "SpeedupAuditRequest"), (answer, "SpeedupReport")):
        schema = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
        jsonschema.Draft202012Validator(schema).validate(value)
    content = document["paths"][ADDRESS]["post"]["requestBody"]["content"]["application/json"]
    for example in content["examples"].values():
        assert client.post(ADDRESS, json=example["value"]).status_code == 200


def test_all_faults_come_back_at_once_with_pointers(client: TestClient, asked: dict[str, Any]) -> None:
    asked["state"]["jobs"].append(asked["state"]["jobs"][0])
    asked["observations"][0]["seconds"] = 0
    asked["observations"][2]["ended_at"] = "2027-01-01T00:00:00Z"
    asked["ended_jobs"] = [{"id": "x", "group": 3, "speedup": {}}, {"id": "train-2", "group": "a", "speedup": {}}]
    asked["policy"] |= {"use": "guess", "noise": 0}
    answer = client.post(ADDRESS, json=asked)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert {error["pointer"] for error in answer.json()["errors"]} == {
        "/state/jobs/2/id",
        "/observations/0/seconds",
        "/observations/2/ended_at",
        "/ended_jobs/0/group",
        "/ended_jobs/1/id",
        "/policy/use",
        "/policy/noise",
    }


def test_more_time_than_the_service_gives_is_refused(client: TestClient, asked: dict[str, Any]) -> None:
    answer = client.post(ADDRESS, json=asked | {"round_policy": {"time_limit_s": 600}})
    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/round_policy/time_limit_s"]


def test_what_is_no_json_is_a_bad_request(client: TestClient) -> None:
    headers = {"Content-Type": "application/json"}
    assert client.post(ADDRESS, content=b"{", headers=headers).status_code == 400
    assert client.get(ADDRESS).status_code == 405


def test_the_tables_header_names_the_fields_of_an_observation() -> None:
    header = next(csv.reader(io.StringIO(TABLE.read_text())))
    described = openapi_document()["components"]["schemas"]["Observation"]["properties"]
    assert set(header) <= set(described)
