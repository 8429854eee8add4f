"""Worlds of mixed GPUs for replays: a slice of a public trace, its jobs given speedups that were measured.

The traces say how many GPUs a job had and for how long, not what it computed. Here every group works on two models of
Gavel's seven, drawn by the seed; a job's speedups are those measured for one of its group's models at the largest
measured gang that is not larger than it. The recorded run time is taken as that on its best type.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from evenhand import ClusterState, Policy
from evenhand.replay import WorldRules
from evenhand.scenarios import ReplayCase
from evenhand_models.traces import Trace, TraceJob

sys.path.insert(0, str(Path(__file__).parents[1]))
from fairness_vectors import Vector, read_vectors

DAY_S = 86_400
NODE = 8
DRAINED = 10
"""A replay ends after so many times the days in which jobs come: all but a few are over then."""
LONGEST_S = 2 * DAY_S
MODELS_OF_A_GROUP = 2
TYPES = {"two types": ("k80", "v100"), "three types": ("k80", "p100", "v100")}


@dataclass(frozen=True)
class Slice:
    """Part of a trace: so many days from one of these days on, every so manieth job, gangs up to a size.

    Attributes
    ----------
    groups : shares of the groups; where the trace names none, jobs are dealt out among these at random.
    """

    name: str
    days: int
    first_days: tuple[int, ...]
    part: float
    largest: int
    groups: dict[str, float]


SLICES = {
    "philly": Slice("philly", 3, (15, 25, 40), 0.5, 8, {"11cb48": 1, "ee9e8c": 4, "0e4a51": 2}),
    "venus": Slice("venus", 2, (20, 40, 60), 0.25, 8, {f"team-{i}": 1 for i in range(1, 5)}),
}


def world(trace: Trace, part: Slice, types: tuple[str, ...], demand: float, seed: int) -> ReplayCase:
    """Cut a slice and build a cluster of equal numbers of GPUs of each type that it asks for `demand` times over.

    Parameters
    ----------
    demand : GPU-hours asked for at the best type of each job, over GPU-hours that are there while jobs come.
    seed : which days, which jobs, who works on what.

    Returns
    -------
    ReplayCase
        Jobs come for `days`; the replay ends after `DRAINED` times that, when all should be done.
    """
    rng = Random(f"{part.name} {seed}")
    vectors = _by_model(read_vectors())
    palette = {group: rng.sample(sorted(vectors), MODELS_OF_A_GROUP) for group in part.groups}
    begin = part.first_days[seed % len(part.first_days)] * DAY_S
    jobs = []
    for one in trace.jobs:
        kept, group, model, vector = rng.random(), rng.choice(sorted(part.groups)), rng.random(), rng.random()
        if not begin <= one.submit_s < begin + part.days * DAY_S or kept >= part.part or one.gpus > part.largest:
            continue
        group = one.group if one.group in part.groups else group
        speeds = _drawn(vectors[palette[group][int(model * MODELS_OF_A_GROUP)]], one.gpus, vector, types)
        jobs.append(_dressed(one, group, one.submit_s - begin, speeds))
    hours = sum(job.gpus * job.duration_s for job in jobs) / 3_600
    nodes = max(2, round(hours / (24 * part.days) / demand / len(types) / NODE))
    made = replace(trace, name=f"{part.name}, {len(types)} types", jobs=tuple(jobs), end_s=DRAINED * part.days * DAY_S)
    policy = Policy(restart_cost_s=30)
    return ReplayCase(
        made,
        _cluster(made, types, nodes, part.groups),
        policy,
        WorldRules(checkpoint_interval_s=300, full_round_s=3_600, full_round_limit_s=0.1),
    )


def _by_model(vectors: list[Vector]) -> dict[str, list[Vector]]:
    found = defaultdict(list)
    for vector in vectors:
        found[vector.model].append(vector)
    return dict(found)


def _drawn(vectors: list[Vector], gpus: int, at: float, types: tuple[str, ...]) -> dict[str, float]:
    """One of the vectors measured with the largest gang that is not larger, by a number from 0 to 1."""
    size = max(v.gpus for v in vectors if v.gpus <= gpus)
    fits = [v for v in vectors if v.gpus == size and any(t in v.speedup for t in types)]
    chosen = fits[int(at * len(fits))].speedup
    return {t: chosen[t] for t in types if t in chosen}


def _dressed(job: TraceJob, group: str, submit_s: int, speeds: dict[str, float]) -> TraceJob:
    duration_s = min(LONGEST_S, job.duration_s)
    return replace(
        job, group=group, submit_s=submit_s, duration_s=duration_s, gpu_types=(), speedup=speeds, started_s=None
    )


def _cluster(trace: Trace, types: tuple[str, ...], nodes: int, groups: dict[str, float]) -> ClusterState:
    """Nodes of eight GPUs, as many of each type; charge rates follow the mean speedup of the jobs that come."""
    means = {t: _mean_speed(trace, t, types) for t in types}
    least = min(means.values())
    return ClusterState.model_validate(
        {
            "now": trace.t0,
            "gpu_types": [{"name": t, "charge_rate": round(means[t] / least, 1)} for t in types],
            "nodes": [{"name": f"{t}-{i:02}", "gpu_type": t, "gpus": NODE} for t in types for i in range(1, nodes + 1)],
            "groups": [{"id": name, "share": share} for name, share in groups.items()],
            "jobs": [],
        }
    )


def _mean_speed(trace: Trace, kind: str, types: tuple[str, ...]) -> float:
    """Throughput of a GPU of that type over that of each job's best, weighed by GPU-seconds asked for."""
    total = weight = 0.0
    for job in trace.jobs:
        speeds = job.speedup or {}
        asked = job.gpus * job.duration_s
        total += asked * speeds.get(kind, 0.0) / max(speeds[t] for t in types if t in speeds)
        weight += asked
    return max(0.05, total / weight) if weight else 1.0
