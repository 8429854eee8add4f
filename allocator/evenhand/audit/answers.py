"""A1 and what each answer must say: one for every job, of a kind its state allows, and complete."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from datetime import datetime, timedelta
from itertools import chain

from evenhand.audit.jobs import JobReading
from evenhand.audit.reading import Reading
from evenhand.audit.report import Finding
from evenhand_models import Action, Assignment, Plan, ReasonCode

PENDING_MAY = frozenset({Action.START, Action.WAIT, Action.INFEASIBLE})
RUNNING_MAY = frozenset({Action.KEEP, Action.MIGRATE, Action.RESIZE, Action.PREEMPT})
TERMINATING_MAY = frozenset({Action.KEEP})
"""What may happen to a job in each state (S11)."""
WAIT, INFEASIBLE, PREEMPT = Action.WAIT, Action.INFEASIBLE, Action.PREEMPT  # looked up for every job otherwise
START, MIGRATE = Action.START, Action.MIGRATE
GOING_ON = frozenset({Action.KEEP, Action.RESIZE})
"""Actions with which a job goes on where it is."""
HOLDING = frozenset({Action.START, Action.KEEP, Action.MIGRATE, Action.RESIZE})
"""Actions after which a job holds GPUs."""


def telling(reading: Reading, plan: Plan) -> list[Assignment]:
    """Return the answers that say more than that a job that may wait does, for reasons, and is given nothing."""
    waiting = reading.waiting
    return [
        answer
        for answer in plan.assignments
        if answer.action is not WAIT
        or answer.job not in waiting
        or answer.gpus
        or answer.placement
        or answer.gpu_type is not None
        or answer.requeue is not None
        or answer.protected_until_at is not None
        or not answer.reasons
    ]


def check_answers(reading: Reading, plan: Plan, told: Sequence[Assignment]) -> Iterator[Finding]:
    """Check that there is one answer for every job, in order, and that each of those told makes sense (A1, S4, S5)."""
    ids = [answer.job for answer in plan.assignments]
    if plan.now != reading.state.now:
        yield Finding("A1", f"the plan is for {plan.now}, the state for {reading.state.now}.")
    if ids != list(reading.jobs):
        yield from _check_listed(reading, ids)
    for answer in told:
        if (job := reading.jobs.get(answer.job)) is not None:
            yield from _check_action(job, answer)
            yield from _check_holding(reading, job, answer)


def _check_listed(reading: Reading, ids: list[str]) -> Iterator[Finding]:
    """Check that there is one answer for every job, in the order of ids (A1)."""
    if ids != sorted(ids):
        yield Finding("A1", "the assignments are not in the order of their jobs' ids.")
    for job, count in Counter(ids).items():
        if count > 1:
            yield Finding("A1", f"job {job!r} has {count} assignments.", (job,))
        if job not in reading.jobs:
            yield Finding("A1", f"there is an assignment for {job!r}, which is no job of the state.", (job,))
    for job in sorted(reading.jobs.keys() - set(ids)):
        yield Finding("A1", f"job {job!r} has no assignment.", (job,))


def _check_action(job: JobReading, answer: Assignment) -> list[Finding]:
    """Check that the job's state allows the action, and that `infeasible` is said where S4 or S5 says so."""
    refs, action, found = (answer.job,), answer.action, []
    if action not in (PENDING_MAY if job.pending else RUNNING_MAY if job.running else TERMINATING_MAY):
        found.append(Finding("A1", f"job {answer.job!r} is {job.job.state} and cannot {action}.", refs))
    if job.infeasible and action is not INFEASIBLE:
        rule, why = ("S4", "its group is unknown") if job.group is None else ("S5", "it fits no type")
        found.append(Finding(rule, f"job {answer.job!r} is answered with {action}, but is infeasible: {why}.", refs))
    if action is INFEASIBLE and not job.infeasible:
        fits = ", ".join(job.fits)
        found.append(Finding("S5", f"job {answer.job!r} is answered with infeasible, but fits {fits}.", refs))
    requeue = (job.hit or job.job.contract.resumable) if action is PREEMPT else None
    if answer.requeue is not requeue:
        found.append(Finding("A1", f"job {answer.job!r} has requeue {answer.requeue}, should be {requeue}.", refs))
    return found


def _check_holding(reading: Reading, job: JobReading, answer: Assignment) -> list[Finding]:
    """Check placement, sum, type and flags of one answer against each other."""
    refs, type_of, found = (answer.job,), reading.type_of, []
    if answer.action not in HOLDING:
        typed = answer.gpu_type is not None
        reserved = typed and answer.action is WAIT and ReasonCode.RESERVED_ENDING in _codes(answer)
        if answer.gpus or answer.placement or (typed and not reserved):
            message = f"job {answer.job!r} is answered with {answer.action} and yet given GPUs."
            found.append(Finding("A1", message, refs))
        return found
    placed = [part.node for part in answer.placement]
    if len(placed) > 1 and len(set(placed)) < len(placed):
        found.append(Finding("A1", f"job {answer.job!r} names a node more than once in its placement.", refs))
    if answer.gpus != sum([part.gpus for part in answer.placement]) or not placed:
        message = f"job {answer.job!r} is given {answer.gpus} GPUs, which its placement does not sum to."
        found.append(Finding("G1", message, refs))
    kinds = {type_of[node] for node in placed if node in type_of}
    if len(kinds) > 1:
        found.append(
            Finding("G2", f"job {answer.job!r} stands on types {', '.join(sorted(kinds))}; a job has one.", refs)
        )
    elif kinds and answer.gpu_type not in kinds:
        message = f"job {answer.job!r} says type {answer.gpu_type!r}, but stands on {kinds.pop()!r}."
        found.append(Finding("G2", message, refs))
    for node in placed:
        if node in type_of or node in job.held:
            continue
        message = f"job {answer.job!r} is placed on {node!r}, which is no node."
        found.append(Finding("A1", message, (answer.job, node)))
    if job.live and answer.unallocated is job.budgeted:
        said = "unallocated" if answer.unallocated else "allocated"
        found.append(Finding("S8", f"job {answer.job!r} is answered as {said} use, but is not.", refs))
    return found


def _codes(answer: Assignment) -> set[ReasonCode]:
    """Return the codes of an answer's reasons."""
    return {reason.code for reason in answer.reasons}


def check_reasons(reading: Reading, plan: Plan, told: Sequence[Assignment], names: Set[str]) -> Iterator[Finding]:
    """Check that every answer says why, and that what it names is one of `names_in` the state (A1, S11)."""
    given = list(chain.from_iterable([answer.reasons for answer in plan.assignments]))
    apart = dict(zip(map(id, given), given, strict=True))  # most are given to many
    unknown = set(chain.from_iterable([reason.refs for reason in apart.values()])) - names
    for answer in plan.assignments if unknown else told:
        if answer.action is WAIT and answer.reasons and not unknown:
            continue
        refs = (answer.job,)
        if not answer.reasons:
            yield Finding("A1", f"job {answer.job!r} is answered with {answer.action} without a reason.", refs)
        for reason in answer.reasons if unknown else ():
            if not unknown.isdisjoint(reason.refs):
                listed = ", ".join(repr(name) for name in reason.refs if name in unknown)
                yield Finding("A1", f"a reason of job {answer.job!r} names {listed}, unknown.", refs)
        if answer.action is WAIT:
            continue
        job = reading.jobs[answer.job]
        if job.terminating and ReasonCode.TERMINATING not in _codes(answer):
            yield Finding("S11", f"job {answer.job!r} is terminating, which its reasons do not say.", refs)
        stopped = answer.action is PREEMPT and not job.hit
        if stopped and not _codes(answer) & {ReasonCode.PREEMPTED_FOR, ReasonCode.LIMIT_LOWERED}:
            yield Finding("R1", f"job {answer.job!r} is preempted, and no reason says for whom.", refs)
    for entry in plan.calendar:
        if entry.job not in reading.jobs or any(node not in reading.nodes for node in entry.nodes):
            yield Finding("A1", f"the calendar of job {entry.job!r} names what is not there.", (entry.job,))


def names_in(reading: Reading) -> set[str]:
    """Return every id a reason may name, those the state names without listing them included."""
    return {*reading.jobs, *reading.nodes, *reading.tree.order, *reading.types, *reading.named}


def check_protection_dates(reading: Reading, told: Iterable[Assignment]) -> Iterator[Finding]:
    """Check every `protected_until_at` (S2, S10): the start, or the last while it protects, plus `c_j`."""
    now = reading.state.now
    starts: dict[int, datetime] = {}
    for answer in told:
        if answer.action is WAIT and answer.protected_until_at is None:
            continue
        job = reading.jobs[answer.job]
        if job.orphan:
            continue
        expected = _protected_until(job, answer.action, now, starts)
        if answer.protected_until_at != expected:
            said = answer.protected_until_at
            message = f"job {answer.job!r} is said to be protected until {said}, should be {expected}."
            yield Finding("P1", message, (answer.job,))


def _protected_until(job: JobReading, action: Action, now: datetime, starts: dict[int, datetime]) -> datetime | None:
    """Return when the protection of a job ends under an action, None if it has none; `starts` are ends found before."""
    length = job.length_s
    if not job.budgeted or length == 0:
        return None
    if action in GOING_ON:
        return job.ends_at if job.ends_at is not None and job.ends_at > now else None
    if action is not START and action is not MIGRATE:
        return None
    if length not in starts:
        starts[length] = now + timedelta(seconds=length)
    return starts[length]
