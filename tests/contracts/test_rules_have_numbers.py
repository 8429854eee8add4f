"""The numbered rules of docs/model.md, the code, the audit and the tests speak of the same things."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RULE = re.compile(r"\b(S1[01]|[SDTCGPRULOEAV][1-9])\b(?!:\d)")
DEFINED = re.compile(r"\*\*([SDTCGPRULOEAV]\d{1,2}) ")


def defined() -> set[str]:
    return set(DEFINED.findall((ROOT / "docs/model.md").read_text()))


def cited(*folders: str) -> set[str]:
    text = "".join(path.read_text() for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))
    return set(RULE.findall(text))


def test_every_family_is_there() -> None:
    assert {rule[0] for rule in defined()} == set("SDTCGPRULOEAV")


@pytest.mark.parametrize("folder", ["allocator/evenhand", "allocator/evenhand/audit", "api/evenhand_api", "tests"])
def test_no_rule_is_cited_that_the_model_does_not_define(folder: str) -> None:
    assert sorted(cited(folder) - defined()) == []


def test_every_rule_is_cited_by_the_code_that_decides() -> None:
    deciding = [
        path.name for path in (ROOT / "allocator/evenhand").iterdir() if path.name not in {"audit", "crosscheck"}
    ]
    text = cited(*(f"allocator/evenhand/{name}" for name in deciding if (ROOT / "allocator/evenhand" / name).is_dir()))
    text |= set(RULE.findall("".join(p.read_text() for p in (ROOT / "allocator/evenhand").glob("*.py"))))
    assert sorted(defined() - text) == []


def test_every_rule_is_cited_by_the_judge_that_checks_it() -> None:
    beyond_one_plan = {"A3", "O9", "R3"}
    of_no_plan = {rule for rule in defined() if rule[0] == "V"}  # what jobs declare is judged before a round
    assert sorted(defined() - cited("allocator/evenhand/audit") - beyond_one_plan - of_no_plan) == []
    assert sorted(of_no_plan - cited("allocator/evenhand/speedups")) == []


def test_every_rule_is_cited_by_a_test() -> None:
    assert sorted(defined() - cited("tests")) == []
