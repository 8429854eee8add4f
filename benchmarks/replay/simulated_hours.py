"""What a simulated hour costs at the size of Gavel's simulations: 108 GPUs of three types, jobs coming all the time.

python benchmarks/replay/simulated_hours.py --days 10

The trace is drawn as Gavel's continuous ones are: Poisson arrivals; 80 % of the jobs run 10^1.5 to 10^3 minutes, 20 %
10^3 to 10^4; gangs of 1, 2, 4, 8 GPUs at 70, 10, 15, 5 %; speedups measured for a random model at that size.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from dataclasses import replace
from datetime import UTC, datetime
from random import Random

from mixed_worlds import TYPES, read_vectors

from evenhand import ClusterState, Policy
from evenhand.replay import Scheduler, WorldRules, measure, replay
from evenhand_models.traces import Trace, TraceJob

T0 = datetime(2026, 11, 2, tzinfo=UTC)
ROUND_S = 360
GPUS, NODE = 36, 4


def gavel_like(days: float, per_hour: float, groups: int, seed: int) -> tuple[Trace, ClusterState]:
    """Draw a continuous trace, jobs dealt out among groups with equal shares; and the cluster for it."""
    rng, vectors, kinds = Random(seed), read_vectors(), TYPES["three types"]
    jobs, at, end_s = [], 0.0, round(days * 86_400)
    while (at := at + rng.expovariate(per_hour) * 3_600) < end_s:
        size = rng.choices((1, 2, 4, 8), (70, 10, 15, 5))[0]
        minutes = 10 ** (rng.uniform(1.5, 3) if rng.random() < 0.8 else rng.uniform(3, 4))
        speeds = rng.choice([v for v in vectors if v.gpus == size]).speedup
        group = f"g{rng.randrange(groups)}"
        jobs.append(TraceJob(f"j{len(jobs):05}", group, int(at), round(60 * minutes), size, speedup=speeds))
    cluster = ClusterState.model_validate(
        {
            "now": T0,
            "gpu_types": [{"name": kind} for kind in kinds],
            "nodes": [
                {"name": f"{kind}-{i}", "gpu_type": kind, "gpus": NODE} for kind in kinds for i in range(GPUS // NODE)
            ],
            "groups": [{"id": f"g{i}", "share": 1} for i in range(groups)],
            "jobs": [],
        }
    )
    return Trace("gavel-like", T0, tuple(jobs), end_s), cluster


def main() -> None:
    """Replay it in several ways and write a JSON line for each."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--days", type=float, default=10)
    ask.add_argument("--per-hour", type=float, default=2.0)
    ask.add_argument("--groups", type=int, default=10)
    ask.add_argument("--seed", type=int, default=0)
    args = ask.parse_args()
    trace, cluster = gavel_like(args.days, args.per_hour, args.groups, args.seed)
    ways = {
        "evenhand, defaults": (Scheduler.EVENHAND, WorldRules()),
        "evenhand, a full round every 6 min": (Scheduler.EVENHAND, replace(WorldRules(), full_round_s=ROUND_S)),
        "evenhand, the same, a fifth of the work": (
            Scheduler.EVENHAND, replace(WorldRules(), full_round_s=ROUND_S, full_round_limit_s=0.1),
        ),
        "gavel in this world": (Scheduler.GAVEL, WorldRules()),
        "first_fit": (Scheduler.FIRST_FIT, WorldRules()),
    }  # fmt: skip
    replay(trace, cluster, Policy(), until_s=3_600)  # imports and caches
    for name, (who, rules) in ways.items():
        began = time.process_time()
        metrics = measure(replay(trace, cluster, Policy(), who, rules=rules))
        took = time.process_time() - began
        hours = metrics.simulated_s / 3_600
        line = {
            "way": name, "jobs": len(trace.jobs), "cpu_s": round(took, 2), "hours_per_cpu_s": round(hours / took, 1),
            "cpu_ms_per_6_min": round(1000 * took / (hours * 3_600 / ROUND_S), 2), "rounds": metrics.rounds.rounds,
            "full_rounds": metrics.rounds.full_rounds, "occupancy": round(metrics.occupancy, 3),
            "throughput": round(metrics.throughput, 3), "mean_jct_s": metrics.completion_s.mean,
            "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        }  # fmt: skip
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
