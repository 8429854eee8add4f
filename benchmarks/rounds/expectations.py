"""What rounds took and reached before, with its spread: a run that is clearly worse says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

Row = dict[str, Any]
EXPECTED = Path(__file__).parent / "expected.json"
SLOWER = 1.5
"""CPU seconds beyond this many times the slowest run of before are a regression."""
WIDER = 0.001
"""So is a median gap beyond the worst of before by more than its spread and this (shares of target throughput)."""


def expected_of(rows: list[Row]) -> dict[str, dict[str, float]]:
    """Median and worst by size and contention."""
    found = {}
    for name, cell in _cells(rows):
        gaps, cpu = [row["gap"] for row in cell], [row["cpu_s"] for row in cell]
        found[name] = {
            "runs": len(cell), "gap": median(gaps), "gap_worst": max(gaps), "cpu_s": round(median(cpu), 3),
            "cpu_s_worst": round(max(cpu), 3), "memory_mb": max(row["memory_mb"] for row in cell),
        }  # fmt: skip
    return found


def worse(rows: list[Row], expected: dict[str, dict[str, float]]) -> list[str]:
    """What is clearly worse than expected, one sentence each."""
    found = []
    for name, cell in _cells(rows):
        before = expected.get(name)
        if before is None:
            continue
        gap, cpu = median(row["gap"] for row in cell), median(row["cpu_s"] for row in cell)
        most = 2 * before["gap_worst"] - before["gap"] + WIDER
        if gap > most:
            found.append(f"{name}: a gap of {gap:.2%}, expected at most {most:.2%}.")
        if cpu > SLOWER * before["cpu_s_worst"]:
            found.append(f"{name}: {cpu:.2f} CPU s, expected at most {SLOWER * before['cpu_s_worst']:.2f}.")
    return found


def _cells(rows: list[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Runs that ended, by size and contention."""
    for size, corner in dict.fromkeys((row["size"], row["corner"]) for row in rows):
        cell = [r for r in rows if (r["size"], r["corner"]) == (size, corner) and "error" not in r]
        if cell and all(row["gap"] is not None for row in cell):
            yield f"{size} {corner}", cell
