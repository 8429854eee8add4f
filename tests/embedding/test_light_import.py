"""Importing the library is cheap: no service, no second solver, a dozen names."""

import subprocess
import sys
from pathlib import Path

import pytest

import evenhand

ROOT = Path(__file__).parents[2]
SERVICE = {"fastapi", "starlette", "uvicorn", "typer", "rich", "sqlalchemy", "pulp"}


def loaded_by(statement: str) -> set[str]:
    paths = [str(ROOT / room) for room in ("allocator", "models", "api")]
    script = f"import sys; sys.path[:0] = {paths!r}; {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)
    return {name.split(".")[0] for name in done.stdout.split()}


def test_importing_the_library_loads_no_service_and_no_second_solver() -> None:
    assert not loaded_by("import evenhand") & (SERVICE | {"evenhand_api"})


def test_importing_the_words_loads_neither_the_library_nor_a_solver() -> None:
    assert not loaded_by("import evenhand_models") & (SERVICE | {"evenhand", "numpy", "ortools", "highspy", "networkx"})


def test_starting_the_service_loads_no_solver_into_the_serving_process() -> None:
    loaded = loaded_by("from evenhand_api.rest import create_app; create_app()")
    assert not loaded & {"ortools", "highspy", "pulp", "evenhand"}


@pytest.mark.parametrize("command", ["--version", "--help"])
def test_asking_for_help_loads_no_solver(command: str) -> None:
    loaded = loaded_by(f"from evenhand_api import cli; sys.argv = ['evenhand', {command!r}]")
    assert not loaded & {"ortools", "highspy", "pulp", "uvicorn", "fastapi"}


def test_the_library_offers_about_a_dozen_names_in_order() -> None:
    names = evenhand.__all__
    assert list(names) == sorted(names)
    assert 8 <= len(names) <= 20
    assert {"ClusterState", "Policy", "Plan", "InvalidInput", "allocate", "audit"} <= set(names)
    assert all(hasattr(evenhand, name) for name in names)
