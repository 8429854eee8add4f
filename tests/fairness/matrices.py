"""Speedup matrices to sweep over: drawn ones, and all measured ones that come with the project."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from evenhand.fairness.group_value import FloatArray, GroupValues, values_of

GAVEL = Path(__file__).parents[2] / "benchmarks" / "data" / "gavel_speedups.json"
NO_CAP = 10**6


@dataclass(frozen=True, eq=False)
class Matrix:
    """What groups say: speedups [n, T] (0: cannot run), what they are owed [n], caps [n], GPUs by type [T]."""

    speedup: FloatArray
    owed: FloatArray
    cap: np.ndarray
    gpus: np.ndarray

    @property
    def values(self) -> GroupValues:
        """As the objectives take it, one job class a group."""
        return values_of(np.arange(len(self.owed)), self.owed, self.speedup, self.cap, self.gpus)

    def capped(self, seed: int, least: float = 0.3, most: float = 2.0) -> Matrix:
        """The same with caps of so many times the part of all GPUs that a group is owed."""
        rng = np.random.default_rng(seed)
        part = self.owed / self.owed.sum() * self.gpus.sum()
        return replace(self, cap=np.ceil(part * rng.uniform(least, most, len(part))).astype(np.int64))

    def mixed(self, groups: np.ndarray, types: np.ndarray) -> Matrix:
        """Groups and types in another order."""
        return Matrix(self.speedup[groups][:, types], self.owed[groups], self.cap[groups], self.gpus[types])


def plain(speedup: list[list[float]], gpus: list[int], owed: list[float] | None = None) -> Matrix:
    """A matrix by hand, without caps, equal entitlements by default."""
    table = np.array(speedup, dtype=np.float64)
    count = len(table)
    return Matrix(table, np.ones(count) if owed is None else np.array(owed), np.full(count, NO_CAP), np.array(gpus))


def best_unit(speedup: FloatArray) -> FloatArray:
    """Each row over its largest entry."""
    return np.asarray(speedup / speedup.max(axis=1, keepdims=True))


def drawn(seed: int) -> Matrix:
    """2 to 20 groups, 1 to 5 types, speedups over two orders of magnitude, some types of no use to some."""
    rng = np.random.default_rng(seed)
    groups, types = int(rng.integers(2, 21)), int(rng.integers(1, 6))
    speedup = np.exp(rng.normal(0, rng.choice([0.2, 0.7, 1.3]), (groups, types)))
    speedup[rng.random((groups, types)) < rng.choice([0.0, 0.25])] = 0.0
    speedup[np.arange(groups), rng.integers(0, types, groups)] += 1.0
    owed = rng.choice([rng.lognormal(1, 1, groups), np.ones(groups)])
    return Matrix(best_unit(speedup), owed, np.full(groups, NO_CAP), rng.integers(1, 100, types))


def measured(draws: int = 100) -> Iterator[tuple[str, Matrix]]:
    """All of Gavel's rows together, those of each gang size, of each model, and draws of 2 to 20."""
    rows = json.loads(GAVEL.read_text())["rows"]
    table = np.array([[row["speedup"][t] or 0.0 for t in ("k80", "p100", "v100")] for row in rows])

    def of(chosen: np.ndarray, owed: FloatArray | None = None) -> Matrix:
        count = len(chosen)
        return Matrix(
            best_unit(chosen), np.ones(count) if owed is None else owed, np.full(count, NO_CAP), np.array([48, 40, 40])
        )

    yield "all", of(table)
    for size in (1, 2, 4, 8):
        yield f"gangs of {size}", of(table[[row["scale_factor"] == size for row in rows]])
    for model in sorted({row["model"] for row in rows}):
        if (some := [row["model"] == model for row in rows]).count(True) > 1:
            yield model, of(table[some])
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        chosen = table[rng.integers(0, len(table), int(rng.integers(2, 21)))]
        yield f"draw {seed}", of(chosen, rng.lognormal(1, 0.7, len(chosen)))
