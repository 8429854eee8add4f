"""What was odd in the input, and how it was read: one warning a kind, never one a job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from evenhand.entitlement import Entitlement
from evenhand.snapshot import NO_GROUP, Snapshot
from evenhand.tree import ROOT
from evenhand_models import NodeStatus, PlanWarning, WarningCode

MOST_REFS = 20
"""So many ids stand in a warning at most; the message has the count."""
RATE_RATIO = 2.0
"""Charge rates may be off the mean speedups by this factor before it is said."""


def warnings_of(snapshot: Snapshot, entitlement: Entitlement) -> tuple[PlanWarning, ...]:
    """Say everything odd about the input, in a fixed order."""
    found = [
        *_clocks(snapshot),
        *_contracts(snapshot),
        *_unknown_groups(snapshot),
        *_unknown_usage(snapshot),
        *_unknown_types(snapshot),
        *_gone_nodes(snapshot),
        *_shares(snapshot),
        *_guarantees(snapshot, entitlement),
        *_rates(snapshot),
        *_overfull(snapshot),
        *_infeasible(snapshot),
    ]
    return tuple(sorted(found, key=lambda w: (w.code, w.refs, w.message)))


def _warn(code: WarningCode, message: str, ids: Sequence[str]) -> Iterator[PlanWarning]:
    """One warning about all of them, none if there are none; the message may use {n} and {ids}."""
    if ids:
        refs = tuple(sorted(set(ids)))
        few = refs[:MOST_REFS]
        listed = ", ".join(repr(i) for i in few[:3]) + (f" and {len(refs) - 3} more" if len(refs) > 3 else "")
        yield PlanWarning(code=code, message=message.replace("{n}", str(len(refs))).replace("{ids}", listed), refs=few)


def _clocks(snapshot: Snapshot) -> Iterator[PlanWarning]:
    """S1: instants after now."""
    now, jobs = snapshot.now, snapshot.jobs
    started = [j.id for j in jobs if (at := j.started_at) is not None and at > now]
    other = [j.id for j in jobs if j.submitted_at > now or ((at := j.checkpointed_at) is not None and at > now)]
    nodes = [n.name for n in snapshot.nodes if (at := n.down_since_at) is not None and at > now]
    yield from _warn(
        WarningCode.STARTED_AT_CLAMPED,
        "started_at of {n} job(s) lies after now and was read as now: {ids}.",
        started,
    )
    yield from _warn(
        WarningCode.INSTANT_CLAMPED,
        "submitted_at, checkpointed_at or down_since_at of {n} job(s) or node(s) lies after now and was read "
        "as now: {ids}.",
        other + nodes,
    )


def _contracts(snapshot: Snapshot) -> Iterator[PlanWarning]:
    """S2: contracts of running jobs above the cap."""
    cap = snapshot.policy.max_protection_s
    running = (snapshot.jobs[j] for j in np.flatnonzero(snapshot.running).tolist())
    longer = [j.id for j in running if j.contract.min_runtime_s > cap]
    yield from _warn(
        WarningCode.CONTRACT_CUT,
        f"min_runtime_s of {{n}} running job(s) is above max_protection_s and was cut to {cap} s: {{ids}}.",
        longer,
    )


def _unknown_groups(snapshot: Snapshot) -> Iterator[PlanWarning]:
    """S4: jobs whose group is not in the tree."""
    known = set(snapshot.tree.ids)
    unknown = [(i, j) for i, j in enumerate(snapshot.jobs) if j.group not in known]
    pending = [j.id for i, j in unknown if snapshot.pending[i]]
    charged = [j.id for i, j in unknown if not snapshot.pending[i] and snapshot.group[i] != NO_GROUP]
    orphans = [j.id for i, j in unknown if not snapshot.pending[i] and snapshot.group[i] == NO_GROUP]
    code = WarningCode.UNKNOWN_GROUP
    yield from _warn(code, "The groups of {n} pending job(s) are not in the tree: infeasible: {ids}.", pending)
    yield from _warn(
        code,
        "The groups of {n} job(s) on nodes are not in the tree: charged to the nearest group above: {ids}.",
        charged,
    )
    yield from _warn(
        code,
        "The groups of {n} job(s) on nodes are unknown, and so are all above: kept, counted nowhere: {ids}.",
        orphans,
    )


def _unknown_usage(snapshot: Snapshot) -> Iterator[PlanWarning]:
    """S4: usage of groups that are not in the tree."""
    tree = snapshot.tree
    unknown = [u.group for u in snapshot.state.usage or () if tree.index(u.group) is None]
    moved = [g for g in unknown if tree.nearest_named(g) is not None]
    lost = [g for g in unknown if tree.nearest_named(g) is None]
    code = WarningCode.UNKNOWN_USAGE_GROUP
    yield from _warn(
        code,
        "Usage of {n} group(s) that are not in the tree was charged to the nearest group above: {ids}.",
        moved,
    )
    yield from _warn(
        code, "Usage of {n} group(s) that are not in the tree, nor is one above, was left out: {ids}.", lost
    )


def _unknown_types(snapshot: Snapshot) -> Iterator[PlanWarning]:
    """Speedups of types that the cluster does not have."""
    known = set(snapshot.types)
    names: set[str] = set()
    jobs = []
    for job in snapshot.jobs:
        if not known.issuperset(job.speedup):
            names |= job.speedup.keys() - known
            jobs.append(job.id)
    listed = ", ".join(repr(n) for n in sorted(names)[:MOST_REFS])
    message = f"Speedups of {{n}} job(s) name types not in gpu_types ({listed}) and were left out: {{ids}}."
    yield from _warn(WarningCode.UNKNOWN_GPU_TYPE, message, jobs)


def _gone_nodes(snapshot: Snapshot) -> Iterator[PlanWarning]:
    """S9: placements on nodes that are not listed."""
    stands = snapshot.stands
    lost = [snapshot.jobs[j].id for j in np.unique(stands.job[stands.node < 0]).tolist()]
    yield from _warn(
        WarningCode.NODE_GONE,
        "{n} job(s) stand on nodes that are not listed, which count as lost: {ids}.",
        lost,
    )


def _shares(snapshot: Snapshot) -> Iterator[PlanWarning]:
    """S7: siblings that all have a share of 0."""
    tree = snapshot.tree
    for parent in tree.levelled:
        children = tree.top if parent == ROOT else tree.children[parent]
        where = "at the top" if parent == ROOT else f"below {tree.ids[parent]!r}"
        message = f"All {len(children)} group(s) {where} have share 0: split equally."
        yield from _warn(WarningCode.ZERO_SHARES, message, [tree.ids[k] for k in children])


def _guarantees(snapshot: Snapshot, entitlement: Entitlement) -> Iterator[PlanWarning]:
    """D2, D4: guarantees that cannot all hold, by the numbers asked for or this round."""
    tree = snapshot.tree
    there = int(snapshot.capacity.sum())
    need = [0] * len(tree.ids)
    limited, raised, above = [], [], []
    for g in tree.bottom_up:
        asked = tree.groups[g]
        own, below = asked.guaranteed_gpus or 0, sum(need[k] for k in tree.children[g])
        need[g] = max(own, below)
        if asked.max_gpus is not None and asked.max_gpus < need[g]:
            limited.append(tree.ids[g])
            need[g] = asked.max_gpus
        if asked.guaranteed_gpus is not None and below > own:
            raised.append(tree.ids[g])
        if own > there:
            above.append(tree.ids[g])
    yield from _warn(
        WarningCode.LIMIT_BELOW_GUARANTEE,
        "max_gpus of {n} group(s) is below the guarantees of it or below it, which were cut to it: {ids}.",
        limited,
    )
    code = WarningCode.GUARANTEES_CUT
    yield from _warn(
        code,
        "{n} group(s) are guaranteed less than their children together; the children's sum counts: {ids}.",
        raised,
    )
    yield from _warn(code, f"{{n}} group(s) are guaranteed more than the {there} GPUs that are up: {{ids}}.", above)
    yield from _warn(
        code,
        "Guarantees of {n} group(s) together exceed what there is and were cut in proportion: {ids}.",
        [tree.ids[int(g)] for g in np.flatnonzero(entitlement.scaled)],
    )


def _rates(snapshot: Snapshot) -> Iterator[PlanWarning]:
    """Charge rates against mean speedups, over the budgeted jobs that can use both types of a pair."""
    size = snapshot.size * snapshot.budgeted
    speed = snapshot.speed_milli.astype(np.float64)
    for a in range(len(snapshot.types)):
        for b in range(a + 1, len(snapshot.types)):
            both = (speed[:, a] > 0) & (speed[:, b] > 0) & (size > 0)
            if not both.any():
                continue
            worth = float(np.exp(np.average(np.log(speed[both, b] / speed[both, a]), weights=size[both])))
            charged = float(snapshot.rate_milli[b] / snapshot.rate_milli[a])
            if max(worth / charged, charged / worth) > RATE_RATIO * (1 + 1e-9):
                names = [snapshot.types[a], snapshot.types[b]]
                message = (
                    f"A GPU of {names[1]!r} is charged {charged:.3g} times one of {names[0]!r}, but does "
                    f"{worth:.3g} times the work in the mean of {int(both.sum())} job(s): more than "
                    f"{RATE_RATIO:g} x apart."
                )
                yield from _warn(WarningCode.CHARGE_RATE_OFF, message, names)


def _overfull(snapshot: Snapshot) -> Iterator[PlanWarning]:
    """S9: nodes that hold more than is usable on them."""
    full = [snapshot.nodes[int(n)].name for n in np.flatnonzero(snapshot.overfull)]
    yield from _warn(
        WarningCode.OVER_USABLE,
        "More is placed on {n} node(s) than is usable there; their jobs count as hit by node loss: {ids}.",
        [name for name in full if snapshot.nodes[snapshot.node_index[name]].status is not NodeStatus.DOWN],
    )


def _infeasible(snapshot: Snapshot) -> Iterator[PlanWarning]:
    """S4, S5: jobs that could not run even on the empty cluster."""
    never = [snapshot.jobs[int(j)].id for j in np.flatnonzero(snapshot.infeasible)]
    yield from _warn(
        WarningCode.INFEASIBLE_JOB,
        "{n} job(s) could not run even on the empty cluster, all nodes up: {ids}.",
        never,
    )
