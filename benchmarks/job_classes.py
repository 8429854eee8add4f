"""What job classes bring over one blurred vector for each group, on measured speedups.

    python benchmarks/job_classes.py [--draws 20] [--vectors FILE]

Groups run jobs of several models each, drawn from the vectors. The fair target (envy_free) is worked out with one
class a group and with more, and the division is held against what the jobs themselves could draw from it, job by
job: throughput over that of the blurred target, and the least that any group draws over what it could draw from its
slice. CPU seconds are those of the target alone.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from fairness_vectors import GAVEL, Vector, read_vectors, types_of

from evenhand.fairness.drawn import drawers_of, drawn_throughput
from evenhand.fairness.envy_free import envy_free
from evenhand.fairness.group_value import values_of
from evenhand.fairness.job_classes import MOST_CLASSES, job_classes

GROUPS = (2, 5, 10, 20)
MODELS = (2, 3, 5, 8)
"""Models that a group runs."""
SIZES, LIKELY = (1, 2, 4, 8), (60, 15, 10, 15)
CROWDED = 2.0
"""GPUs wanted for each there is."""
SIA_ODD = frozenset({("ncf", "azure")})
"""Slower than on a type that is slower at all else, by nine times: its input, not its GPU."""


@dataclass(frozen=True)
class Drawn:
    """Jobs of all groups: group, GPUs, speed in thousandths by type; and GPUs by type."""

    groups: int
    leaf: np.ndarray
    size: np.ndarray
    speed: np.ndarray
    capacity: np.ndarray


@dataclass(frozen=True)
class Found:
    """What a target brings: throughput of the jobs, least over the slice, CPU seconds."""

    throughput: float
    least: float
    cpu_s: float


def draw(rng: random.Random, vectors: list[Vector], types: list[str], groups: int, models: int) -> Drawn:
    """Draw groups of equal shares, each with its models and jobs."""
    leaf, size, speed = [], [], []
    capacity = np.array([rng.choice((16, 32, 48)) * max(1, groups // 4) for _ in types])
    wanted = CROWDED * capacity.sum() / groups
    for group in range(groups):
        own, held = rng.sample(vectors, k=models), 0
        while held < wanted:
            vector = rng.choice(own)
            top = max(vector.speedup.values())
            leaf.append(group)
            size.append(rng.choices(SIZES, LIKELY)[0])
            speed.append([round(1000 * vector.speedup.get(name, 0.0) / top) for name in types])
            held += size[-1]
    return Drawn(groups, np.array(leaf), np.array(size), np.array(speed), capacity)


def target(drawn: Drawn, most: int) -> Found:
    """Divide with at most so many classes a group, and let the jobs draw."""
    began = time.process_time()
    classes = job_classes(drawn.leaf, drawn.size, drawn.speed, most)
    weights = classes.speed_sum / (1000.0 * classes.size[:, None])
    owed = np.full(drawn.groups, drawn.capacity.sum() / drawn.groups)
    values = values_of(np.arange(drawn.groups), owed, weights, classes.size, drawn.capacity, classes.leaf)
    bundles, best = envy_free(values)
    spent = time.process_time() - began
    if not best:
        raise SystemExit("not proven best")
    jobs = drawers_of(drawn.leaf, drawn.size, drawn.speed)
    brought, floor = drawn_throughput(jobs, bundles), drawn_throughput(jobs, values.slices)
    return Found(float(brought.sum()), float((brought / floor).min()), spent)


def main() -> None:
    """Measure and print."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--draws", type=int, default=20, help="draws for each number of groups and models")
    asked.add_argument("--vectors", type=Path, default=GAVEL, help="a file of the form of data/gavel_speedups.json")
    asked.add_argument("--most", type=int, nargs="+", default=[MOST_CLASSES], help="classes that a group may have")
    given = asked.parse_args()
    vectors = read_vectors(given.vectors, SIA_ODD)
    types = types_of(vectors)
    print(f"{given.vectors.stem}: {len(vectors)} vectors, {len(types)} types, {given.draws} draws a row")
    print(
        f"{'groups':>6} {'models':>6} {'classes':>7}   over the blurred target            least over slice  (blurred)  CPU s"
    )
    every: dict[int, list[float]] = {most: [] for most in given.most}
    for groups in GROUPS:
        for models in MODELS:
            if models > len(vectors):
                continue
            drawn = [
                draw(random.Random(f"{groups}-{models}-{k}"), vectors, types, groups, models)
                for k in range(given.draws)
            ]
            blurred = [target(one, 1) for one in drawn]
            for most in given.most:
                found = [target(one, most) for one in drawn]
                gain = [a.throughput / b.throughput for a, b in zip(found, blurred, strict=True)]
                every[most] += gain
                print(
                    f"{groups:6} {models:6} {most:7}   {statistics.mean(gain):.4f} ({min(gain):.4f} to {max(gain):.4f})"
                    f"   {min(f.least for f in found):15.4f} {min(f.least for f in blurred):10.4f}"
                    f"  {statistics.mean(f.cpu_s for f in found):.3f}"
                )
    for most, gain in every.items():
        print(
            f"all, at most {most}: {statistics.mean(gain):.4f} ({min(gain):.4f} to {max(gain):.4f}), {len(gain)} draws"
        )


if __name__ == "__main__":
    main()
