"""How often a wrong declaration pays under an objective, over random small clusters."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from cases.states import cluster, ones

from evenhand.speedups import misreport_gain
from evenhand_models import Objective, Policy, ThroughputUnit


def how_often_it_pays(
    objective: Objective, unit: ThroughputUnit, too_much: bool, seeds: Iterable[int]
) -> tuple[float, float]:
    """Share of worlds in which the first of three groups gains, and the most it gained.

    One class of jobs a group, slowest on a type they share, work without end. It multiplies its speedup of the last
    type by up to 10, or divides it by up to 2.7.
    """
    gains = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        types = ["t0", "t1", "t2"][: int(rng.integers(2, 4))]
        work = []
        for g in range(3):
            vector = np.concatenate([[1.0], 1 + rng.exponential(1.5, len(types) - 1)])
            work += ones(f"g{g}k", f"g{g}", 100, speedup=dict(zip(types, vector.tolist(), strict=True)))
        hardware = ", ".join(f"{int(rng.integers(1, 4))}x8 {t}" for t in types)
        state = cluster(hardware, {f"g{g}": float(rng.integers(1, 4)) for g in range(3)}, work)
        factor = float(np.exp(rng.uniform(0.1, 2.3) if too_much else -rng.uniform(0.1, 1.0)))
        policy = Policy(objective=objective, throughput_unit=unit)
        gains.append(misreport_gain(state, policy, "g0", factors={types[-1]: factor}).gain or 0.0)
    return sum(gain > 1e-6 for gain in gains) / len(gains), max(0.0, *gains)
