"""Would an added job run, when, and who would go: `allocate` itself, now and in the rounds that would follow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from evenhand.explain.words import gpus, named, stamp
from evenhand.rounds import allocate
from evenhand.whatif.forward import later_rounds
from evenhand_models import Action, Assignment, ClusterState, InvalidInput, Job, Plan, Policy, ReasonCode, state_hash
from evenhand_models.whatif import (
    ChangedJob,
    GoingJob,
    StartBasis,
    StartForecast,
    WhatIfStart,
    added_errors,
    as_jobs,
)

ROUNDS = 24
"""Later rounds at most, for each of the two ways to look ahead."""
NOTE = (
    "A forecast, not a reservation: nothing is held for the job and nothing was changed. It holds if no other "
    "job comes, no node is lost and shares stay as they are."
)
GOES = (Action.PREEMPT, Action.MIGRATE, Action.RESIZE)


@dataclass(frozen=True)
class _Start:
    """The round that starts an added job."""

    basis: StartBasis
    state: ClusterState
    plan: Plan


def what_if_start(
    state: ClusterState,
    add: Sequence[Job],
    policy: Policy | None = None,
    *,
    rounds: int = ROUNDS,
    progress: Callable[[int], None] | None = None,
) -> WhatIfStart:
    """Say of jobs that do not exist whether they would run if they came now, when, and who would go.

    The earliest start is the bound the plan gives: enough GPUs out of protection or ended as expected. The
    latest is found by deciding the rounds that would follow: first with no job ending by itself, so that only
    contracts end; if that starts it not within `max_protection_s`, with jobs ending when they are expected to.

    Parameters
    ----------
    state : the cluster; it is not changed.
    add : jobs to add, pending, with ids of their own.
    policy : rules of the rounds; defaults if left out.
    rounds : most later rounds, each as long as `policy.time_limit_s` allows; 0: look at this round only.
    progress : called after each round with the number of rounds decided so far.

    Raises
    ------
    InvalidInput
        If a job cannot be added to the state; pointers are ``/add/...``.
    AuditFailed
        If a round could not be decided: a defect.
    """
    policy = policy or Policy()
    if errors := added_errors(state, enumerate(add), policy.max_protection_s):
        raise InvalidInput(errors)
    new = as_jobs(state, add)
    with_added = state.model_copy(update={"jobs": (*state.jobs, *new)})
    count = _Count(progress)
    plan = count.after(allocate(with_added, policy))
    starts = _look_ahead(with_added, plan, policy, {job.id for job in new}, rounds, count)
    answers = {a.job: a for a in plan.assignments}
    now = [job for job, start in starts.items() if start.basis is StartBasis.NOW]
    changes = _changes(state, count.after(allocate(state, policy)), answers) if now else ()
    until = state.now + timedelta(seconds=policy.max_protection_s)
    forecasts = [_forecast(answers[job.id], starts.get(job.id), plan, until) for job in new]
    return WhatIfStart(
        now=state.now,
        note=NOTE,
        state_hash=state_hash(state),
        jobs=tuple(sorted(forecasts, key=lambda forecast: forecast.job)),
        changes=changes,
        rounds=count.rounds,
    )


class _Count:
    """How many rounds were decided."""

    def __init__(self, progress: Callable[[int], None] | None) -> None:
        self.rounds = 0
        self._progress = progress

    def after(self, plan: Plan) -> Plan:
        """Count a round."""
        self.rounds += 1
        if self._progress is not None:
            self._progress(self.rounds)
        return plan


def _look_ahead(
    state: ClusterState, plan: Plan, policy: Policy, wanted: set[str], rounds: int, count: _Count
) -> dict[str, _Start]:
    """Find the round that starts each added job, now or later."""
    starts = {job: _Start(StartBasis.NOW, state, plan) for job in _started(plan, wanted)}
    never = {a.job for a in plan.assignments if a.action is Action.INFEASIBLE}
    until = state.now + timedelta(seconds=policy.max_protection_s)
    for basis in (StartBasis.CONTRACTS, StartBasis.EXPECTED_ENDS):
        believed = basis is StartBasis.EXPECTED_ENDS
        left = wanted - never - set(starts)
        if not left or (believed and not any(job.expected_end_at for job in state.jobs)):
            break
        last = max((job.expected_end_at or until for job in state.jobs), default=until) if believed else until
        for later in later_rounds(state, plan, policy, ends_believed=believed, until=max(until, last), most=rounds):
            found = _started(count.after(later.plan), left - set(starts))
            starts |= {job: _Start(basis, later.state, later.plan) for job in found}
            if left <= set(starts):
                break
    return starts


def _started(plan: Plan, wanted: set[str]) -> list[str]:
    return [a.job for a in plan.assignments if a.job in wanted and a.action is Action.START]


def _forecast(answer: Assignment, start: _Start | None, plan: Plan, until: datetime) -> StartForecast:
    """Put what is known about one added job together."""
    promised = next((c.latest_start_at for c in plan.calendar if c.job == answer.job), None)
    earliest = plan.now if answer.action is Action.START else answer.earliest_start_at
    latest = None if start is None else start.plan.now
    basis = None if start is None else start.basis
    if promised is not None and (latest is None or promised < latest):
        latest, basis = promised, StartBasis.CALENDAR
    begins = None if start is None else next(a for a in start.plan.assignments if a.job == answer.job)
    going = () if start is None or begins is None else _going(start, begins)
    if earliest is not None and latest is not None:
        earliest = min(earliest, latest)
    return StartForecast(
        job=answer.job,
        action=answer.action,
        earliest_start_at=earliest,
        latest_start_at=latest,
        basis=basis,
        gpus=0 if begins is None else begins.gpus,
        gpu_type=None if begins is None else begins.gpu_type,
        placement=() if begins is None else begins.placement,
        would_go=going,
        reasons=answer.reasons,
        cheapest_change=answer.cheapest_change,
        summary=_summary(answer, (earliest, latest), basis, begins, going, until),
    )


def _going(start: _Start, begins: Assignment) -> tuple[GoingJob, ...]:
    """Jobs that leave in the round that starts it: those it waits for, and those that say they leave for it."""
    jobs = {job.id: job for job in start.state.jobs}
    found = []
    for a in start.plan.assignments:
        for_it = any(r.code is ReasonCode.PREEMPTED_FOR and begins.job in r.refs for r in a.reasons)
        if a.job in begins.after or (a.action in GOES and for_it):
            job = jobs[a.job]
            going = GoingJob(
                job=a.job, group=job.group, gpus=job.placed_gpus, action=a.action, requeue=a.requeue, reasons=a.reasons
            )
            found.append(going)
    return tuple(sorted(found, key=lambda going: going.job))


def _changes(state: ClusterState, without: Plan, answers: dict[str, Assignment]) -> tuple[ChangedJob, ...]:
    groups = {job.id: job.group for job in state.jobs}
    return tuple(
        ChangedJob(job=a.job, group=groups[a.job], without=a.action, with_added=answers[a.job].action)
        for a in without.assignments
        if a.action is not answers[a.job].action
    )


_RESTS_ON = {
    StartBasis.NOW: "",
    StartBasis.CALENDAR: ", as the plan's calendar promises",
    StartBasis.CONTRACTS: ", even if no job ends by itself",
    StartBasis.EXPECTED_ENDS: ", if jobs end when they are expected to",
}


def _summary(
    answer: Assignment,
    between: tuple[datetime | None, datetime | None],
    basis: StartBasis | None,
    begins: Assignment | None,
    going: tuple[GoingJob, ...],
    until: datetime,
) -> str:
    """The answer in a sentence or two."""
    earliest, latest = between
    if answer.action is Action.INFEASIBLE:
        return f"It could never run on this cluster. {answer.reasons[0].message}"
    first = "Waits now"
    if begins is not None and basis is StartBasis.NOW:
        first = f"Starts now on {gpus(begins.gpus, begins.gpu_type or '')}"
    elif latest is not None and basis is not None:
        bound = "" if earliest is None or earliest == latest else f"not before {stamp(earliest)} and "
        first += f"; {bound}by {stamp(latest)} at the latest{_RESTS_ON[basis]}"
    else:
        bound = "" if earliest is None else f"not before {stamp(earliest)}, and "
        first += f"; {bound}no start by {stamp(until)} could be shown"
    if going:
        owners = named("group", sorted({g.group for g in going}))
        first += f". {named('Job', [g.job for g in going])} of {owners} would go for it"
    if basis is not StartBasis.NOW and answer.reasons:
        first += f". {answer.reasons[0].message.rstrip('.')}"
    return first + "."
