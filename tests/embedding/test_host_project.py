"""A host with its own models.py, api.py and allocator.py embeds evenhand, and type-checks."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HOST = Path(__file__).parent / "host"


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the host project, away from this source tree."""
    home = tmp_path_factory.mktemp("host")
    for path in HOST.glob("*.py"):
        shutil.copy(path, home)
    return home


def test_it_runs_with_the_wheel_and_each_side_keeps_its_names(
    host: Path, host_python: Path, clean_environment: dict[str, str]
) -> None:
    done = subprocess.run(
        [str(host_python), "main.py"],
        cwd=host,
        env=clean_environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    where, *lines = done.stdout.splitlines()
    assert Path(where).is_relative_to(host_python.parents[1])
    assert lines == ["0-vision start 4", "1-language start 4", "2-nobody infeasible 0"]


def test_it_type_checks_strictly(host: Path, host_python: Path, clean_environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(host_python), "main.py"]
    done = subprocess.run(
        [*command, "--config-file=", "--cache-dir=cache"],
        cwd=host,
        env=clean_environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_mistake_of_the_host_is_found_by_its_type_checker(
    host: Path, host_python: Path, clean_environment: dict[str, str]
) -> None:
    (host / "wrong.py").write_text(
        "from evenhand import Plan\n\n\ndef f(plan: Plan) -> int:\n    return plan.assignments[0].job\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(host_python), "wrong.py"]
    done = subprocess.run(
        [*command, "--config-file=", "--cache-dir=cache"],
        cwd=host,
        env=clean_environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 1
    assert 'got "str", expected "int"' in done.stdout
