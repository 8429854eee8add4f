"""docs/fairness.md says nothing that no test shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/fairness.md").read_text()
CITED = re.compile(r"\[([\w/]+\.py::test_\w+(?:, [\w/]+\.py::test_\w+)*)\]")


def statements() -> list[str]:
    """Every bullet with the lines that belong to it."""
    found = re.findall(r"^- (.*(?:\n  .*)*)", TEXT, re.MULTILINE)
    return [" ".join(one.split()) for one in found]


def citations() -> list[str]:
    return sorted({test for cited in CITED.findall(TEXT) for test in cited.split(", ")})


def test_there_are_statements_about_every_objective() -> None:
    assert len(statements()) > 30
    for objective in ("envy_free", "nash", "max_min", "equal_throughput", "max_throughput", "fair_share"):
        assert re.search(rf"^## .*`{objective}`", TEXT, re.MULTILINE)


@pytest.mark.parametrize("statement", statements(), ids=lambda one: one[:40])
def test_every_statement_names_a_test(statement: str) -> None:
    assert CITED.search(statement), statement


@pytest.mark.parametrize("test", citations())
def test_every_test_that_is_named_exists(test: str) -> None:
    file, name = test.split("::")
    assert re.search(rf"^def {name}\(", (ROOT / "tests" / file).read_text(), re.MULTILINE), test
