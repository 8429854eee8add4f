"""From decisions to the words of a plan: assignments, group reports, certificate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import timedelta

import numpy as np

from evenhand.entitlement import Entitlement
from evenhand.explain import Explanation
from evenhand.fairness.group_value import envy_of
from evenhand.fairness.target import Target
from evenhand.goals import FloatArray, GoalValue, Standing, below, largest_gangs, objective
from evenhand.outcome import ARRIVALS, Decision, Move, Outcome, arrivals, departures
from evenhand.snapshot import Snapshot
from evenhand_models import (
    Action,
    Assignment,
    Certificate,
    CertificateStatus,
    EnvyPair,
    Goal,
    GroupReport,
    Job,
    Placement,
)

ACTIONS = {
    Move.START: Action.START,
    Move.KEEP: Action.KEEP,
    Move.MIGRATE: Action.MIGRATE,
    Move.REPAIR: Action.MIGRATE,
    Move.RESIZE: Action.RESIZE,
    Move.PREEMPT: Action.PREEMPT,
    Move.WAIT: Action.WAIT,
}
MOST_ENVY_PAIRS = 100


def assignments(
    snapshot: Snapshot, outcome: Outcome, words: Mapping[int, Explanation]
) -> tuple[Assignment, ...]:
    """One assignment for every job that came in (rules A1, A2)."""
    after = _after(snapshot, outcome)
    return tuple(
        _assignment(snapshot, j, job, outcome.decisions.get(j), after.get(j, ()), words[j])
        for j, job in enumerate(snapshot.jobs)
    )


def _assignment(
    s: Snapshot, j: int, job: Job, d: Decision | None, after: tuple[str, ...], words: Explanation
) -> Assignment:
    if d is None:
        if s.infeasible[j]:
            return Assignment(job=job.id, action=Action.INFEASIBLE, reasons=words.reasons)
        kind = next((int(s.node_type[n]) for n, _ in s.placement[j] if n >= 0), -1)
        return Assignment(
            job=job.id, action=Action.KEEP, gpus=job.placed_gpus, gpu_type=s.types[kind] if kind >= 0 else None,
            placement=job.placement, reasons=words.reasons,
        )  # fmt: skip
    runs = bool(d.places)
    held_type = d.gpu_type if runs else d.reserved_type
    until = None
    if s.budgeted[j] and s.contract_s[j] > 0 and runs:
        began = s.now if d.move in ARRIVALS else min(s.now, job.started_at or s.now)
        until = began + timedelta(seconds=int(s.contract_s[j]))
        until = until if until > s.now else None
    return Assignment(
        job=job.id,
        action=ACTIONS[d.move],
        gpus=d.gpus,
        gpu_type=s.types[held_type] if held_type >= 0 else None,
        placement=_placement(s, job, d),
        after=after,
        protected_until_at=until,
        requeue=bool(s.hit[j] or job.contract.resumable) if d.move is Move.PREEMPT else None,
        unallocated=bool(runs and s.live[j] and not s.budgeted[j]),
        earliest_start_at=words.earliest_start_at,
        cheapest_change=words.cheapest_change,
        reasons=words.reasons,
    )


def _placement(s: Snapshot, job: Job, d: Decision) -> tuple[Placement, ...]:
    if d.move is Move.KEEP:
        return job.placement
    return tuple(Placement(node=s.nodes[n].name, gpus=g) for n, g in d.places)


def _after(s: Snapshot, outcome: Outcome) -> dict[int, tuple[str, ...]]:
    """Who must have left first: an arrival that does not fit at once names every leaver of the node (rule A2)."""
    leavers: dict[int, list[int]] = defaultdict(list)
    comers: dict[int, list[tuple[int, int]]] = defaultdict(list)
    free = [int(r) for r in s.room]
    for j, parts in enumerate(s.placement):
        for n, gpus in parts:
            if n >= 0:
                free[n] -= gpus
                if s.terminating[j]:
                    leavers[n].append(j)
    for j in sorted(outcome.decisions, key=lambda j: (s.submitted_s[j], j)):
        d = outcome.decisions[j]
        before = dict(s.placement[j]) if s.running[j] else {}
        gone = before if d.move is Move.PREEMPT else departures(s, j, d)
        if d.move is Move.MIGRATE:
            gone = {n: g - dict(d.places).get(n, 0) for n, g in before.items() if g > dict(d.places).get(n, 0)}
        for n in gone:
            if n >= 0:
                leavers[n].append(j)
        for n, gpus in (arrivals(s, j, d) if d.places else {}).items():
            new = gpus - (before.get(n, 0) if d.move is Move.MIGRATE else 0)
            if new > 0:
                comers[n].append((j, new))
    named: dict[int, set[str]] = defaultdict(set)
    for n, coming in comers.items():
        for j, gpus in coming:
            if gpus <= free[n]:
                free[n] -= gpus
            else:
                named[j].update(s.jobs[k].id for k in leavers[n] if k != j)
    return {j: tuple(sorted(ids)) for j, ids in named.items()}


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
    allocated = [below(s, got.allocated[:, t]) for t in range(types)]
    spare = [below(s, got.unallocated[:, t]) for t in range(types)]
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
    for j, d in sorted(outcome.decisions.items()):
        reported = s.jobs[j].utilization
        if reported is not None and s.running[j] and d.places and s.group[j] >= 0:
            for c in s.tree.path[int(s.group[j])]:
                held[c] += int(s.held[j])
                used[c] += int(s.held[j]) * reported
    return {c: min(1.0, used[c] / held[c]) for c in held}


def pair_envy(target: Target, got: Standing) -> FloatArray:
    """v_i((e_i/e_l) X_l) - throughput of i, 0 or more, over floor_i; float [L, L], the envious first."""
    leaves, e = target.leaves, target.entitled
    found = np.zeros((len(leaves), len(leaves)))
    if not len(leaves):
        return found
    bundles = got.allocated[leaves].astype(np.float64)
    ratio = e[:, None] / e[None, :]
    left = np.repeat(target.cap[:, None].astype(np.float64), len(leaves), axis=1)
    best_first = np.argsort(-target.weights, axis=1, kind="stable")
    for kind in best_first.T:
        weight = np.take_along_axis(target.weights, kind[:, None], axis=1)
        taken = np.minimum(np.where(weight > 0, ratio * bundles[:, kind].T, 0.0), left)
        found += weight * taken
        left -= taken
    found = np.maximum(found - got.throughput[leaves][:, None], 0.0)
    np.fill_diagonal(found, 0.0)
    safe = np.where(target.floor > 0, target.floor, np.inf)
    return np.asarray(found / safe[:, None])


def envy_pairs(snapshot: Snapshot, target: Target, envy: FloatArray, forced: FloatArray) -> tuple[EnvyPair, ...]:
    """Pairs that envy by more than one gang, the worst first, split into what pins force and the rest."""
    ids = snapshot.tree.ids
    gangs = largest_gangs(snapshot)
    pairs = []
    for i, g in enumerate(target.leaves):
        gang = float(gangs[int(g)])
        if target.floor[i] <= 0:
            continue
        for k in np.flatnonzero(envy[i] > gang / target.floor[i] + 1e-9):
            share = min(float(envy[i, k]), float(forced[i, k] / target.floor[i]))
            pairs.append(
                EnvyPair(
                    group=ids[int(g)], envied=ids[int(target.leaves[k])], envy=float(envy[i, k]), forced_by_pins=share,
                    ours=float(envy[i, k]) - share,
                )  # fmt: skip
            )
    pairs.sort(key=lambda p: (-p.envy, p.group, p.envied))
    return tuple(pairs[:MOST_ENVY_PAIRS])


def certificate(
    snapshot: Snapshot,
    target: Target,
    got: Standing,
    goals: tuple[GoalValue, ...],
    status: CertificateStatus,
    bound: float | None,
    forced: FloatArray,
    *,
    cut_by_time: bool,
) -> Certificate:
    """What is proven about a plan (rule A4); `verified` is what the audit must confirm before it is served."""
    value = objective(goals)
    bound = None if bound is None else (value if status is CertificateStatus.OPTIMAL else max(bound, value))
    whole = target.throughput
    envy = pair_envy(target, got)
    slack = envy_of(target.values, target.x) if snapshot.policy.objective == "envy_free" else np.zeros((1, 1))
    return Certificate(
        status=status,
        cut_by_time=cut_by_time,
        goals=tuple(Goal(name=g.name, value=g.value, unit=g.unit, weight=g.weight) for g in goals),
        objective=value,
        bound=bound,
        gap=(bound - value) / whole if bound is not None and whole > 0 else None,
        target_throughput=whole,
        capacity_ok=True,
        protection_ok=True,
        gangs_ok=True,
        max_envy=float(envy.max(initial=0.0)),
        envy=envy_pairs(snapshot, target, envy, forced),
        floor_slack=float(np.maximum(target.floor - target.value, 0.0).sum()),
        target_envy_slack=float(slack.sum()),
        throughput=float(got.throughput.sum()),
        upper_bound=target.upper_bound,
        equal_split=target.equal_split,
        max_min=target.max_min,
        verified=True,
    )
