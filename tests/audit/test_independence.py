"""The audit shares no code with what it judges: looked up in its own source."""

import ast
import sys
from pathlib import Path

import pytest

from evenhand.audit import report

FILES = sorted(Path(report.__file__).parent.glob("*.py"))
ALLOWED = {"evenhand_models", "networkx", "numpy"}


def imported(path):
    for step in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(step, ast.Import):
            yield from (name.name for name in step.names)
        elif isinstance(step, ast.ImportFrom):
            yield "." * step.level + (step.module or "")


def test_there_is_something_to_look_at():
    assert len(FILES) > 10


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_imports_no_solver_and_nothing_else_of_the_library(path):
    for module in imported(path):
        own = module == "evenhand.audit" or module.startswith("evenhand.audit.")
        root = module.split(".")[0]
        assert own or root in ALLOWED or root in sys.stdlib_module_names, f"{path.name} imports {module}"
