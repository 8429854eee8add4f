"""A cluster that is asked for more than it has, drawn from a seed: trace and state for benchmarks of the replay."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random

from evenhand import ClusterState
from evenhand_models.traces import Trace, TraceJob

T0 = datetime(2026, 11, 2, tzinfo=UTC)
DAY_S = 86_400
KINDS = (
    # kind, part of the jobs, sizes, median and spread (log) of the duration in seconds, contract, resumable
    ("debug", 0.40, (1, 1, 2, 4, 8), 120, 1.2, 600, False),
    ("train", 0.35, (1, 2, 4, 8, 8, 16, 32), 3_600, 1.6, 3_600, True),
    ("large", 0.05, (32, 64, 128), 14_400, 1.2, 14_400, True),
    ("sweep", 0.20, (1, 1, 2), 7_200, 1.0, 0, True),
)


def synthetic(gpus: int, days: float, ratio: float, seed: int, groups: int = 15) -> tuple[Trace, ClusterState]:
    """Draw jobs until demand is `ratio` times supply.

    Parameters
    ----------
    gpus : of the cluster, a multiple of 8; gangs are at most a quarter of it.
    """
    rng = Random(seed)
    end_s = round(days * DAY_S)
    wanted, jobs = ratio * gpus * end_s, []
    names = [f"P{g % 5}/T{g:02}" for g in range(groups)]
    weights = [rng.paretovariate(1.5) for _ in names]
    while wanted > 0:
        kind, _, sizes, median, spread, contract, resumable = rng.choices(KINDS, [k[1] for k in KINDS])[0]
        size = min(rng.choice(sizes), gpus // 4)
        duration = min(2 * DAY_S, max(1, round(median * rng.lognormvariate(0, spread))))
        at = rng.randrange(end_s)
        jobs.append((at, kind, size, duration, contract, resumable, rng.choices(names, weights)[0]))
        wanted -= size * min(duration, end_s - at)
    made = [
        TraceJob(
            f"j{i:06}", group, at, duration, size, kind=kind, min_runtime_s=min(contract, duration), resumable=resumable,
            priority=1 if kind == "debug" else 0,
        )
        for i, (at, kind, size, duration, contract, resumable, group) in enumerate(sorted(jobs))
    ]  # fmt: skip
    tree = [{"id": f"P{p}", "share": 5 - p} for p in range(5)]
    tree += [{"id": name, "parent": name.split("/", maxsplit=1)[0], "share": 1 + i % 3} for i, name in enumerate(names)]
    state = ClusterState.model_validate(
        {
            "now": T0,
            "gpu_types": [{"name": "h100"}],
            "nodes": [{"name": f"n{i:04}", "gpu_type": "h100", "gpus": 8} for i in range(gpus // 8)],
            "groups": tree,
            "jobs": [],
        }
    )
    return Trace(f"synthetic-{gpus}-{seed}", T0, tuple(made), end_s), state
