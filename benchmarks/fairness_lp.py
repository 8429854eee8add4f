"""CPU seconds of the fair target's linear programs, by size and contention, against what was measured before.

    python benchmarks/fairness_lp.py [--sizes 150 500 1000 2000] [--seeds 3] [--write] [--work]

Random vectors of 3 types; caps far ("none"), 1 to 4 times what a group is owed ("some"), or 0.3 to 1.5 times
("tight"); "classes": 1 to 5 job classes a group, caps as "some", up to 500 groups. `target` is the division under envy_free,
`forced` what pins of four groups in ten force on it, measured up to 500 groups. Expectations are in
`fairness_lp_expected.json`: mean and spread over seeds on the machine named there; a run that takes more than twice
the mean is marked. `--work` bounds the iterations as a round of 5 s does, and shows what envy is left.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evenhand.fairness.envy_free import envy_free
from evenhand.fairness.equal_throughput import equal_throughput
from evenhand.fairness.forced import least_slack
from evenhand.fairness.group_value import GroupValues, best_split, values_of
from evenhand.fairness.max_min import max_min
from evenhand.fairness.nash import nash
from evenhand.fairness.swapped import envy_of
from evenhand.fairness.target import iterations_within

EXPECTED = Path(__file__).parent / "fairness_lp_expected.json"
CAPS = ("none", "some", "tight", "classes")
TYPES = 3
MOST_FORCED = MOST_CLASSED = 500
PLENTY = 10**7
OTHERS: dict[str, Callable[..., tuple[np.ndarray, bool]]] = {
    "nash": nash, "max_min": max_min, "equal_throughput": equal_throughput,
}  # fmt: skip


@dataclass(frozen=True)
class Timed:
    """CPU seconds by what was done, whether the target is proven, and the envy it leaves as a share of a floor."""

    cpu_s: dict[str, float]
    proven: bool
    envy: float


def draw(seed: int, groups: int, caps: str) -> GroupValues:
    """Random groups."""
    rng = np.random.default_rng([seed, groups])
    classes = rng.integers(1, 6, groups) if caps == "classes" else np.ones(groups, dtype=np.int64)
    of = np.repeat(np.arange(groups), classes)
    weights = rng.uniform(0.1, 1.0, (len(of), TYPES))
    weights[rng.random(weights.shape) < 0.15] = 0.0
    weights[np.arange(len(of)), rng.integers(0, TYPES, len(of))] = 1.0
    owed = rng.lognormal(1.5, 1.0, groups)
    low, high = {"none": (1e6, 1e6), "some": (1.0, 4.0), "tight": (0.3, 1.5), "classes": (1.0, 4.0)}[caps]
    part = rng.uniform(0.1, 1.0, len(of))
    cap = (owed * rng.uniform(low, high, groups))[of] * part / np.bincount(of, weights=part)[of]
    capacity = rng.multinomial(int(owed.sum()), np.full(TYPES, 1 / TYPES)).astype(np.int64)
    return values_of(np.arange(groups), owed, weights, np.ceil(cap).astype(np.int64), capacity, of)


def pins(values: GroupValues, seed: int) -> np.ndarray:
    """What protected jobs hold: up to 2.5 times the slice, in four groups of ten."""
    rng = np.random.default_rng(seed)
    split = np.floor(best_split(values, values.slices * rng.uniform(0.0, 2.5, values.slices.shape)))
    return split * (rng.random(len(values.leaves)) < 0.4)[values.of][:, None]


def measure(values: GroupValues, seed: int, work: int) -> Timed:
    """Time the programs one by one."""
    spent: dict[str, float] = {}

    def timed(name: str, run: Callable[[], object]) -> object:
        began = time.process_time()
        found = run()
        spent[name] = time.process_time() - began
        return found

    bundles, proven = timed("target", lambda: envy_free(values, work))  # type: ignore[misc]
    if len(values.leaves) <= MOST_FORCED:
        pinned = pins(values, seed)
        timed("forced", lambda: least_slack(values, bundles, pinned, work))
    for name, objective in OTHERS.items():
        timed(name, lambda objective=objective: objective(values, work))  # type: ignore[misc]
    envy = envy_of(values, bundles) / np.maximum(values.floor, 1e-9)[:, None]
    return Timed(spent, proven, float(envy.max()))


def show(
    groups: int, caps: str, runs: list[Timed], expected: dict[str, dict[str, float]]
) -> dict[str, dict[str, float]]:
    """Print a line, and return mean and spread by program."""
    cells, found = [], {}
    for name in runs[0].cpu_s:
        each = [run.cpu_s[name] for run in runs]
        mean = statistics.mean(each)
        found[name] = {"mean": round(mean, 3), "least": round(min(each), 3), "most": round(max(each), 3)}
        before = expected.get(name)
        slow = " !" if before is not None and mean > 2 * before["mean"] + 0.01 else ""
        cells.append(f"{name} {mean:.3f} ({min(each):.3f} to {max(each):.3f}){slow}")
    proven = sum(run.proven for run in runs)
    worst = max(run.envy for run in runs)
    print(
        f"{groups:5} {caps:8} proven {proven}/{len(runs)}, envy {worst:.1e} of a floor | " + ", ".join(cells),
        flush=True,
    )
    return found


def main() -> None:
    """Measure, print, and write expectations if asked."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--sizes", type=int, nargs="+", default=[150, 500, 1000, 2000])
    asked.add_argument("--caps", nargs="+", choices=CAPS, default=CAPS)
    asked.add_argument("--seeds", type=int, default=3)
    asked.add_argument("--work", action="store_true", help="iterations as in a round of 5 s")
    asked.add_argument("--write", action="store_true", help="keep what was measured as expectations")
    given = asked.parse_args()
    known = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {"cpu_s": {}}
    for groups in given.sizes:
        for caps in given.caps:
            if caps == "classes" and groups > MOST_CLASSED:
                continue
            runs = []
            for seed in range(given.seeds):
                values = draw(seed, groups, caps)
                work = iterations_within(len(values.cap), 5.0) if given.work else PLENTY
                runs.append(measure(values, seed, work))
            key = f"{groups} {caps}"
            found = show(groups, caps, runs, known["cpu_s"].get(key, {}))
            if given.write and not given.work:
                known["cpu_s"][key] = found
                EXPECTED.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
