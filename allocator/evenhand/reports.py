"""How every group fares under a plan."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from evenhand.entitlement import Entitlement
from evenhand.fairness.target import Target
from evenhand.goals import Standing, below
from evenhand.outcome import Outcome
from evenhand.snapshot import Snapshot
from evenhand_models import GroupReport


def group_reports(
    snapshot: Snapshot, entitled: Entitlement, target: Target, got: Standing, outcome: Outcome
) -> tuple[GroupReport, ...]:
    """How every group fares, everything below it included."""
    s, tree = snapshot, snapshot.tree
    count, types = len(tree.ids), len(s.types)
    bundles, floors, drawn = np.zeros((count, types)), np.zeros(count), np.zeros(count)
    for i, g in enumerate(target.leaves):
        bundles[g], floors[g], drawn[g] = target.x[i], target.floor[i], target.drawn[i]
    by_type = [below(s, bundles[:, t]) for t in range(types)]
    allocated = [below(s, got.allocated[:, t].astype(np.float64)) for t in range(types)]
    spare = [below(s, got.unallocated[:, t].astype(np.float64)) for t in range(types)]
    floors, drawn, throughput = below(s, floors), below(s, drawn), below(s, got.throughput)
    used = _utilization(s, outcome)
    return tuple(
        GroupReport(
            group=name,
            share=tree.groups[c].share,
            usage_gpu_hours=float(entitled.usage[c]),
            demand_gpus=float(entitled.demand[c]),
            entitled_gpus=float(entitled.entitled[c]),
            target={s.types[t]: float(by_type[t][c]) for t in range(types) if by_type[t][c] > 0},
            floor=float(floors[c]),
            allocated={s.types[t]: int(allocated[t][c]) for t in range(types) if allocated[t][c]},
            unallocated_use={s.types[t]: int(spare[t][c]) for t in range(types) if spare[t][c]},
            utilization=used.get(c),
            throughput=float(throughput[c]),
            throughput_target=float(drawn[c]),
            sharing_incentive=float(throughput[c] / floors[c]) if floors[c] > 0 else None,
            standing=int(entitled.standing[c]),
        )
        for c, name in enumerate(tree.ids)
    )


def _utilization(s: Snapshot, outcome: Outcome) -> dict[int, float]:
    """GPU-weighted mean of what running jobs report, by group and everything below it."""
    held: dict[int, int] = defaultdict(int)
    used: dict[int, float] = defaultdict(float)
    for j in np.flatnonzero(s.running & (s.group >= 0)).tolist():
        d, reported = outcome.decisions.get(j), s.jobs[j].utilization
        if reported is not None and d is not None and d.places:
            for c in s.tree.path[int(s.group[j])]:
                held[c] += int(s.held[j])
                used[c] += int(s.held[j]) * reported
    return {c: min(1.0, used[c] / held[c]) for c in held}
