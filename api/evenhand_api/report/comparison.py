"""Runs side by side: figures by run, means and confidence over seeds, differences to the first run."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Result: TypeAlias = dict[str, Any]
"""A finished run as JSON."""
T_95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""Student's t, two-sided 95 %, for 1 to 30 degrees of freedom; 1.96 beyond."""
MOST_RUNS = 8
"""Most runs one report sets side by side."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of a comparison.

    Attributes
    ----------
    better : int
        1: more is better, -1: less is, 0: neither.
    unit : str
        share, s, gpu_hours, count or ratio: how it is written.
    """

    key: str
    title: str
    unit: str
    better: int
    value: Callable[[Result], float | None]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over seeds; `half_width` of its 95 % confidence interval, None for a single seed."""

    mean: float
    half_width: float | None
    seeds: int


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure of one run, and its difference to the first run's; None: there is no such figure."""

    value: Estimate | None
    difference: Estimate | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Figures by run: `cells[i][j]` is figure i of run j."""

    labels: tuple[str, ...]
    results: tuple[tuple[Result, ...], ...]
    figures: tuple[Figure, ...]
    cells: tuple[tuple[Cell, ...], ...]

    def first(self, runs: int) -> Comparison:
        """The same of the first so many runs."""
        cells = tuple(row[:runs] for row in self.cells)
        return Comparison(self.labels[:runs], self.results[:runs], self.figures, cells)

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON; keys of the runs name their files."""
        return {
            "runs": [
                {"label": label, "seeds": [r["seed"] for r in results], "keys": [r["key"] for r in results]}
                for label, results in zip(self.labels, self.results, strict=True)
            ],
            "figures": [
                {
                    "key": figure.key,
                    "title": figure.title,
                    "unit": figure.unit,
                    "better": {1: "more", -1: "less", 0: "neither"}[figure.better],
                    "values": [{"value": _json(cell.value), "difference": _json(cell.difference)} for cell in row],
                }
                for figure, row in zip(self.figures, self.cells, strict=True)
            ],
        }


def _json(estimate: Estimate | None) -> dict[str, float | int | None] | None:
    if estimate is None:
        return None
    return {"mean": estimate.mean, "half_width_95": estimate.half_width, "seeds": estimate.seeds}


def compare(results: Sequence[Result]) -> Comparison:
    """Set runs side by side; runs that differ in their seed alone are one. The first run is the one to differ from."""
    by_label: dict[str, list[Result]] = {}
    for result in results:
        by_label.setdefault(result["label"], []).append(result)
    runs = [sorted(own, key=lambda result: result["seed"]) for own in by_label.values()]
    figures = [*_FIGURES[:_AFTER_WAITS], *_wait_figures(results), *_FIGURES[_AFTER_WAITS:]]
    shown, cells = [], []
    for figure in figures:
        row = tuple(_cell(figure, own, runs[0]) for own in runs)
        if any(cell.value is not None for cell in row):
            shown.append(figure)
            cells.append(row)
    return Comparison(tuple(by_label), tuple(map(tuple, runs)), tuple(shown), tuple(cells))


def _cell(figure: Figure, own: list[Result], first: list[Result]) -> Cell:
    values = {result["seed"]: figure.value(result) for result in own}
    known = [value for value in values.values() if value is not None]
    if not known:
        return Cell(None, None)
    if own is first:
        return Cell(estimate(known), None)
    base = {result["seed"]: figure.value(result) for result in first}
    paired = [(values[seed], base[seed]) for seed in values if seed in base]
    differences = [value - other for value, other in paired if value is not None and other is not None]
    return Cell(estimate(known), estimate(differences) if differences else None)


def estimate(values: Sequence[float]) -> Estimate:
    """The mean of some values, and half the width of its 95 % confidence interval (Student's t)."""
    mean, n = statistics.fmean(values), len(values)
    if n == 1:
        return Estimate(mean, None, 1)
    t = T_95[n - 2] if n - 2 < len(T_95) else 1.96
    return Estimate(mean, t * statistics.stdev(values) / math.sqrt(n), n)


def _of(*path: str | int) -> Callable[[Result], float | None]:
    """Follow a path into a run's metrics."""

    def value(result: Result) -> float | None:
        at: Any = result["metrics"]
        for step in path:
            if at is None or (isinstance(step, int) and not at):
                return None
            at = at[step]
        return None if at is None else float(at)

    return value


def _groups_served(result: Result) -> float | None:
    """Share of the lowest level's groups that got 97 % or more of what they were owed."""
    levels = result["metrics"]["delivery"]
    owed = (
        [group["over_period"] for group in levels[-1]["groups"] if group["over_period"] is not None] if levels else []
    )
    return sum(share >= 0.97 for share in owed) / len(owed) if owed else None


def _wait_of(kind: str, percentile: str) -> Callable[[Result], float | None]:
    def value(result: Result) -> float | None:
        found = next((w for w in result["metrics"]["waits_by_kind"] if w["name"] == kind), None)
        return None if found is None else found["first_wait_s"][percentile]

    return value


def _wait_figures(results: Sequence[Result]) -> Iterator[Figure]:
    """Waits by kind, kinds with most jobs first."""
    counts: dict[str, int] = {}
    for result in results:
        for wait in result["metrics"]["waits_by_kind"]:
            counts[wait["name"]] = max(counts.get(wait["name"], 0), wait["first_wait_s"]["count"])
    for kind in sorted(counts, key=lambda name: (-counts[name], name)):
        named = "first wait" if kind == "unknown" and len(counts) == 1 else f"first wait, {kind}"
        for percentile in ("p50", "p90"):
            yield Figure(f"wait_{percentile}:{kind}", f"{named}, {percentile}", "s", -1, _wait_of(kind, percentile))


_FIGURES = (
    Figure("delivered", "delivered over the period", "share", 1, _of("delivery", -1, "over_period")),
    Figure("delivered_worst", "delivered, worst group", "share", 1, _of("delivery", -1, "worst_over_period")),
    Figure("groups_served", "groups with 97 % or more", "share", 1, _groups_served),
    Figure("delivered_in_hour", "delivered in the hour", "share", 1, _of("delivery", -1, "in_hour")),
    Figure("occupancy", "occupancy", "share", 1, _of("occupancy")),
    Figure("throughput", "throughput", "share", 1, _of("throughput")),
    Figure("unallocated", "unallocated use", "share", 0, _of("unallocated_share")),
    Figure("lost", "GPU-hours lost", "share", -1, _of("lost_share")),
    Figure("wait_large_p90", "first wait, 128 GPUs and more, p90", "s", -1, _of("large_first_wait_s", "p90")),
    Figure("jct_mean", "JCT, mean", "s", -1, _of("completion_s", "mean")),
    Figure("jct_p50", "JCT, p50", "s", -1, _of("completion_s", "p50")),
    Figure("jct_p90", "JCT, p90", "s", -1, _of("completion_s", "p90")),
    Figure("slowdown_p50", "slowdown, p50", "ratio", -1, _of("slowdown", "p50")),
    Figure("slowdown_p90", "slowdown, p90", "ratio", -1, _of("slowdown", "p90")),
    Figure("completed", "jobs completed", "count", 1, _of("jobs", "completed")),
    Figure("infeasible", "jobs that can never run", "count", 0, _of("jobs", "infeasible")),
    Figure("starts", "starts", "count", 0, _of("starts")),
    Figure("preemptions", "preemptions", "count", -1, _of("preemptions")),
    Figure("migrations", "migrations", "count", 0, _of("migrations")),
    Figure("incentive", "sharing incentive, hours kept", "share", 1, _of("sharing_incentive", "kept_hours")),
    Figure(
        "incentive_least", "sharing incentive, least group", "ratio", 1, _of("window_envy", "least_sharing_incentive")
    ),
    Figure("window_envy", "window envy, worst pair", "share", -1, _of("window_envy", "worst")),
    Figure("window_envy_ours", "window envy, unforced", "share", -1, _of("window_envy", "worst_ours")),
    Figure("turnover", "GPU-hours that change hands", "share", 0, _of("turnover")),
)
_AFTER_WAITS = 8
"""Waits by kind come after so many figures."""
