"""Tiny traces and clusters, and random ones from a seed."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random
from typing import Any

from evenhand import ClusterState, Policy
from evenhand.replay import ReplayResult, Scheduler, WorldRules, replay
from evenhand_models.traces import Trace, TraceJob

T0 = datetime(2026, 11, 2, tzinfo=UTC)
HOUR = 3_600


def job(name: str, group: str, gpus: int, submit_s: int, duration_s: int, **more: Any) -> TraceJob:
    return TraceJob(name, group, submit_s, duration_s, gpus, **more)


def trace(*jobs: TraceJob, end_s: int = 24 * HOUR, **more: Any) -> Trace:
    ordered = tuple(sorted(jobs, key=lambda j: (j.submit_s, j.id)))
    return Trace("tiny", T0, ordered, end_s, **more)


def cluster(nodes: int = 2, gpus: int = 8, groups: Any = None, types: Any = None) -> ClusterState:
    """`nodes` nodes of one type, or of each of `types` (name to nodes); groups as id to share or as wire."""
    types = types or {"h100": nodes}
    tree = groups if isinstance(groups, list) else [{"id": g, "share": s} for g, s in (groups or {"A": 1}).items()]
    return ClusterState.model_validate(
        {
            "now": T0,
            "gpu_types": [{"name": name} for name in types],
            "nodes": [
                {"name": f"{name}-{i:02}", "gpu_type": name, "gpus": gpus}
                for name, n in types.items()
                for i in range(n)
            ],
            "groups": tree,
            "jobs": [],
        }
    )


def run(what: Trace, where: ClusterState, who: Scheduler, policy: Policy | None = None, **rules: Any) -> ReplayResult:
    return replay(what, where, policy or Policy(time_limit_s=0.5), who, rules=WorldRules(**rules))


def starts(result: ReplayResult) -> dict[str, int]:
    return dict(zip(result.jobs.ids, result.jobs.first_start_s.tolist(), strict=True))


def ends(result: ReplayResult) -> dict[str, int]:
    return dict(zip(result.jobs.ids, result.jobs.end_s.tolist(), strict=True))


def of(result: ReplayResult, column: str, name: str) -> int:
    return int(getattr(result.jobs, column)[result.jobs.ids.index(name)])


def random_trace(seed: int, jobs: int = 60, groups: tuple[str, ...] = ("A", "B", "C"), hours: int = 12) -> Trace:
    rng = Random(seed)
    return trace(
        *(
            job(
                f"j{i:03}", rng.choice(groups), rng.choice([1, 1, 2, 4, 8, 16]), rng.randrange(hours * HOUR // 2),
                rng.choice([0, 60, 600, 3_000, 9_000]), min_runtime_s=rng.choice([0, 300, 1_800, 3_600]),
                resumable=rng.random() < 0.6, priority=rng.choice([0, 0, 1]), kind=rng.choice(["debug", "train"]),
            )
            for i in range(jobs)
        ),
        end_s=hours * HOUR,
    )  # fmt: skip
