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
from evenhand_models.made import made


def group_reports(
    snapshot: Snapshot, entitled: Entitlement, target: Target, got: Standing, outcome: Outcome
) -> tuple[GroupReport, ...]:
    """How every group fares, everything below it included."""
    s, tree = snapshot, snapshot.tree
    count, types = len(tree.ids), len(s.types)
    bundles, floors, drawn = np.zeros((count, types)), np.zeros(count), np.zeros(count)
    for i, g in enumerate(target.leaves):
        bundles[g], floors[g], drawn[g] = target.x[i], target.floor[i], target.drawn[i]
    own = np.column_stack((floors, got.throughput, drawn, bundles, got.allocated, got.unallocated))
    total = below(s, own.astype(np.float64)) + 0.0  # no -0.0
    targets, whole = total[:, 3 : 3 + types].tolist(), total[:, 3 + types :].astype(np.int64)
    used = _utilization(s, outcome)
    columns = zip(
        tree.ids,
        *((x + 0.0).tolist() for x in (entitled.usage, entitled.demand, entitled.entitled)),
        *(total[:, k].tolist() for k in range(3)),
        targets,
        whole[:, :types].tolist(),
        whole[:, types:].tolist(),
        entitled.standing.tolist(),
        strict=True,
    )
    return tuple(
        made(
            GroupReport,
            {
                "group": name,
                "share": tree.groups[c].share,
                "usage_gpu_hours": usage,
                "demand_gpus": demand,
                "entitled_gpus": owed,
                "target": {kind: gpus for kind, gpus in zip(s.types, row, strict=True) if gpus > 0},
                "floor": floor,
                "allocated": {kind: gpus for kind, gpus in zip(s.types, held, strict=True) if gpus},
                "unallocated_use": {kind: gpus for kind, gpus in zip(s.types, more, strict=True) if gpus},
                "utilization": used.get(c),
                "throughput": throughput,
                "throughput_target": fair,
                "sharing_incentive": throughput / floor if floor > 0 else None,
                "standing": standing,
            },
        )
        for c, (name, usage, demand, owed, floor, throughput, fair, row, held, more, standing) in enumerate(columns)
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
