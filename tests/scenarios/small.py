"""A trace of two days on a small cluster, made up, that replays in well under a second."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random

from evenhand.replay import WorldRules
from evenhand.scenarios import ReplayCase
from evenhand_models import ClusterState, GpuType, Group, Node, Policy
from evenhand_models.traces import Trace, TraceJob

T0 = datetime(2026, 3, 2, tzinfo=UTC)
DAY = 86_400


def cluster(nodes: int = 2) -> ClusterState:
    return ClusterState(
        now=T0,
        gpu_types=(GpuType(name="h100"),),
        nodes=tuple(
            Node(name=f"n{i}", gpu_type="h100", gpus=8, labels={"rack": f"r{i % 2}"}) for i in range(1, nodes + 1)
        ),
        groups=(
            Group(id="lab", share=1),
            Group(id="lab/a", parent="lab", share=50),
            Group(id="lab/b", parent="lab", share=50),
        ),
        jobs=(),
    )


def trace(jobs: int = 60, days: int = 2, seed: int = 1) -> Trace:
    rng = Random(seed)
    made = [
        TraceJob(
            id=f"j{i:03}",
            group=rng.choice(["lab/a", "lab/b"]),
            submit_s=rng.randrange(days * DAY),
            duration_s=rng.randrange(60, 20_000),
            gpus=rng.choice([1, 1, 2, 4, 8]),
            user=f"u{i % 5}",
            min_runtime_s=600,
            kind=rng.choice(["train", "debug"]),
        )
        for i in range(jobs)
    ]
    return Trace("made", T0, tuple(sorted(made, key=lambda job: (job.submit_s, job.id))), days * DAY)


def case(**more) -> ReplayCase:
    return ReplayCase(trace(**more), cluster(), Policy(), WorldRules())
