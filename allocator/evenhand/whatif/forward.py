"""A state some time later, if nothing happens but what the plans of its rounds say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from evenhand.rounds import allocate
from evenhand_models import Action, Assignment, ClusterState, Job, JobState, Plan, Policy, Usage

LEAST_GAP_S = 60
GAP_SHARE = 0.25
"""The next round is decided at an event, but no sooner than this after the last, or this share of the time since now."""
ARRIVES = (Action.START, Action.MIGRATE)


@dataclass(frozen=True)
class LaterRound:
    """A round of the future: the state it was decided on, and its plan."""

    state: ClusterState
    plan: Plan


def later_rounds(
    state: ClusterState, plan: Plan, policy: Policy, *, ends_believed: bool, until: datetime, most: int
) -> Iterator[LaterRound]:
    """Decide the rounds that follow a plan, at ends of protection and, if believed, at expected ends of jobs.

    Parameters
    ----------
    state, plan : the state now, and the plan that answers it.
    ends_believed : whether jobs end when they are expected to; if not, no job ends by itself.
    until : no round comes after it.
    most : most rounds.
    """
    began = state.now
    for _ in range(most):
        elapsed_s = (state.now - began).total_seconds()
        gap = timedelta(seconds=max(LEAST_GAP_S if elapsed_s else 0, GAP_SHARE * elapsed_s))
        at = next_event(state, plan, gap, ends_believed=ends_believed)
        if at is None or at > until:
            return
        state = state_later(state, plan, at, ends_believed=ends_believed)
        plan = allocate(state, policy)
        yield LaterRound(state, plan)


def next_event(state: ClusterState, plan: Plan, gap: timedelta, *, ends_believed: bool) -> datetime | None:
    """The first end of a protection or a job that is at least `gap` away, else the last there is; None: there is none."""
    found = {a.protected_until_at for a in plan.assignments if a.gpus and a.protected_until_at is not None}
    if ends_believed:
        runs = {a.job for a in plan.assignments if a.gpus}
        found |= {job.expected_end_at for job in state.jobs if job.id in runs and job.expected_end_at is not None}
    ahead = sorted(at for at in found if at > state.now)
    return next((at for at in ahead if at - state.now >= gap), ahead[-1] if ahead else None)


def state_later(state: ClusterState, plan: Plan, at: datetime, *, ends_believed: bool) -> ClusterState:
    """The state at `at` once the plan is applied at once and time has passed.

    Terminating jobs are gone, usage has grown by what was charged meanwhile and, with a half-life, decayed;
    in a sliding window nothing is forgotten, because a state does not say when its usage was.
    """
    answers = {a.job: a for a in plan.assignments}
    jobs = []
    for job in state.jobs:
        applied = _applied(state, job, answers[job.id])
        if applied is None:
            continue
        end = applied.expected_end_at
        if end is not None and end <= at:
            if ends_believed and applied.state is JobState.RUNNING:
                continue
            applied = applied.model_copy(update={"expected_end_at": None})  # it came and went
        jobs.append(applied)
    usage = _usage_later(state, plan, jobs, at)
    return ClusterState(
        now=at, gpu_types=state.gpu_types, nodes=state.nodes, groups=state.groups, usage=usage, jobs=tuple(jobs)
    )


def _applied(state: ClusterState, job: Job, answer: Assignment) -> Job | None:
    """The job once the plan is applied; None: it is gone."""
    if job.state is JobState.TERMINATING or (answer.action is Action.PREEMPT and not answer.requeue):
        return None
    if answer.action is Action.PREEMPT:
        gone = {"state": JobState.PENDING, "started_at": None, "placement": (), "checkpointed_at": None}
        return job.model_copy(update=gone)
    change: dict[str, object] = {}
    if answer.action in ARRIVES:
        change = {"state": JobState.RUNNING, "started_at": state.now, "checkpointed_at": None}
    if answer.action in {*ARRIVES, Action.RESIZE}:
        change["placement"] = answer.placement
    return job.model_copy(update=change) if change else job


def _usage_later(state: ClusterState, plan: Plan, jobs: list[Job], at: datetime) -> tuple[Usage, ...]:
    """What each group has used by `at`: before, and by jobs that run as allocated use since the plan."""
    hours = (at - state.now).total_seconds() / 3_600
    half_life_s = plan.policy.half_life_s
    kept = 1.0 if half_life_s is None else 0.5 ** (hours * 3_600 / half_life_s)
    rates = {kind.name: kind.charge_rate for kind in state.gpu_types}
    used = {entry.group: entry.charged_gpu_hours * kept for entry in state.usage or ()}
    charged = {a.job: a for a in plan.assignments if a.gpus and a.gpu_type is not None and not a.unallocated}
    for job in jobs:
        answer = charged.get(job.id)
        if answer is not None and job.state is JobState.RUNNING and job.contract.min_runtime_s > 0:
            rate = rates.get(answer.gpu_type or "", 1.0)
            used[job.group] = used.get(job.group, 0.0) + answer.gpus * rate * hours
    return tuple(Usage(group=group, charged_gpu_hours=amount) for group, amount in sorted(used.items()))
