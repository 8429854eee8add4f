"""Random jobs, placed where they could really stand, as wire JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from strategies.clock import stamp
from strategies.draws import Draws, between, many
from strategies.profiles import Profile

SPEEDS = (1.0, 2.0, 1.5, 4.0, 0.25, 3.3, 1.0, 1.117)
CONTRACTS_S = (3_600, 0, 600, 14_400, 0, 60, 28_800, 1)
WAITED_S = (0, 0, 600, 299, 300, 2_000, 7_200, 30_000, 100_000, 300_000, 700_000)
ENDS_S = (86_400, 1_800, 60, 299, 300, 301, 1, 0, -100)
PRIORITIES = (0, 0, 1, 0, 2, -1, 10)


@dataclass
class Ground:
    """What random jobs of one state share: nodes with the space still left on them, groups, kinds of job."""

    now: int
    profile: Profile
    types: list[str]
    nodes: list[dict[str, Any]]
    groups: list[str]
    space: dict[str, int]
    kinds: list[dict[str, float]]


def ground(
    draws: Draws, profile: Profile, types: list[str], nodes: list[dict[str, Any]], groups: list[str], now: int
) -> Ground:
    """Draw what the jobs share; now and then running jobs stand on broken or foreign GPUs too."""
    overfull = draws.chance(12)
    space = {
        n["name"]: n["gpus"] - (0 if overfull else n.get("unavailable_gpus", 0) + n.get("foreign_gpus", 0))
        for n in nodes
    }
    kinds = [_speedup(draws, types) for _ in range(2)]
    return Ground(now, profile, types, nodes, groups, space, kinds)


def random_jobs(draws: Draws, on: Ground) -> list[dict[str, Any]]:
    """Draw up to `profile.jobs` jobs."""
    return [_job(draws, on, i) for i in range(many(draws, on.profile.least_jobs, on.profile.jobs))]


def _speedup(draws: Draws, types: list[str]) -> dict[str, float]:
    """Draw speedups by type: some are missing, some 0."""
    speeds: dict[str, float] = {}
    for name in types:
        if not draws.chance(14):
            speeds[name] = 0.0 if draws.chance(8) else draws.pick(SPEEDS)
    if draws.chance(2):
        speeds["abacus"] = 1.0
    return speeds


def _job(draws: Draws, on: Ground, i: int) -> dict[str, Any]:
    """Draw one job; it runs if it is to run and finds room."""
    job: dict[str, Any] = {"id": f"j{i:02}", "group": draws.pick(on.groups)}
    if draws.chance(4):
        job["group"] = draws.pick((job["group"] + "/gone", "nobody"))
    job["speedup"] = draws.pick(on.kinds) if draws.chance(50) else _speedup(draws, on.types)
    _gang(draws, on.profile, job)
    _wishes(draws, job)
    job["contract"] = {"min_runtime_s": draws.pick(CONTRACTS_S), "resumable": not draws.chance(25)}
    submitted = on.now - draws.pick(WAITED_S)
    job["submitted_at"] = stamp(submitted)
    if draws.chance(75) and _place(draws, on, job):
        job["state"] = "terminating" if draws.chance(12) else "running"
        _history(draws, on.now, job)
    elif draws.chance(3):
        job["submitted_at"] = stamp(on.now + 5)
    if draws.chance(33):
        job["expected_end_at"] = stamp(on.now + draws.pick(ENDS_S))
    return job


def _gang(draws: Draws, profile: Profile, job: dict[str, Any]) -> None:
    """Draw size, shape and elasticity."""
    gpus = draws.pick(profile.job_gpus)
    unit = 1
    if draws.chance(30):
        unit = draws.pick((1, 2, 2, 4, 3))
        gpus = max(gpus // unit, 1) * unit
        job[draws.pick(("worker_gpus", "gpus_per_node"))] = unit
    job["gpus"] = gpus
    if draws.chance(22):
        job["min_gpus"] = between(draws, 1, gpus // unit) * unit


def _wishes(draws: Draws, job: dict[str, Any]) -> None:
    """Draw labels, priority and what is only reported."""
    if draws.chance(12):
        job["requires"] = {"pool": draws.pick(("p0", "p1"))}
    if draws.chance(14):
        job["same"] = "rack"
    if draws.chance(45):
        job["priority"] = draws.pick(PRIORITIES)
    if draws.chance(10):
        job["user"] = draws.pick(("ada", "bo"))


def _history(draws: Draws, now: int, job: dict[str, Any]) -> None:
    """Draw when it started, on both sides of the end of its contract, and when it last saved."""
    if draws.chance(4):
        job["contract"]["min_runtime_s"] = 100_000  # above the cap: cut while it runs
    contract = job["contract"]["min_runtime_s"]
    ran = draws.pick((contract + 100, contract // 2, contract, max(contract - 1, 0), 0, 10, 3_600, 200_000))
    started = now + 5 if draws.chance(3) else now - ran
    job["started_at"] = stamp(started)
    if draws.chance(35):
        job["checkpointed_at"] = stamp(now + draws.pick((-60, 0, -600, -3_000, 5, -250_000)))
    if draws.chance(10):
        job["utilization"] = draws.pick((0.5, 0.0, 1.0))


def _place(draws: Draws, on: Ground, job: dict[str, Any]) -> bool:
    """Put a job on nodes of one type in its shape; now and then scattered, on a lost node or a wrong type."""
    anywhere = draws.chance(4)
    fits = [name for name in on.types if anywhere or job["speedup"].get(name, 0) > 0]
    if not fits:
        return False
    kind = draws.pick(fits)
    unit = job.get("worker_gpus") or job.get("gpus_per_node") or 1
    size = job["gpus"]
    if "min_gpus" in job:
        size = between(draws, job["min_gpus"] // unit, size // unit) * unit
    nodes = _candidates(draws, on, job, kind, anywhere)
    placement = _fill(nodes, dict(on.space), job, size, scattered=draws.chance(10))
    if placement is None:
        return False
    for node, gpus in placement.items():
        on.space[node] -= gpus
    if draws.chance(4):
        lost = draws.pick(sorted(placement))
        placement[f"gone{len(placement)}"] = placement.pop(lost)
    job["placement"] = [{"node": node, "gpus": gpus} for node, gpus in sorted(placement.items())]
    return True


def _candidates(draws: Draws, on: Ground, job: dict[str, Any], kind: str, anywhere: bool) -> list[str]:
    """Name the nodes it may stand on, most space first."""
    nodes = [n for n in on.nodes if n["gpu_type"] == kind]
    if not anywhere:
        wanted = job.get("requires", {}).items()
        nodes = [n for n in nodes if all(n.get("labels", {}).get(key) == value for key, value in wanted)]
    if "same" in job:
        nodes = [n for n in nodes if job["same"] in n.get("labels", {})]
        values = sorted({n["labels"][job["same"]] for n in nodes})
        if values:
            value = draws.pick(values)
            nodes = [n for n in nodes if n["labels"][job["same"]] == value]
    return sorted((n["name"] for n in nodes), key=lambda name: -on.space[name])


def _fill(
    nodes: list[str], space: dict[str, int], job: dict[str, Any], size: int, scattered: bool
) -> dict[str, int] | None:
    """Fill nodes one after the other, or worker by worker if `scattered`. None if there is no room."""
    placement: dict[str, int] = {}
    unit = job.get("worker_gpus") or job.get("gpus_per_node") or 1
    each = "gpus_per_node" in job
    for _ in range(size if scattered else 1):
        for node in nodes:
            left = size - sum(placement.values())
            if each:
                take = unit if space[node] >= unit and node not in placement else 0
            else:
                take = min(space[node], left) // unit * unit
            if scattered:
                take = min(take, unit)
            take = min(take, left)
            if take:
                placement[node] = placement.get(node, 0) + take
                space[node] -= take
    return placement if sum(placement.values()) == size else None
