"""What may happen to each crew: rules C1 (who may come where), G1 to G4, P1, R2 and O8."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from evenhand.crosscheck.crews import Crew
from evenhand.crosscheck.draft import STAYS, Act, Draft
from evenhand.crosscheck.facts import sizes
from evenhand.crosscheck.standing import may_stand, replace, stand


def add_ways(draft: Draft) -> None:
    """Add all ways with their places, and the rows that choose among them and keep nodes from overflowing."""
    ending = {crew.first.held_type for crew in draft.crews if draft.facts.ends_soon(crew.first)}
    for crew in draft.crews:
        if crew.first.pending:
            _arrive(draft, crew, Act.START)
            if crew.first.budgeted and _may_ever_hold(draft, crew):
                for kind in sorted(crew.first.full & ending):
                    draft.way(crew, Act.RESERVE, kind, crew.first.job.gpus)
        else:
            _go_on(draft, crew)
        _choose(draft, crew)
    _keep_capacity(draft)
    _keep_reservations(draft)


def _may_ever_hold(draft: Draft, crew: Crew) -> bool:
    """Say whether no limit on a job's way up is below its size (O8)."""
    reading, job = draft.facts.reading, crew.first
    limits = {group.id: group.max_gpus for group in reading.state.groups}
    bounds = (limits[group] for group in reading.tree.path(str(job.group)))
    return all(bound is None or bound >= job.job.gpus for bound in bounds)


def _arrive(draft: Draft, crew: Crew, act: Act) -> None:
    """Start or migrate: any size, on any type it fits, in its shape (C1, G1, G3)."""
    facts, job = draft.facts, crew.first
    for kind in job.fits:
        for value, nodes in facts.by_value(job, facts.eligible(job, kind)).items():
            room = {node: facts.reading.room[node] for node in nodes}
            ways = [
                draft.way(crew, act, kind, size, value)
                for size in sizes(job.job)
                if may_stand(crew, kind, size, facts.nodes_for(job, kind, size), room)
            ]
            if ways:
                stand(draft, ways, room, {})


def _go_on(draft: Draft, crew: Crew) -> None:
    """A job that runs: stay, grow, shrink, move, be repaired, stop (G4, P1, R2)."""
    facts, job = draft.facts, crew.first
    known = all(node in facts.reading.nodes for node in job.held)
    if known and job.held_type is not None:
        kept = draft.way(crew, Act.KEEP, job.held_type, job.held_gpus, stays=job.held_gpus, fixed=_fixed(crew))
        for node, gpus in job.held.items():
            draft.load(node, crew, [(kept.column, float(gpus))], arrives=False)
        if job.live and not job.hit and job.job.min_gpus is not None:
            _resize(draft, crew)
    if job.pinned:
        return
    draft.way(crew, Act.PREEMPT)
    if job.hit or (job.job.contract.resumable and facts.policy.allow_migration):
        _arrive(draft, crew, Act.MIGRATE)
    if job.hit and job.held_type in job.fits:
        _repair(draft, crew)


def _fixed(crew: Crew) -> bool:
    """Say whether a job can only be kept: pinned and with nothing to grow by (P1)."""
    job = crew.first
    return job.pinned and (job.orphan or job.job.min_gpus is None)


def _resize(draft: Draft, crew: Crew) -> None:
    """Grow where it stands and onto eligible nodes, or give back (G4)."""
    facts, job = draft.facts, crew.first
    kind = job.held_type or ""
    if kind not in job.fits:
        return
    grouped = facts.by_value(job, job.held)
    if len(grouped) != 1 or sum(map(len, grouped.values())) != len(job.held):
        return  # its nodes do not share the value they should: no size would have its shape
    value = next(iter(grouped))
    eligible = facts.by_value(job, facts.eligible(job, kind)).get(value, [])
    for act in (Act.GROW, Act.SHRINK):
        if act is Act.SHRINK and job.pinned:
            continue
        caps = dict(job.held)
        if act is Act.GROW:
            caps |= {node: max(job.held.get(node, 0), facts.reading.room[node]) for node in eligible}
        ways = [
            draft.way(crew, act, kind, size, value, min(size, job.held_gpus))
            for size in sizes(job.job)
            if (size > job.held_gpus if act is Act.GROW else size < job.held_gpus)
            and may_stand(crew, kind, size, facts.nodes_for(job, kind, size), caps)
        ]
        if ways:
            stand(draft, ways, caps, job.held if act is Act.GROW else {})


def _repair(draft: Draft, crew: Crew) -> None:
    """Keep the GPUs on healthy nodes and have the lost ones replaced (R2)."""
    facts, job = draft.facts, crew.first
    kind, worker = job.held_type or "", crew.first.job.worker_gpus
    healthy = {node: gpus for node, gpus in job.held.items() if node in facts.reading.healthy}
    if not healthy:
        return
    lost = Counter(gpus for node, gpus in job.held.items() if node not in healthy)
    if worker is not None:
        if sum(lost.elements()) % worker:
            return
        lost = Counter({worker: sum(lost.elements()) // worker})
    values = facts.by_value(job, facts.eligible(job, kind))
    kept = facts.by_value(job, healthy)
    if len(kept) != 1 or sum(map(len, kept.values())) != len(healthy):
        return
    value = next(iter(kept))
    values = {value: values.get(value, [])}
    for value, nodes in values.items():
        free = [node for node in nodes if worker is not None or node not in healthy]
        room = {node: facts.reading.room[node] for node in free}
        if not _replaceable(lost, room, apart=worker is None):
            continue
        way = draft.way(crew, Act.REPAIR, kind, job.held_gpus, value, sum(healthy.values()))
        for node, gpus in healthy.items():
            draft.load(node, crew, [(way.column, float(gpus))], arrives=False)
        replace(draft, way, lost, room)


def _replaceable(lost: Mapping[int, int], room: Mapping[str, int], *, apart: bool) -> bool:
    """Say whether nodes, were they empty, could take each unit often enough."""
    return all(
        sum(min(1, gpus // unit) if apart else gpus // unit for gpus in room.values()) >= count
        for unit, count in lost.items()
    )


def _choose(draft: Draft, crew: Crew) -> None:
    """G1: one way a job; a pending one may also wait."""
    terms = [(way.column, 1.0) for way in draft.of(crew)]
    count = float(crew.count)
    draft.sheet.row(f"G1_job_{crew.name}", terms, -float("inf") if crew.first.pending else count, count)


def _keep_capacity(draft: Draft) -> None:
    """C1: no node over its room."""
    for node, loads in sorted(draft.loads.items()):
        terms = [term for load in loads for term in load.terms]
        draft.sheet.row(f"C1_node_{node}", terms, high=float(draft.facts.reading.room[node]))


def _keep_reservations(draft: Draft) -> None:
    """O8: on each type, no more reserved than ends soon where it is kept or resized."""
    for kind in draft.facts.reading.types:
        reserved = [(w.column, float(w.gpus)) for w in draft.ways if w.act is Act.RESERVE and w.kind == kind]
        ends = [
            (way.column, -float(way.gpus))
            for way in draft.ways
            if way.act in STAYS and way.kind == kind and draft.facts.ends_soon(way.job)
        ]
        if reserved:
            draft.sheet.row(f"O8_type_{kind}", reserved + ends, high=0.0)
