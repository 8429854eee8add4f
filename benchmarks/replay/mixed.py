"""Throughput and completion times on mixed GPUs: objectives of the engine beside Gavel's rotation and an equal split.

python benchmarks/replay/mixed.py --philly philly_3vc.csv.gz --venus helios_venus_2020q2.csv.gz --out RUNS
python benchmarks/replay/mixed.py --doc docs/mixed-gpus.md        # the page alone, from the figures kept

Finished replays are kept in --out: run the same command again to go on. Needs some ten CPU minutes.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from mixed_page import page
from mixed_worlds import SLICES, TYPES, world

from evenhand.replay import Scheduler
from evenhand_api.commands.progress import counted
from evenhand_api.traces import read_trace
from evenhand_api.whatif.pools import Here, Pool, Processes
from evenhand_api.whatif.runs import Base, Run
from evenhand_api.whatif.store import Folder
from evenhand_api.whatif.sweep import sweep
from evenhand_models.scenarios import Scenario

MEASURED = Path(__file__).parent / "mixed_measured.json"
DEMAND = 2.0
OBJECTIVES = ("envy_free", "nash", "max_min")
PEERS = {"gavel": Scheduler.GAVEL, "equal split": Scheduler.STATIC_QUOTA}


def runs() -> list[Run]:
    """Who decides, the same in every world; the seed is the world's."""
    engine = [Run(Scenario(name=o, policy={"objective": o}), Scheduler.EVENHAND, 0) for o in OBJECTIVES]
    return [*engine, *(Run(Scenario(name=name), who, 0) for name, who in PEERS.items())]


def figures(result: dict[str, Any], days: int) -> dict[str, Any]:
    """What is kept of a run; throughput and occupancy while jobs came, the rest until all were done."""
    series, metrics = result["series"], result["metrics"]
    steps = days * 24 // series["step_h"]
    there = sum(series["capacity"][:steps])
    envy = metrics["window_envy"] or {"worst": 0.0, "least_sharing_incentive": None}
    return {
        "who": result["scenario"]["name"],
        "jobs": result["jobs"],
        "gpus": result["gpus"],
        "throughput": sum(series["working"][:steps]) / there,
        "occupancy": sum(series["held"][:steps]) / there,
        "mean_jct_s": metrics["completion_s"]["mean"],
        "p90_jct_s": metrics["completion_s"]["p90"],
        "unfinished": result["jobs"] - metrics["jobs"]["completed"],
        "lost_share": metrics["lost_share"],
        "slices_delivered": metrics["sharing_incentive"]["delivered"],
        "least_sharing_incentive": envy["least_sharing_incentive"],
        "window_envy": envy["worst"],
        "full_rounds": metrics["rounds"]["full_rounds"],
    }


def main() -> None:
    """Replay what is not finished, keep the figures, write the page."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in SLICES:
        ask.add_argument(f"--{name}", type=Path, help=f"the {name} trace as neutral CSV")
    ask.add_argument("--seeds", type=int, default=3)
    ask.add_argument("--out", type=Path, default=Path("mixed-runs"))
    ask.add_argument("--workers", type=int, default=1)
    ask.add_argument("--measured", type=Path, default=MEASURED)
    ask.add_argument("--doc", type=Path, default=None)
    args = ask.parse_args()
    sources = {name: path for name in SLICES if (path := getattr(args, name)) is not None}
    if sources:
        rows = replayed(sources, args.seeds, args.out, Here() if args.workers == 1 else Processes(args.workers))
        args.measured.write_text(json.dumps(rows, indent=1) + "\n")
    if args.doc is not None:
        args.doc.write_text(page(json.loads(args.measured.read_text()), DEMAND))


def replayed(sources: dict[str, Path], seeds: int, out: Path, pool: Pool) -> list[dict[str, Any]]:
    """Figures of every run in every world."""
    traces = {name: read_trace(str(path)).trace for name, path in sources.items()}
    worlds = [(seed, name, kinds) for seed in range(seeds) for name in traces for kinds in TYPES]
    rows: list[dict[str, Any]] = []
    with counted("worlds", len(worlds)) as report:
        for done, (seed, name, kinds) in enumerate(worlds):
            base = Base(world(traces[name], SLICES[name], TYPES[kinds], DEMAND, seed))
            found = sweep(base, runs(), pool, Folder(out), lambda share, *_, at=done: report(at + share))
            head = {"trace": name, "types": kinds, "seed": seed, "credit": base.case.trace.credit}
            rows += [head | figures(result, SLICES[name].days) for result in found]
    return rows


if __name__ == "__main__":
    main()
