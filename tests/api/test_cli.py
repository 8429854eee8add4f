"""The command line as its users type it."""

import gzip
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from evenhand_api.cli import app
from evenhand_api.rest.openapi import openapi_document
from evenhand_models import parse_plan

ROOT = Path(__file__).parents[2]
PHILLY = "examples/states/philly_3vc_day40.json.gz"
Run = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture
def state(tiny: Any, tmp_path: Path) -> Path:
    path = tmp_path / "state.json"
    path.write_text(json.dumps(tiny))
    return path


def typed(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


# What it says


def test_without_a_command_it_shows_help_and_every_command_explains_its_exit_codes() -> None:
    assert "allocate" in typed().output
    for command in ("allocate", "audit", "export"):
        said = typed(command, "--help")
        assert said.exit_code == 0
        assert "Exit codes" in said.output
    assert typed("serve", "--help").exit_code == typed("schema", "--help").exit_code == 0


def test_version_is_one_line() -> None:
    assert re.fullmatch(r"evenhand \S+\n", typed("--version").output)


def test_the_report_names_what_starts_the_groups_and_the_proof(state: Path) -> None:
    done = typed("allocate", state)
    assert done.exit_code == 0, done.output
    for part in (
        "Round of 2026-11-01 12:00Z",
        "Starts",
        "train-1",
        "Groups",
        "vision",
        "Certificate",
        "verified",
    ):
        assert part in done.stdout


def test_thousands_of_waits_stay_readable_without_a_terminal(run: Run) -> None:
    done = run("allocate", PHILLY, env={"COLUMNS": "80"})
    assert done.returncode == 0, done.stderr
    assert b"\x1b" not in done.stdout
    lines = done.stdout.decode().splitlines()
    assert max(map(len, lines)) <= 80
    assert 20 < len(lines) < 400
    assert "Waits" in done.stdout.decode()


def test_explain_shows_everything_about_one_job(state: Path) -> None:
    done = typed("allocate", state, "--explain", "train-1")
    assert done.exit_code == 0, done.output
    for part in ("Job train-1", "vision", "4 GPUs", "Why", "Its group", "submitted"):
        assert part in done.stdout
    found = json.loads(typed("allocate", state, "--explain", "train-1", "--json").stdout)
    assert found["job"]["id"] == found["assignment"]["job"] == "train-1"
    assert found["group"]["group"] == "vision"


def test_explaining_a_job_that_is_not_there_is_wrong_usage_and_names_those_near(state: Path) -> None:
    done = typed("allocate", state, "--explain", "train-3")
    assert done.exit_code == 2
    assert "train-1" in done.stderr


# JSON, and only JSON


def test_json_is_the_plan_and_nothing_else(run: Run, state: Path) -> None:
    done = run("allocate", str(state), "--json")
    assert parse_plan(done.stdout).certificate.verified
    assert done.stdout.count(b"\n") == 1


def test_plan_written_by_one_command_passes_the_other(run: Run, state: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_bytes(run("allocate", str(state), "--json").stdout)
    done = run("audit", str(state), str(plan))
    assert done.returncode == 0, done.stdout
    assert json.loads(run("audit", str(state), str(plan), "--json").stdout) == {"ok": True, "findings": []}


def test_a_plan_that_breaks_a_rule_fails_the_audit_with_code_1(run: Run, state: Path, tmp_path: Path) -> None:
    plan = json.loads(run("allocate", str(state), "--json").stdout)
    plan["assignments"].pop()
    spoiled = tmp_path / "plan.json"
    spoiled.write_text(json.dumps(plan))
    done = run("audit", str(state), str(spoiled), "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert found["ok"] is False
    assert set(found["findings"][0]) == {"rule", "message", "refs"}
    assert run("audit", str(state), str(spoiled)).returncode == 1


@pytest.mark.parametrize("which", ["request", "plan"])
def test_schema_describes_both_directions(which: str, tiny: Any) -> None:
    import jsonschema

    schema = json.loads(typed("schema", which).stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    if which == "request":
        jsonschema.Draft202012Validator(schema).validate(tiny)


def test_schema_openapi_is_the_services_own() -> None:
    assert json.loads(typed("schema", "openapi").stdout) == openapi_document()


# Where input comes from


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_standard_input_may_be_plain_or_gzip(run: Run, tiny: Any, pack: Callable[[bytes], bytes]) -> None:
    done = run("allocate", "-", "--json", input=pack(json.dumps(tiny).encode()))
    assert done.returncode == 0, done.stderr
    assert len(parse_plan(done.stdout).assignments) == 2


def test_a_bare_state_is_as_good_as_a_request(run: Run, tiny: Any) -> None:
    bare = run("allocate", "-", "--json", input=json.dumps(tiny["state"]).encode())
    assert bare.returncode == 0, bare.stderr


def test_a_policy_file_replaces_the_requests_own(run: Run, tiny: Any, tmp_path: Path) -> None:
    policy = tmp_path / "policy.json"
    policy.write_text('{"seed": 3}')
    for document in (tiny | {"policy": {"seed": 9}}, tiny["state"]):
        done = run("allocate", "-", "--policy", str(policy), "--json", input=json.dumps(document).encode())
        assert parse_plan(done.stdout).policy.seed == 3


def test_a_policy_file_is_checked_against_the_state(run: Run, tiny: Any, tmp_path: Path) -> None:
    policy = tmp_path / "policy.json"
    policy.write_text('{"max_protection_s": 60}')
    done = run("allocate", "-", "--policy", str(policy), input=json.dumps(tiny).encode())
    assert done.returncode == 3
    assert b"/state/jobs/0/contract/min_runtime_s" in done.stderr
    assert b"/state/jobs/1/contract/min_runtime_s" in done.stderr
    policy.write_text('{"max_protection_s": -1, "x": 1}')
    done = run("allocate", "-", "--policy", str(policy), input=json.dumps(tiny).encode())
    assert done.returncode == 3
    assert b"/policy/max_protection_s" in done.stderr
    assert b"/policy/x" in done.stderr


# What goes wrong


def test_all_faults_are_printed_with_pointers_and_code_3(run: Run, tiny: Any) -> None:
    tiny["state"]["jobs"][0]["gpus"] = -1
    tiny["state"]["jobs"][1]["group"] = 7
    done = run("allocate", "-", input=json.dumps(tiny).encode())
    assert done.returncode == 3
    assert done.stdout == b""
    assert b"/state/jobs/0/gpus" in done.stderr
    assert b"/state/jobs/1/group" in done.stderr


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\x00\x01\x02\xff" * 1000,
        b"\x1f\x8b",
        b"\x1f\x8bnonsense" * 10,
        gzip.compress(b'{"state": 1}' * 100)[:-9],
        gzip.compress(b'{"state": 1}') + b"tail",
        b"null",
        b"[" * 200_000,
    ],
)
def test_garbage_is_code_3_and_never_a_traceback(run: Run, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.write_bytes(content)
    done = run("allocate", str(path))
    assert done.returncode == 3
    assert done.stdout == b""
    assert b"Traceback" not in done.stderr
    assert done.stderr.strip()


def test_files_that_cannot_be_read_are_code_3(run: Run, state: Path, tmp_path: Path) -> None:
    for arguments in (
        ("allocate", "missing.json"),
        ("allocate", str(tmp_path)),
        ("allocate", "a\udcffb"),
        ("allocate", str(state), "--policy", "missing.json"),
        ("audit", str(state), "missing.json"),
        ("audit", str(state), str(state)),
    ):
        done = run(*arguments)
        assert done.returncode == 3, (arguments, done.stderr)
        assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["allocate"],
        ["allocate", "x", "y"],
        ["allocate", "x", "--nonsense"],
        ["nonsense"],
        ["schema", "nonsense"],
        ["serve", "--port", "70000"],
        ["export", "x", "out.txt"],
        ["audit", "-", "-"],
    ],
)
def test_wrong_usage_is_code_2(arguments: list[str]) -> None:
    assert typed(*arguments).exit_code == 2


def test_a_reader_that_leaves_early_is_no_error(environment: dict[str, str]) -> None:
    script = f'"{sys.executable}" -m evenhand_api.cli schema openapi | head -c 1; echo " ${{PIPESTATUS[0]}}"'
    done = subprocess.run(["bash", "-c", script], capture_output=True, env=environment, timeout=60, check=False)
    assert done.stderr == b""
    assert done.stdout in {b"{ 141\n", b"{ 0\n"}


def test_output_that_cannot_be_written_is_code_4(environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "evenhand_api.cli", "schema"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, env=environment, timeout=60, check=False)
    assert done.returncode == 4
    assert b"Traceback" not in done.stderr


def test_an_address_that_is_taken_is_code_4_and_named(run: Run) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = run("serve", "--port", str(taken.getsockname()[1]))
    assert done.returncode == 4
    assert b"cannot listen on 127.0.0.1" in done.stderr


def test_a_setting_that_makes_no_sense_is_code_3_and_named(run: Run) -> None:
    done = run("serve", env={"EVENHAND_PORT": "much", "EVENHAND_NONSENSE": "1"})
    assert done.returncode == 3
    assert b"EVENHAND_PORT" in done.stderr
    assert b"EVENHAND_NONSENSE" in done.stderr


# The second opinion


def test_the_cross_check_agrees_and_leaves_standard_output_alone(run: Run, state: Path) -> None:
    done = run("allocate", str(state), "--cross-check", "--json")
    assert done.returncode == 0, done.stderr
    assert b"agrees" in done.stderr
    assert parse_plan(done.stdout)


@pytest.mark.parametrize("suffix", [".lp", ".mps"])
def test_an_exported_program_has_rows_that_say_what_they_are(
    run: Run, state: Path, tmp_path: Path, suffix: str
) -> None:
    out = tmp_path / f"round{suffix}"
    done = run("export", str(state), str(out))
    assert done.returncode == 0, done.stderr
    assert done.stdout == b""
    assert re.search(r"\bC1", out.read_text())


def test_a_program_that_cannot_be_written_is_code_4(run: Run, state: Path, tmp_path: Path) -> None:
    done = run("export", str(state), str(tmp_path / "missing" / "round.lp"))
    assert done.returncode == 4
    assert b"Traceback" not in done.stderr
