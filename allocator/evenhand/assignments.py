"""What a plan says of every job: action, place, who leaves first, protection (rules A1, A2)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta

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
    after, decisions = _after(snapshot, outcome), outcome.decisions
    wait, waits = Move.WAIT, _waits(snapshot)
    found = []
    for j, name in enumerate(snapshot.ids):  # most jobs wait, and of them their name is all that is asked
        d, said = decisions.get(j), words[j]
        if d is not None and d.move is wait:
            fields = waits[d.reserved_type].copy()
            fields["job"] = name
            fields["reasons"], fields["earliest_start_at"], fields["cheapest_change"] = said
            found.append(made(Assignment, fields))
        elif d is not None:
            found.append(_decided(snapshot, j, snapshot.jobs[j], d, after.get(j, ()), said))
        else:
            found.append(_undecided(snapshot, j, snapshot.jobs[j], said))
    return tuple(found)


def _waits(snapshot: Snapshot) -> list[dict[str, object]]:
    """The fields of waiting jobs, but for what is said of each, by the type on which they are reserved; -1 is the last."""
    return [_fields("", Action.WAIT, Explanation(()), gpu_type=kind) for kind in (*snapshot.types, None)]


def _fields(
    job: str,
    action: Action,
    words: Explanation,
    *,
    gpus: int = 0,
    gpu_type: str | None = None,
    placement: tuple[Placement, ...] = (),
    after: tuple[str, ...] = (),
    until: datetime | None = None,
    requeue: bool | None = None,
    unallocated: bool = False,
) -> dict[str, object]:
    return {
        "job": job,
        "action": action,
        "gpus": gpus,
        "gpu_type": gpu_type,
        "placement": placement,
        "after": after,
        "protected_until_at": until,
        "requeue": requeue,
        "unallocated": unallocated,
        "earliest_start_at": words.earliest_start_at,
        "cheapest_change": words.cheapest_change,
        "reasons": words.reasons,
    }


def _undecided(s: Snapshot, j: int, job: Job, words: Explanation) -> Assignment:
    """A job that no round decides about: it can never run, or is on its way out."""
    if s.infeasible[j]:
        return made(Assignment, _fields(job.id, Action.INFEASIBLE, words))
    kind = next((s.types[s.node_type[n]] for n, _ in s.placement[j] if n >= 0), None)
    fields = _fields(job.id, Action.KEEP, words, gpus=job.placed_gpus, gpu_type=kind, placement=job.placement)
    return made(Assignment, fields)


def _decided(s: Snapshot, j: int, job: Job, d: Decision, after: tuple[str, ...], words: Explanation) -> Assignment:
    runs = bool(d.places)
    held_type = d.gpu_type if runs else d.reserved_type
    budgeted = bool(s.budgeted[j])
    until = None
    if runs and budgeted and s.contract_s[j] > 0:
        began = s.now if d.move in ARRIVALS else min(s.now, job.started_at or s.now)
        until = began + timedelta(seconds=int(s.contract_s[j]))
        until = until if until > s.now else None
    fields = _fields(
        job.id,
        ACTIONS[d.move],
        words,
        gpus=d.gpus,
        gpu_type=s.types[held_type] if held_type >= 0 else None,
        placement=_placement(s, job, d),
        after=after,
        until=until,
        requeue=bool(s.hit[j] or job.contract.resumable) if d.move is Move.PREEMPT else None,
        unallocated=bool(runs and not budgeted and s.live[j]),
    )
    return made(Assignment, fields)


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
