"""What each objective brings over an equal split and over max-min, on measured speedups.

    python benchmarks/fairness_gain.py [--draws 10] [--vectors FILE] [--plot docs/img/fairness_gain.svg]

Fluid: equal shares, as many GPUs of each type, more work than GPUs, 2 to 20 groups that run one model each,
drawn from the vectors. In the unit `slowest`, in which the literature counts (OEF), only models that run on
every type are drawn; in `best` all of them.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import defaultdict
from pathlib import Path

from fairness_vectors import GAVEL, Vector, read_vectors, types_of

from evenhand import ClusterState, Policy, compare_objectives
from evenhand_models import Objective, ThroughputUnit

EACH = 48
"""GPUs of every type; also the size of a job, so that no group is held back by what its jobs can hold."""
SHOWN = tuple(o for o in Objective if o is not Objective.FAIR_SHARE)
SIA_ODD = frozenset({("ncf", "azure")})
"""Slower than on a type that is slower at all else, by nine times: its input, not its GPU."""


def state_of(chosen: list[Vector], types: list[str]) -> ClusterState:
    """One group for each vector, with a job for every type."""
    return ClusterState.model_validate(
        {
            "now": "2026-11-01T12:00:00Z",
            "gpu_types": [{"name": name} for name in types],
            "nodes": [{"name": name, "gpu_type": name, "gpus": EACH} for name in types],
            "groups": [{"id": f"g{i:02}", "share": 1.0} for i in range(len(chosen))],
            "jobs": [
                {
                    "id": f"g{i:02}-{k}", "group": f"g{i:02}", "gpus": EACH, "speedup": vector.speedup,
                    "submitted_at": "2026-11-01T11:00:00Z", "contract": {"min_runtime_s": 3600},
                }
                for i, vector in enumerate(chosen)
                for k in range(len(types))
            ],
        }
    )  # fmt: skip


def measure(vectors: list[Vector], unit: ThroughputUnit, draws: int) -> dict[int, list[dict[Objective, float]]]:
    """Value of every objective's division, by number of groups and draw."""
    types = types_of(vectors)
    if unit is ThroughputUnit.SLOWEST:
        vectors = [v for v in vectors if len(v.speedup) == len(types)]
    found = defaultdict(list)
    for groups in range(2, 21):
        for draw in range(draws):
            rng = random.Random(f"{groups}-{draw}")
            state = state_of(rng.choices(vectors, k=groups), types)
            compared = compare_objectives(state, Policy(throughput_unit=unit))
            if not all(outcome.proven for outcome in compared.objectives):
                raise SystemExit(f"not proven: {groups} groups, draw {draw}")
            found[groups].append({outcome.objective: outcome.value for outcome in compared.objectives})
    return found


def ratios(found: list[dict[Objective, float]], objective: Objective, against: Objective) -> list[float]:
    """What one objective brings over another, draw by draw."""
    return [values[objective] / values[against] for values in found]


def show(name: str, unit: ThroughputUnit, found: dict[int, list[dict[Objective, float]]]) -> None:
    """Print mean and range over all draws."""
    every = [values for draws in found.values() for values in draws]
    print(f"\n{name}, unit {unit}, {len(every)} draws of 2 to 20 groups: mean (least to most)")
    print(f"{'':18} {'over equal split':26} over max-min")
    for objective in SHOWN:
        cells = []
        for against in (Objective.FAIR_SHARE, Objective.MAX_MIN):
            x = ratios(every, objective, against)
            cells.append(f"{sum(x) / len(x):.3f} ({min(x):.3f} to {max(x):.3f})")
        print(f"{objective:18} {cells[0]:26} {cells[1]}")


def plot(name: str, measured: dict[ThroughputUnit, dict[int, list[dict[Objective, float]]]], out: Path) -> None:
    """Draw the mean over an equal split by number of groups, with the range of envy_free."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "evenhand", "svg.fonttype": "none"}):
        figure = Figure(figsize=(10, 3.6), layout="constrained")
        FigureCanvasAgg(figure)
        for axes, (unit, found) in zip(
            figure.subplots(1, len(measured), squeeze=False)[0], measured.items(), strict=True
        ):
            sizes = sorted(found)
            for objective in SHOWN:
                each = [ratios(found[n], objective, Objective.FAIR_SHARE) for n in sizes]
                axes.plot(sizes, [sum(x) / len(x) for x in each], label=str(objective), linewidth=1.5)
                if objective is Objective.ENVY_FREE:
                    axes.fill_between(sizes, [min(x) for x in each], [max(x) for x in each], alpha=0.15)
            axes.set_title(f"{name}, unit {unit}", fontsize=10)
            axes.set_xlabel("groups", fontsize=9)
            axes.set_ylabel("throughput over equal split", fontsize=9)
            axes.tick_params(labelsize=8)
            axes.legend(fontsize=7)
        out.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(out, metadata={"Date": None} if out.suffix == ".svg" else None)
    print(f"\nwrote {out}")


def main() -> None:
    """Run and print."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--draws", type=int, default=10, help="draws for each number of groups")
    asked.add_argument("--vectors", type=Path, default=GAVEL, help="a file of the form of data/gavel_speedups.json")
    asked.add_argument("--all", action="store_true", help="with the one pair of Sia that is known to be odd")
    asked.add_argument("--plot", type=Path, help="where to draw; .svg or .png")
    given = asked.parse_args()
    began, name = time.process_time(), given.vectors.stem.partition("_")[0]
    vectors = read_vectors(given.vectors, frozenset() if given.all else SIA_ODD)
    measured = {unit: measure(vectors, unit, given.draws) for unit in (ThroughputUnit.SLOWEST, ThroughputUnit.BEST)}
    for unit, found in measured.items():
        show(name, unit, found)
    if given.plot:
        plot(name, measured, given.plot)
    print(f"{time.process_time() - began:.0f} s of CPU time")


if __name__ == "__main__":
    main()
