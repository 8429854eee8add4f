"""A benchmark that is clearly worse than its expectations says so, and one within its spread does not."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

FILE = Path(__file__).parents[2] / "benchmarks" / "rounds" / "expectations.py"


@pytest.fixture(scope="module")
def expectations() -> ModuleType:
    spec = importlib.util.spec_from_file_location("expectations", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def runs(gap: float = 0.01, cpu_s: float = 2.0) -> list[dict[str, object]]:
    return [
        {"size": "M", "corner": "tight", "gap": gap * f, "cpu_s": cpu_s * f, "memory_mb": 100} for f in (0.9, 1.0, 1.2)
    ]


def test_what_is_measured_again_is_as_expected(expectations: ModuleType) -> None:
    assert expectations.worse(runs(), expectations.expected_of(runs())) == []
    assert expectations.worse(runs(gap=0.012, cpu_s=2.4), expectations.expected_of(runs())) == []


def test_a_wider_gap_and_a_slower_round_are_told(expectations: ModuleType) -> None:
    wide, slow = (
        expectations.worse(now, expectations.expected_of(runs())) for now in (runs(gap=0.03), runs(cpu_s=6.0))
    )
    assert len(wide) == len(slow) == 1
    assert "gap of 3.00%" in wide[0]
    assert "6.00 CPU s" in slow[0]


def test_a_cell_that_was_never_measured_has_no_expectations(expectations: ModuleType) -> None:
    assert expectations.worse(runs(), {}) == []
