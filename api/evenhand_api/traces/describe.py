"""A trace in figures: how much it asks for, of whom, in which gangs, for how long."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from evenhand_api.traces.rows import Reading
from evenhand_models import ClusterState
from evenhand_models.traces import TraceEnd, TraceJob

Bounds: TypeAlias = tuple[tuple[int, int | None], ...]
GANGS: Bounds = ((1, 1), (2, 4), (5, 8), (9, 32), (33, 127), (128, None))
RUNS: Bounds = ((0, 59), (60, 599), (600, 3_599), (3_600, 28_799), (28_800, 86_399), (86_400, None))
PRESSURES = (0.9, 1.5, 2.5)


def description(reading: Reading, cluster: ClusterState | None = None) -> dict[str, Any]:
    """Describe a trace as JSON: amounts in GPU-hours, times in seconds, all keys always there."""
    trace, jobs = reading.trace, reading.trace.jobs
    hours = sum(map(gpu_hours, jobs))
    mean = hours / (trace.end_s / 3_600)
    waits = [job.started_s - job.submit_s for job in jobs if job.started_s is not None]
    odd = Counter(str(row.kind) for row in reading.odd)
    return {
        "name": trace.name,
        "credit": trace.credit,
        "t0": trace.t0.isoformat().replace("+00:00", "Z"),
        "days": trace.end_s / 86_400,
        "jobs": len(jobs),
        "rows": reading.rows,
        "in_order": reading.in_order,
        "gpu_hours": hours,
        "mean_gpus_asked_for": mean,
        "gpus_for_demand": {f"{times:g}": mean / times for times in PRESSURES},
        "supply": None if cluster is None else _supply(mean, cluster),
        "largest_gang": max(job.gpus for job in jobs),
        "run_s": percentiles([job.duration_s for job in jobs]),
        "recorded_wait_s": percentiles(waits) if waits else None,
        "gangs": _classes(jobs, GANGS, lambda job: job.gpus),
        "runs": _classes(jobs, RUNS, lambda job: job.duration_s),
        "groups": _by(jobs, lambda job: job.group),
        "kinds": _by(jobs, lambda job: job.kind or "unknown"),
        "gpu_types": _by(jobs, lambda job: "|".join(job.gpu_types) or "any"),
        "ends": {str(end): n for end, n in sorted(Counter(job.state for job in jobs).items()) if n},
        "never_ended": sum(job.state is TraceEnd.RUNNING for job in jobs),
        "history_gpu_hours": sum(s.charged_gpus * (s.end_s - s.start_s) / 3_600 for s in trace.history),
        "odd": dict(sorted(odd.items())),
    }


def gpu_hours(job: TraceJob) -> float:
    """What it holds if nothing disturbs it."""
    return job.gpus * job.duration_s / 3_600


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """p50, p90, p99 (the least value that so many are not above) and the largest."""
    ranked = sorted(values)
    at = {f"p{p}": float(ranked[max(0, -(-p * len(ranked) // 100) - 1)]) for p in (50, 90, 99)}
    return {**at, "most": float(ranked[-1])}


def _supply(mean: float, cluster: ClusterState) -> dict[str, float]:
    gpus = sum(node.usable_gpus for node in cluster.nodes)
    return {"gpus": gpus, "demand_over_supply": mean / gpus if gpus else float("inf")}


def _classes(jobs: Sequence[TraceJob], bounds: Bounds, size: Callable[[TraceJob], int]) -> list[dict[str, Any]]:
    found = []
    for low, high in bounds:
        chosen = [job for job in jobs if low <= size(job) and (high is None or size(job) <= high)]
        found.append({"from": low, "to": high, "jobs": len(chosen), "gpu_hours": sum(map(gpu_hours, chosen))})
    return found


def _by(jobs: Sequence[TraceJob], key: Callable[[TraceJob], str]) -> list[dict[str, Any]]:
    parts: dict[str, list[TraceJob]] = defaultdict(list)
    for job in jobs:
        parts[key(job)].append(job)
    found: list[dict[str, Any]] = [
        {
            "name": name,
            "jobs": len(own),
            "users": len({job.user for job in own if job.user}),
            "gpu_hours": sum(map(gpu_hours, own)),
            "largest_gang": max(job.gpus for job in own),
            "run_s": percentiles([job.duration_s for job in own]),
        }
        for name, own in parts.items()
    ]
    return sorted(found, key=lambda part: (-part["gpu_hours"], part["name"]))
