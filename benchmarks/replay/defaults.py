"""What the defaults of the policy rest on: a month beside all comparators, and every default moved by itself.

python benchmarks/replay/defaults.py TRACE.csv.gz BUDGET.json --runs RUNS --only month
python benchmarks/replay/defaults.py TRACE.csv.gz BUDGET.json --runs RUNS --only moved --days 3
python benchmarks/replay/defaults.py --page docs/defaults.md

Every run is one JSON file in `--runs`; what is there is not run again. `--page` makes the page from the stored files alone.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any

from defaults_page import write_page

from evenhand import ClusterState, Policy
from evenhand.replay import ReplayMetrics, ReplayResult, Scheduler, WorldRules, measure, replay
from evenhand_api.traces import read_trace
from evenhand_api.traces.clusters import built_cluster, groups_of_budget
from evenhand_models.traces import Trace

STORED = Path(__file__).parent / "defaults"
DAY_S = 86_400
GPUS, NODE = 1_024, 8
RULES = WorldRules(full_round_limit_s=0.2, restart_cost_s=300)
MOVED: dict[str, tuple[float | None, ...]] = {
    "lost_work_weight": (1.0, 12.0, 24.0, 48.0),
    "debug_share": (0.0, 0.03),
    "urgency": (0.01, 2.0, 8.0, 1e6),
    "horizon_s": (86_400, 259_200, 2_419_200),
    "half_life_s": (302_400,),
    "lookahead_s": (1_800, 7_200),
    "restart_cost_s": (60, 900),
    "full_round_s": (300, 1_800),
    "seed": (1, 2, 3),
}
"""Each default by itself at other values; the price of a start is moved, what it costs in the world is not. Seeds: chance."""


def world(trace_path: Path, budget_path: Path) -> tuple[Trace, ClusterState]:
    """The trace with its sweeps unbudgeted, on nodes of eight, under two levels of the budget tree."""
    trace = read_trace(str(trace_path)).trace
    jobs = tuple(replace(j, min_runtime_s=0) if j.kind == "unallocated-sweep" else j for j in trace.jobs)
    cluster = built_cluster({"h100": GPUS}, NODE, groups_of_budget(budget_path.read_bytes()))
    return replace(trace, jobs=jobs, end_s=max(trace.end_s, 30 * DAY_S)), cluster


def points(only: str) -> dict[str, tuple[Scheduler, Mapping[str, Any]]]:
    """Runs by name: who decides, and what differs from the defaults."""
    if only == "month":
        return {who.value: (who, {}) for who in Scheduler}
    found: dict[str, tuple[Scheduler, Mapping[str, Any]]] = {"defaults": (Scheduler.EVENHAND, {})}
    for field, values in MOVED.items():
        found |= {f"{field}={value:g}": (Scheduler.EVENHAND, {field: value}) for value in values if value is not None}
    return found


def figures(result: ReplayResult, metrics: ReplayMetrics, seconds: float) -> dict[str, Any]:
    """What a run is judged by."""
    level, debug = metrics.level(min(1, len(metrics.delivery) - 1)), metrics.wait("debug")
    horizon_h = result.end_s / 3600
    return {
        "scheduler": metrics.scheduler,
        "days": round(result.end_s / DAY_S, 3),
        "over_period": level.over_period,
        "in_hour": level.in_hour,
        "worst_project": level.worst_over_period,
        "projects_97": level.at_least(0.97),
        "projects": len(level.groups),
        "by_project": {g.group: [g.over_period, g.in_hour, g.owed_gpu_hours] for g in level.groups},
        "occupancy": metrics.occupancy,
        "unallocated": metrics.unallocated_share,
        "lost": metrics.lost_share,
        "lost_allocated": metrics.lost_allocated_share,
        "debug_wait_s": [debug.first_wait_s.p50, debug.first_wait_s.p90, debug.first_wait_s.p99] if debug else None,
        "large_wait_s": [metrics.large_first_wait_s.p50, metrics.large_first_wait_s.p90],
        "waits_p90_s": {w.name: w.first_wait_s.p90 for w in (*metrics.waits_by_kind, *metrics.waits_by_size)},
        "preempted_a_day": metrics.preemptions / horizon_h * 24,
        "moved_a_day": metrics.migrations / horizon_h * 24,
        "turnover": metrics.turnover,
        "completed": metrics.jobs["completed"],
        "mean_completion_s": metrics.completion_s.mean,
        "full_rounds": metrics.rounds.full_rounds,
        "rounds": metrics.rounds.rounds,
        "cpu_s": round(seconds, 1),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def main() -> None:
    """Run what is missing, or write the page."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("trace", type=Path, nargs="?")
    ask.add_argument("budget", type=Path, nargs="?")
    ask.add_argument("--runs", type=Path, default=STORED)
    ask.add_argument("--only", choices=["month", "moved", "full"], default="month")
    ask.add_argument("--name", action="append", help="only runs of this name")
    ask.add_argument("--days", type=float, default=30.0)
    ask.add_argument("--page", type=Path)
    args = ask.parse_args()
    if args.page is not None:
        write_page(args.runs, args.page)
        return
    if args.trace is None or args.budget is None:
        sys.exit("a trace and a budget tree are needed")
    trace, cluster = world(args.trace, args.budget)
    rules = {"": RULES}
    if args.only == "full":
        rules = {"incremental": RULES, "every round in full": replace(RULES, full_round_s=0)}
    for how, rule in rules.items():
        for name, (who, changes) in ({how: (Scheduler.EVENHAND, {})} if how else points(args.only)).items():
            target = args.runs / args.only / f"{name}.json"
            if target.exists() or (args.name and name not in args.name):
                continue
            began = process_time()
            policy = Policy.model_validate({k: v for k, v in changes.items() if k in Policy.model_fields})
            way = replace(rule, **{k: v for k, v in changes.items() if k not in Policy.model_fields})
            result = replay(trace, cluster, policy, who, rules=way, until_s=round(args.days * DAY_S))
            seconds = process_time() - began
            found = figures(result, measure(result, seconds=seconds), seconds)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(json.dumps({"name": name, **found}, indent=1) + "\n", encoding="utf-8")
            print(
                name,
                json.dumps({k: found[k] for k in ("over_period", "in_hour", "lost_allocated", "cpu_s")}),
                flush=True,
            )


if __name__ == "__main__":
    main()
