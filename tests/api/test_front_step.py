"""What a newcomer reads and types is true."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from evenhand_api.commands.terminal import ExitCode
from evenhand_api.settings import PREFIX, Settings

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
make = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")


def said_by(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout


@make
def test_make_alone_prints_help_with_the_targets_the_readme_names() -> None:
    said = said_by("make")
    for target in {"run", "test"} | set(re.findall(r"`make (\w+)`", README)):
        assert f"make {target} " in said


@make
@pytest.mark.parametrize("target", ["run", "test", "check", "prove"])
def test_every_target_can_be_planned(target: str, tmp_path: Path) -> None:
    assert said_by("make", "--dry-run", target, f"VENV={tmp_path}/venv")


def test_every_command_line_in_the_readme_is_one_the_program_knows() -> None:
    from typer.testing import CliRunner

    from evenhand_api.cli import app

    lines = re.findall(r"^evenhand ([\w-]+)(.*)$", README, re.MULTILINE)
    rounds = {"allocate", "audit", "audit-speedups", "fairness", "export", "schema", "serve"}
    assert {command for command, _ in lines} == rounds | {
        "whatif", "replay", "sweep", "report", "trace", "settings", "token", "ledger",
    }  # fmt: skip
    for command, rest in lines:
        words = [command, *re.findall(r"^ ([a-z]+)(?= [A-Z])", rest)[: command == "token"]]
        said = re.sub(r"\s+", " ", CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "200"}).output)
        for option in re.findall(r"--[a-z-]+", rest):
            assert option in said, (command, option)


def test_the_readme_names_settings_that_are_there_and_every_exit_code() -> None:
    assert set(re.findall(rf"{PREFIX}[A-Z]\w+", README)) <= {
        f"{PREFIX}{name.upper()}" for name in Settings.model_fields
    }
    for code in ExitCode:
        assert re.search(rf"^\| {int(code)} \|", README, re.MULTILINE)


@pytest.mark.parametrize(
    "document",
    [
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "examples/states/README.md",
        *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")),
    ],
)
def test_every_link_leads_to_a_file(document: str) -> None:
    path = ROOT / document
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", path.read_text()):
        assert (path.parent / target).exists(), target


def test_the_readme_opens_with_what_it_is_and_the_table_of_folders() -> None:
    for room in ("models/evenhand_models", "allocator/evenhand", "api/evenhand_api"):
        assert f"`{room}`" in README.split("\n## ")[0]
        assert (ROOT / room).is_dir()


def test_the_versions_held_to_name_no_address() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert lines
    assert all(re.match(r"^[A-Za-z0-9._-]+(\[[a-z,]+\])?==", line) for line in lines)


@pytest.mark.parametrize("example", ["embed.py", "post_a_round.py", "first_round.py"])
def test_every_example_compiles_and_says_what_it_is(example: str) -> None:
    text = (ROOT / "examples" / example).read_text()
    compile(text, example, "exec")
    assert text.startswith('"""')


def test_the_embedding_example_runs(environment: dict[str, str]) -> None:
    command = [sys.executable, "examples/embed.py"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "detector: start" in done.stdout


def test_what_make_run_does_ends_by_itself_without_a_terminal_and_shows_the_plan(
    environment: dict[str, str],
) -> None:
    command = [sys.executable, "examples/first_round.py", "--port", "0"]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for part in ("Round of 2026-11-10", "Groups", "0e4a51", "Certificate", "verified", "answered in"):
        assert part in done.stdout
    assert "Traceback" not in done.stderr
