"""C1, G1, G3, G4, P1, R2: where jobs stand once the plan is applied, and whether they may."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from datetime import timedelta

from evenhand.audit.decisions import repaired
from evenhand.audit.jobs import JobReading
from evenhand.audit.outcomes import Outcome
from evenhand.audit.reading import Reading
from evenhand.audit.report import Finding
from evenhand.audit.shape import carries, legal_size
from evenhand_models import Action

KEEP, MIGRATE, RESIZE = (
    Action.KEEP,
    Action.MIGRATE,
    Action.RESIZE,
)  # to look an enum's member up for every job takes long
PLACED_ANEW = frozenset({Action.START, Action.MIGRATE, Action.RESIZE})
"""Actions that change where a job stands."""


def check_capacity(reading: Reading, listed: Sequence[Outcome]) -> Iterator[Finding]:
    """C1: no node over its room, and arrivals only on eligible nodes."""
    load: dict[str, int] = {}
    for outcome in listed:
        for name, gpus in outcome.after.items():
            load[name] = load.get(name, 0) + gpus
    for name in sorted([name for name, gpus in load.items() if gpus > reading.room.get(name, 0)]):
        room = reading.room.get(name, 0)
        yield Finding("C1", f"node {name!r} is to hold {load[name]} GPUs, but has room for {room}.", (name,))
    for outcome in listed:
        if not outcome.arrives and outcome.action is not MIGRATE:
            continue
        moves = outcome.action is MIGRATE and repaired(reading, outcome.job, outcome.after) is None
        kinds = outcome.job.fits
        if outcome.job.held_type is not None and not moves:
            kinds = (*kinds, outcome.job.held_type)  # it may go on where it is, though it would not fit
        for name in outcome.after if moves else outcome.arrives:
            if (why := _not_eligible(reading, outcome.job, kinds, name)) is not None:
                job = outcome.job.job.id
                yield Finding("C1", f"job {job!r} comes to node {name!r}, which {why}.", (job, name))


def _not_eligible(reading: Reading, job: JobReading, kinds: Container[str], name: str) -> str | None:
    """Say why a node may not take a job, None if it may."""
    node = reading.nodes.get(name)
    if node is None or name not in reading.open:
        return "takes no new work"
    if node.gpu_type not in kinds:
        return f"has type {node.gpu_type!r}, which the job does not fit"
    if not carries(node, job.job):
        return "lacks a label the job requires"
    ends = node.available_until_at
    if ends is not None and job.job.contract.min_runtime_s > 0:
        promised = reading.state.now + timedelta(seconds=job.length_s)
        return f"goes into maintenance at {ends}, before its contract ends" if promised > ends else None
    return None


def check_gangs(reading: Reading, listed: Sequence[Outcome]) -> Iterator[Finding]:
    """G1, G3, G4: sizes, shapes and resizes."""
    for outcome in listed:
        if outcome.action not in PLACED_ANEW:
            continue
        job, name, gpus = outcome.job, outcome.job.job.id, sum(outcome.after.values())
        refs = (name,)
        if not legal_size(job.job, gpus):
            yield Finding("G1", f"job {name!r} is given {gpus} GPUs, no size it may have.", refs)
        shaped = reading.shapes.has_shape(job.job, outcome.answer.gpu_type or "", outcome.after)
        if outcome.action is RESIZE:
            if not shaped:
                yield Finding("G4", f"job {name!r} is resized to a shape it did not ask for.", refs)
            if bool(outcome.arrives) == bool(outcome.leaves):
                yield Finding("G4", f"job {name!r} is resized, but neither only grows nor only shrinks.", refs)
            if job.hit:
                yield Finding("G4", f"job {name!r} lost a node and is resized in place.", refs)
            if job.job.min_gpus is None:
                yield Finding("G4", f"job {name!r} is resized, but is not elastic.", refs)
            continue
        mended = outcome.action is MIGRATE and repaired(reading, job, outcome.after) is not None
        if not shaped and not (mended and reading.shapes.shares_value(job.job, outcome.after)):
            yield Finding("G3", f"job {name!r} stands in a shape it did not ask for.", refs)


def check_stays(reading: Reading, listed: Sequence[Outcome]) -> Iterator[Finding]:
    """P1 and R2: protected jobs stay, kept jobs do not move, and only those move that may."""
    for outcome in listed:
        job, action, name = outcome.job, outcome.action, outcome.answer.job
        if action is KEEP and not _stands_still(outcome):
            rule = "P1" if job.pinned else "S11" if job.terminating else "R2"
            yield Finding(rule, f"job {name!r} is kept, but not where it was.", (name,))
        if job.pinned and action is not KEEP and action is not RESIZE:
            yield Finding("P1", f"job {name!r} is protected, but the plan says {action}.", (name,))
        if job.pinned and action is RESIZE and (outcome.leaves or job.orphan):
            yield Finding("P1", f"job {name!r} is protected, but loses GPUs.", (name,))
        if job.orphan and job.hit and action is not Action.PREEMPT:
            yield Finding("R2", f"job {name!r} is of no group and lost a node: it is to be requeued.", (name,))
        if action is MIGRATE:
            yield from _check_move(reading, outcome)


def _stands_still(outcome: Outcome) -> bool:
    """Say whether a kept job's placement is the one it had."""
    return {part.node: part.gpus for part in outcome.answer.placement} == outcome.job.held


def _check_move(reading: Reading, outcome: Outcome) -> Iterator[Finding]:
    """R2: who may move."""
    job, name = outcome.job, outcome.job.job.id
    if outcome.after == job.held:
        yield Finding("R2", f"job {name!r} is moved to where it is.", (name,))
    if job.hit or job.pinned:
        return
    if not reading.policy.allow_migration:
        yield Finding("R2", f"job {name!r} is moved, but the policy allows no migration.", (name,))
    if not job.job.contract.resumable:
        yield Finding("R2", f"job {name!r} is moved, but cannot resume.", (name,))
