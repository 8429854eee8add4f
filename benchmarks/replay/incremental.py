"""What the incremental path costs: a week with full rounds every 15 minutes against every round in full.

python benchmarks/replay/incremental.py --gpus 128 --days 7
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import time
from dataclasses import replace

from synthetic import synthetic

from evenhand import Policy
from evenhand.replay import ReplayMetrics, Scheduler, WorldRules, measure, replay
from evenhand.replay.schedulers.decider import Happened
from evenhand.replay.schedulers.engine import Evenhand
from evenhand.replay.world import World


class Timed(Evenhand):
    """The engine with a stop watch on every round."""

    def __init__(self) -> None:
        super().__init__()
        self.full_ms: list[float] = []
        self.quick_ms: list[float] = []

    def decide(self, world: World, happened: Happened) -> None:
        """Decide, and note how long it took."""
        before, began = world.full_rounds, time.process_time()
        super().decide(world, happened)
        took = 1000 * (time.process_time() - began)
        (self.full_ms if world.full_rounds > before else self.quick_ms).append(took)


def figures(metrics: ReplayMetrics) -> dict[str, object]:
    """What the two ways are compared by."""
    level = metrics.level(-1)
    debug = metrics.wait("debug")
    return {
        "over_period": level.over_period,
        "in_hour": level.in_hour,
        "occupancy": metrics.occupancy,
        "lost_share": metrics.lost_share,
        "debug_p90_wait_s": debug.first_wait_s.p90 if debug else None,
        "mean_completion_s": metrics.completion_s.mean,
        "rounds": metrics.rounds.rounds,
        "full_rounds": metrics.rounds.full_rounds,
    }


def main() -> None:
    """Run both ways and write a JSON line for each."""
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--gpus", type=int, default=128)
    ask.add_argument("--days", type=float, default=7)
    ask.add_argument("--ratio", type=float, default=2.0)
    ask.add_argument("--seed", type=int, default=1)
    ask.add_argument("--time-limit-s", type=float, default=0.2)
    ask.add_argument("--comparators", action="store_true", help="run the comparators too")
    ask.add_argument("--only", choices=["incremental", "full"], default=None)
    args = ask.parse_args()
    trace, cluster = synthetic(args.gpus, args.days, args.ratio, args.seed)
    policy = Policy(time_limit_s=args.time_limit_s)
    ways = {"incremental": WorldRules(), "full": replace(WorldRules(), full_round_s=0)}
    for name, rules in ways.items():
        if args.only not in (None, name):
            continue
        decider, began = Timed(), time.process_time()
        result = replay(trace, cluster, policy, decider, rules=rules)
        took = time.process_time() - began
        line = {"way": name, "jobs": len(trace.jobs), "cpu_s": round(took, 1), **figures(measure(result, seconds=took))}
        for kind, times in (("full", decider.full_ms), ("quick", decider.quick_ms)):
            line[f"{kind}_median_ms"] = round(statistics.median(times), 2) if times else None
        line["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(json.dumps(line), flush=True)
    for who in Scheduler if args.comparators else ():
        if who is not Scheduler.EVENHAND:
            began = time.process_time()
            metrics = measure(replay(trace, cluster, policy, who))
            took = time.process_time() - began
            print(json.dumps({"way": who.value, "cpu_s": round(took, 1), **figures(metrics)}), flush=True)


if __name__ == "__main__":
    main()
