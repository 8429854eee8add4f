"""T1 to T3 once more: what a bundle brings, job classes, and the line above it, by trying slivers more and less."""

from __future__ import annotations

import math

from evenhand_models import Job
from oracles.reading import Reader

Speeds = dict[str, float]
SLIVER = 1e-5
"""GPUs more or less by which prices are found."""


def most_drawn(speed: dict[str, Speeds], size: dict[str, float], bundle: dict[str, float]) -> float:
    """Return the most throughput that takers of some sizes could draw from a bundle if they could be split.

    Augments along the most rewarding path from a taker to a type until none brings anything: exact.
    """
    types = sorted(bundle)
    flow = {(j, t): 0.0 for j in speed for t in types}
    left_taker, left_type = dict(size), dict(bundle)
    value = 0.0
    while True:
        best, path = 1e-12, None
        for taker, left in left_taker.items():
            if left <= 1e-12:
                continue
            gain, back = _paths(speed, types, taker, flow)
            for t in types:
                if left_type[t] > 1e-12 and gain.get(t, 0.0) > best:
                    best, path = gain[t], (taker, t, back)
        if path is None:
            return value
        taker, last, back = path
        steps = []
        at: str | None = last
        while at is not None:
            via, before = back[at]
            steps.append((via, at, before))
            at = before
        amount = min(left_taker[taker], left_type[last], *(flow[v, b] for v, _, b in steps if b is not None), math.inf)
        for via, into, before in steps:
            flow[via, into] += amount
            if before is not None:
                flow[via, before] -= amount
        left_taker[taker] -= amount
        left_type[last] -= amount
        value += amount * sum(speed[v][i] - (speed[v][b] if b is not None else 0.0) for v, i, b in steps)


def _paths(
    speed: dict[str, Speeds], types: list[str], taker: str, flow: dict[tuple[str, str], float]
) -> tuple[Speeds, dict[str, tuple[str, str | None]]]:
    """Best gain from one taker to each type, moving others' GPUs aside: Bellman-Ford over types."""
    gain = {t: speed[taker][t] for t in types if speed[taker][t] > 0}
    back: dict[str, tuple[str, str | None]] = dict.fromkeys(gain, (taker, None))
    for _ in types:
        for (other, t), amount in flow.items():
            if amount <= 1e-12 or t not in gain:
                continue
            for s in types:
                better = gain[t] - speed[other][t] + speed[other][s]
                if s != t and speed[other][s] > 0 and better > gain.get(s, -math.inf) + 1e-12:
                    gain[s], back[s] = better, (other, t)
    return gain, back


def classes(reader: Reader, jobs: list[Job]) -> tuple[dict[str, Speeds], dict[str, float]]:
    """Speeds and sizes of a leaf's job classes (T1)."""
    for grid in (16, 8, 4, 2, 1, 0, None):
        alike: dict[str, list[Job]] = {}
        for job in jobs:
            speed = reader.speed[job.id]
            top = max(speed.values())
            look = (
                {t: math.floor(grid * round(1000 * s) / round(1000 * top) + 0.5) for t, s in speed.items() if s}
                if grid is not None
                else {}
            )
            alike.setdefault(str(look), []).append(job)
        if len(alike) <= 6:
            break
    size = {look: float(sum(job.gpus for job in found)) for look, found in alike.items()}
    mean = {
        look: {t: sum(job.gpus * reader.speed[job.id][t] for job in found) / size[look] for t in reader.types}
        for look, found in alike.items()
    }
    return mean, size


def line(speed: dict[str, Speeds], size: dict[str, float], slice_of: dict[str, float]) -> tuple[float, Speeds]:
    """Return L of a leaf, base and slopes by type: what slivers of each class more or less bring at the slice (T3)."""
    value = most_drawn(speed, size, slice_of)
    more = {k: most_drawn(speed, {**size, k: size[k] + SLIVER}, slice_of) - value for k in size}
    ample = {k: size[k] + (2 * SLIVER if more[k] <= SLIVER * 1e-6 else 0.0) for k in size}
    value = most_drawn(speed, ample, slice_of)
    price = {
        k: (value - most_drawn(speed, {**ample, k: size[k] - SLIVER}, slice_of)) / SLIVER
        if ample[k] == size[k]
        else 0.0
        for k in size
    }
    slopes = {t: max(max(speed[k][t] - price[k], 0.0) for k in size) for t in slice_of}
    return sum(price[k] * size[k] for k in size), slopes
