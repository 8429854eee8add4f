"""What a plan says of every job: action, place, who leaves first, protection (rules A1, A2)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import timedelta

import numpy as np

from evenhand.explain import Explanation
from evenhand.outcome import ARRIVALS, Decision, Move, Outcome, exchanged
from evenhand.snapshot import Snapshot
from evenhand_models import Action, Assignment, Job, Placement
from evenhand_models.made import made

ACTIONS = {
    Move.START: Action.START,
    Move.KEEP: Action.KEEP,
    Move.MIGRATE: Action.MIGRATE,
    Move.REPAIR: Action.MIGRATE,
    Move.RESIZE: Action.RESIZE,
    Move.PREEMPT: Action.PREEMPT,
    Move.WAIT: Action.WAIT,
}


def assignments(snapshot: Snapshot, outcome: Outcome, words: Mapping[int, Explanation]) -> tuple[Assignment, ...]:
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
    budgeted = bool(s.budgeted[j])
    until = None
    if runs and budgeted and s.contract_s[j] > 0:
        began = s.now if d.move in ARRIVALS else min(s.now, job.started_at or s.now)
        until = began + timedelta(seconds=int(s.contract_s[j]))
        until = until if until > s.now else None
    return made(
        Assignment,
        {
            "job": job.id,
            "action": ACTIONS[d.move],
            "gpus": d.gpus,
            "gpu_type": s.types[held_type] if held_type >= 0 else None,
            "placement": _placement(s, job, d),
            "after": after,
            "protected_until_at": until,
            "requeue": bool(s.hit[j] or job.contract.resumable) if d.move is Move.PREEMPT else None,
            "unallocated": bool(runs and not budgeted and s.live[j]),
            "earliest_start_at": words.earliest_start_at,
            "cheapest_change": words.cheapest_change,
            "reasons": words.reasons,
        },
    )


def _placement(s: Snapshot, job: Job, d: Decision) -> tuple[Placement, ...]:
    if d.move is Move.KEEP:
        return job.placement
    return tuple(made(Placement, {"node": s.nodes[n].name, "gpus": g}) for n, g in d.places)


def _after(s: Snapshot, outcome: Outcome) -> dict[int, tuple[str, ...]]:
    """Who must have left first: an arrival that does not fit at once names every leaver of the node (rule A2)."""
    leavers: dict[int, list[int]] = defaultdict(list)
    comers: dict[int, list[tuple[int, int]]] = defaultdict(list)
    listed = s.stands.node >= 0
    held = np.bincount(s.stands.node[listed], s.stands.gpus[listed], len(s.nodes)).astype(np.int64)
    free: list[int] = (s.room - held).tolist()
    for j in np.flatnonzero(s.terminating).tolist():
        for n, _ in s.placement[j]:
            if n >= 0:
                leavers[n].append(j)
    changed = outcome.table.job[~outcome.table.among(Move.KEEP, Move.WAIT)]
    for j in changed[np.lexsort((changed, s.submitted_s[changed]))].tolist():
        gains, losses = exchanged(s, j, outcome.decisions[j])
        for n in losses:
            leavers[n].append(j)
        for n, gpus in gains.items():
            comers[n].append((j, gpus))
    named: dict[int, set[str]] = defaultdict(set)
    for n, coming in comers.items():
        for j, gpus in coming:
            if gpus <= free[n]:
                free[n] -= gpus
            else:
                named[j].update(s.jobs[k].id for k in leavers[n] if k != j)
    return {j: tuple(sorted(ids)) for j, ids in named.items()}
