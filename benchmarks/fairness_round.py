"""Does the integer round follow the fair target: one round in detail, then fifty with usage carried over.

    python benchmarks/fairness_round.py [--rounds 50] [--charges one|mean] [--vectors FILE]

128 nodes of 8 GPUs of three types, 1,000 jobs of twelve groups with measured speedups and the gang sizes of a
real cluster at a moment (Philly: 59 % of the jobs hold one GPU, 20 % eight). Every job lasts one round and is
there again in the next, so that a round has all to decide and only usage carries over.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from fairness_vectors import GAVEL, Vector, read_vectors

from evenhand import ClusterState, Plan, Policy, allocate, audit
from evenhand.window_envy import EnvyWindow
from evenhand_models import Objective, Usage

SIZES = {1: 0.59, 2: 0.052, 4: 0.137, 8: 0.198, 16: 0.023}
"""Gang sizes and their part of the jobs present at a moment in Philly."""
NODES = {"k80": 48, "p100": 40, "v100": 40}
GPUS_PER_NODE, JOBS, GROUPS = 8, 1_000, 12
NOW = "2026-11-01T12:00:00Z"


def cluster(vectors: list[Vector], charges: str, seed: int) -> ClusterState:
    """Draw the state; each group runs two models."""
    rng = random.Random(seed)
    models = sorted({vector.model for vector in vectors})
    jobs = []
    tastes = {f"g{i:02}": rng.sample(models, 2) for i in range(GROUPS)}
    for i in range(JOBS):
        group = f"g{rng.randrange(GROUPS):02}"
        size = rng.choices(list(SIZES), list(SIZES.values()))[0]
        of_taste = [v for v in vectors if v.model in tastes[group]]
        measured = max(v.gpus for v in of_taste if v.gpus <= size)
        vector = rng.choice([v for v in of_taste if v.gpus == measured])
        jobs.append(
            {
                "id": f"j{i:04}", "group": group, "gpus": size, "speedup": vector.speedup,
                "submitted_at": NOW, "contract": {"min_runtime_s": 3600, "resumable": True},
            }
        )  # fmt: skip
    rate = dict.fromkeys(NODES, 1.0) if charges == "one" else _mean_speedups(jobs)
    wire = {
        "now": NOW,
        "gpu_types": [{"name": name, "charge_rate": rate[name]} for name in NODES],
        "nodes": [
            {"name": f"{kind}-{i:03}", "gpu_type": kind, "gpus": GPUS_PER_NODE}
            for kind, count in NODES.items()
            for i in range(count)
        ],
        "groups": [{"id": name, "share": float(rng.choice([1, 1, 2, 3]))} for name in tastes],
        "jobs": jobs,
    }
    return ClusterState.model_validate(wire)


def _mean_speedups(jobs: list[dict[str, object]]) -> dict[str, float]:
    """GPU-weighted mean over jobs of each type's speedup over the job's best type."""
    total, gpus = defaultdict(float), 0
    for job in jobs:
        speedup, size = job["speedup"], job["gpus"]
        assert isinstance(speedup, dict)
        assert isinstance(size, int)
        gpus += size
        for kind, x in speedup.items():
            total[kind] += size * x / max(speedup.values())
    return {kind: total[kind] / gpus for kind in NODES}


def rounds(state: ClusterState, policy: Policy, count: int, hours: float) -> Iterator[tuple[ClusterState, Plan]]:
    """Decide round after round; what was held is charged for its `hours`."""
    rate = {kind.name: kind.charge_rate for kind in state.gpu_types}
    usage = {group.id: 0.0 for group in state.groups}
    for _ in range(count):
        told = tuple(Usage(group=name, charged_gpu_hours=hours) for name, hours in sorted(usage.items()))
        asked = state.model_copy(update={"usage": told})
        plan = allocate(asked, policy)
        yield asked, plan
        for report in plan.groups:
            usage[report.group] += hours * sum(rate[kind] * gpus for kind, gpus in report.allocated.items())


def judge_round(state: ClusterState, plan: Plan) -> None:
    """Print how near the plan is to the target."""
    proof = plan.certificate
    kept = proof.throughput / proof.target_throughput
    print(f"status {proof.status}, audit {'passed' if audit(state, plan).ok else 'FAILED'}")
    print(
        f"throughput {proof.throughput:.1f} of {proof.target_throughput:.1f} in the target: {kept:.2%} (wanted >= 97 %)"
    )
    worst = furthest_below(state, plan)
    print(f"furthest below its target, in its largest gangs: {worst[0]:.2f} ({worst[1]}; wanted <= 1)")
    print(f"largest envy of the round {proof.max_envy:.2%} of the envier's slice, {len(proof.envy)} pairs above a gang")


def furthest_below(state: ClusterState, plan: Plan) -> tuple[float, str]:
    """By how many of its largest gangs the worst group is below its target, and which it is."""
    largest: dict[str, int] = defaultdict(int)
    for job in state.jobs:
        largest[job.group] = max(largest[job.group], job.gpus)
    return max(((r.throughput_target - r.throughput) / largest[r.group], r.group) for r in plan.groups)


def main() -> None:
    """Run and print."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--rounds", type=int, default=50)
    asked.add_argument("--hours", type=float, default=1.0, help="length of a round")
    asked.add_argument("--horizon-h", type=float, default=168.0, help="over how long usage is paid back")
    asked.add_argument("--charges", choices=("one", "mean"), default="mean", help="charge rates of the types")
    asked.add_argument("--time-limit-s", type=float, default=2.0)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--objective", choices=tuple(Objective), default=Objective.ENVY_FREE, type=Objective)
    asked.add_argument("--one-type", action="store_true", help="every GPU alike: nothing but gangs is rounded")
    asked.add_argument("--vectors", type=Path, default=GAVEL)
    given = asked.parse_args()
    vectors = read_vectors(given.vectors)
    if given.one_type:
        vectors = [Vector(v.model, v.gpus, dict.fromkeys(NODES, 1.0)) for v in vectors]
    state = cluster(vectors, given.charges, given.seed)
    window, began, kept, below = EnvyWindow(), time.process_time(), [], []
    policy = Policy(time_limit_s=given.time_limit_s, objective=given.objective, horizon_s=round(3600 * given.horizon_h))
    for t, (seen, plan) in enumerate(rounds(state, policy, given.rounds, given.hours)):
        window.add(seen, plan)
        kept.append(plan.certificate.throughput / plan.certificate.target_throughput)
        below.append(furthest_below(seen, plan)[0])
        if t == 0:
            judge_round(seen, plan)
            print(f"\n{'round':>5} {'max envy':>9} {'x T':>7} {'least incentive':>15} {'kept':>7} {'below':>6}")
        if t + 1 in {1, 2, 3, 5, 10, 20, 30, 40, 50, given.rounds}:
            found = window.report()
            least = found.least_sharing_incentive or 0.0
            print(
                f"{t + 1:5} {found.max_envy:9.4f} {found.max_envy * (t + 1):7.3f} {least:15.4f} "
                f"{min(kept):7.2%} {max(below):6.2f}",
                flush=True,
            )
    print(f"{time.process_time() - began:.0f} s of CPU time")


if __name__ == "__main__":
    main()
