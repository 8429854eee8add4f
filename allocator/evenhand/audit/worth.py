"""O: what a set of decisions is worth, goal by goal, evaluated exactly as the rules say.

Goals have the values and weights of A4; the objective is their weighted sum, in GPUs at their best type for
`lookahead_s`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import fsum

import numpy as np

from evenhand.audit.decisions import Choice, Decisions
from evenhand.audit.dues import Dues
from evenhand.audit.jobs import JobReading
from evenhand.audit.numbers import SIXTEEN, sixteenths, sixteenths_held
from evenhand.audit.reading import MILLI, Reading
from evenhand.audit.target import Target
from evenhand_models import Action

GOALS = ("guarantees", "inner_levels", "leaves", "envy", "order", "work", "least_change", "unallocated_use")
"""The goals in rank order (A4)."""
START, KEEP, MIGRATE = Action.START, Action.KEEP, Action.MIGRATE  # to look an enum's member up for every job takes long
RESIZE, PREEMPT = Action.RESIZE, Action.PREEMPT
RUNS = frozenset({START, KEEP, MIGRATE, RESIZE})
"""Actions after which a job runs."""
Taken = tuple[JobReading, Choice]
"""A job, and what happens to it."""


@dataclass(frozen=True, slots=True)
class Worth:
    """What decisions are worth.

    Attributes
    ----------
    goals : mapping of str to float
        Value of each goal, in rank order (A4).
    weights : mapping of str to float
        Weight of one unit of each goal in the objective (A4).
    """

    goals: Mapping[str, float]
    weights: Mapping[str, float]

    @property
    def total(self) -> float:
        """The objective."""
        return fsum(value * self.weights[name] for name, value in self.goals.items())


@dataclass(frozen=True, slots=True)
class Tally:
    """What groups hold under a set of decisions, their budgeted jobs only; own jobs, nothing from below.

    Attributes
    ----------
    held, used : mapping of str to int
        Charged GPUs and throughput by group, reservations included, gang by gang in whole sixteenths (O).
    throughput : mapping of str to int
        Throughput by group, reservations included, thousandths (E1).
    runs : mapping of str to mapping of str to int
        GPUs that run by group and type, reservations not included: `X_l`.
    running : mapping of str to int
        Throughput by group, reservations not included, thousandths.
    """

    held: Mapping[str, int]
    used: Mapping[str, int]
    throughput: Mapping[str, int]
    runs: Mapping[str, Mapping[str, int]]
    running: Mapping[str, int]


def tally(reading: Reading, decisions: Decisions) -> Tally:
    """Count what the decisions give to each group's budgeted jobs."""
    charge = reading.charge
    held: dict[str, int] = {}
    used: dict[str, int] = {}
    throughput: dict[str, int] = {}
    running: dict[str, int] = {}
    runs: dict[str, dict[str, int]] = {group: {} for group in reading.members}
    counted: list[tuple[JobReading, str, int]] = []
    for job, choice in decisions.taken(reading):
        kind, gpus = choice.gpu_type, choice.gpus
        if job.budgeted and choice.action in RUNS and kind is not None:
            group = str(job.group)
            runs[group][kind] = runs[group].get(kind, 0) + gpus
            running[group] = running.get(group, 0) + gpus * job.rates.get(kind, 0)
            counted.append((job, kind, gpus))
    for name, kind in decisions.reserved.items():
        job = reading.jobs[name]
        choice = decisions.of(job)
        if job.budgeted and (choice.action not in RUNS or choice.gpu_type is None):
            counted.append((job, kind, job.job.gpus))
    for job, kind, gpus in counted:
        group, reached = str(job.group), gpus * job.rates.get(kind, 0)
        held[group] = held.get(group, 0) + sixteenths_held(gpus * charge[kind])
        used[group] = used.get(group, 0) + sixteenths_held(reached)
        throughput[group] = throughput.get(group, 0) + reached
    return Tally(held, used, throughput, runs, running)


def worth(reading: Reading, dues: Dues, target: Target, decisions: Decisions, counted: Tally | None = None) -> Worth:
    """Evaluate the O rules for a set of decisions, legal or not; `counted` is their tally, if it is known."""
    counted = tally(reading, decisions) if counted is None else counted
    below = _below(reading, counted.held)
    taken = decisions.taken(reading)
    order, work, change = _by_jobs(reading, [one for one in taken if one[0].budgeted])
    use, brought, cost = _by_jobs(reading, [one for one in taken if not one[0].budgeted])
    values = (
        _guarantees(reading, dues, below),
        _inner_levels(reading, dues, below),
        _leaves(reading, dues, target, counted, decisions),
        envy_excess(reading, target, counted),
        order + _handover(reading, taken),
        work,
        change,
        use + brought - cost,
    )
    epsilon = 1 / (64 * reading.gpus) if reading.gpus else 0.0
    weights = (-1.0, -1.0, -1.0, -1 / 16, 1.0, 1.0, -1.0, epsilon)
    return Worth(dict(zip(GOALS, values, strict=True)), dict(zip(GOALS, weights, strict=True)))


def _below(reading: Reading, own: Mapping[str, int]) -> dict[str, int]:
    """Sum what groups hold up the tree."""
    below = {group: own.get(group, 0) for group in reading.tree.order}
    for group in reversed(reading.tree.order):
        if (above := reading.tree.parent[group]) is not None:
            below[above] += below[group]
    return below


def _guarantees(reading: Reading, dues: Dues, held: Mapping[str, int]) -> float:
    """O1: what is missing of guarantees."""
    short = sum(
        max(0, within - held[group]) for group, within in dues.within_guarantee.items() if dues.guarantee[group] > 0
    )
    return 600.0 * (1 << min(10, reading.tree.top)) * short / SIXTEEN


def _inner_levels(reading: Reading, dues: Dues, held: Mapping[str, int]) -> float:
    """O2: what is missing at groups with child groups."""
    short = sum(
        dues.claim.get(group, 1.0) * (max(0, within - held[group]) << min(10, reading.tree.height[group]))
        for group, within in dues.within.items()
    )
    return short / SIXTEEN


def _leaves(reading: Reading, dues: Dues, target: Target, counted: Tally, decisions: Decisions) -> float:
    """O3: what leaves miss of their aims, and owed gangs that neither run nor are reserved."""
    short = sum(
        dues.leaf_claim.get(group, 1.0) * max(0, sixteenths(aim) - counted.used.get(group, 0))
        for group, aim in target.aim.items()
    )
    jobs = (reading.jobs[job] for job in dues.owed if job not in decisions.reserved)
    missing = fsum(
        job.job.gpus * dues.gang_weight(reading, job) for job in jobs if decisions.of(job).action not in RUNS
    )
    return short / SIXTEEN + missing


def envy_excess(reading: Reading, target: Target, counted: Tally) -> float:
    """E1: the excess of all leaves, in GPUs of the envied; a leaf does not envy itself."""
    count = len(target.leaves)
    if count < 2:
        return 0.0
    groups = [leaf.group for leaf in target.leaves]
    runs = np.array([[counted.runs[group].get(kind, 0) for kind in reading.types] for group in groups], dtype=float)
    reached = np.array([counted.throughput.get(group, 0) for group in groups]) / MILLI
    excess = target.entitled[None, :] / target.entitled[:, None]  # [envier, envied]: e_l / e_i
    excess *= (target.base - reached - target.biggest)[:, None]  # in place: fresh memory costs more than the sums
    excess += target.slope @ runs.T
    np.fill_diagonal(excess, 0.0)
    return float(np.maximum(excess.max(axis=0), 0.0).sum())


def _by_jobs(reading: Reading, taken: Iterable[Taken]) -> tuple[float, float, float]:
    """O4 (without handover), O5 and O6, summed over the live jobs of one kind."""
    order, work, change = [], [], []
    for job, choice in taken:
        action = choice.action
        if not job.live:
            continue
        if action in RUNS:
            order.append(_order(job, choice))
            if choice.gpu_type is not None:
                work.append(_ahead(reading, job, choice, choice.gpu_type))
        if action is PREEMPT or action is MIGRATE:
            work.append(-_lost(reading, job, choice))
        if action is not START and action is not KEEP:
            change.append(_change(job, choice))
    return fsum(order), fsum(work), fsum(change)


def _order(job: JobReading, choice: Choice) -> float:
    """O4: priority and age of a job that runs."""
    return choice.gpus * (1 / 16 + job.level / 2 + job.age_step / 224)


def _ahead(reading: Reading, job: JobReading, choice: Choice, kind: str) -> float:
    """O5: work ahead of a job that runs."""
    policy, ends = reading.policy, job.job.expected_end_at
    share = 1.0
    if ends is not None:
        share = min(1.0, max(0.0, (ends - reading.state.now).total_seconds()) / policy.lookahead_s)
    if choice.action is START or choice.action is MIGRATE:
        share = min(share, 1 - min(1.0, policy.restart_cost_s / policy.lookahead_s))
    return choice.gpus * job.rates.get(kind, 0) / MILLI * share


def _lost(reading: Reading, job: JobReading, choice: Choice) -> float:
    """O5: what a job loses that stops."""
    if job.hit:
        return 0.0
    policy = reading.policy
    pace = job.held_gpus * job.rates.get(job.held_type or "", 0) / MILLI
    lost = pace * job.lost_s / policy.lookahead_s * policy.lost_work_weight
    if choice.action is PREEMPT and not job.job.contract.resumable:
        lost += pace
    return lost


def _change(job: JobReading, choice: Choice) -> float:
    """O6: what a change costs beyond lost work."""
    if choice.action is RESIZE:
        return abs(choice.gpus - job.held_gpus) / 256
    if job.hit:
        return {MIGRATE: choice.replaced, PREEMPT: job.held_gpus}.get(choice.action, 0) / 16
    if choice.action is MIGRATE:
        return job.held_gpus / 16
    if choice.action is PREEMPT:
        return job.held_gpus * (1 / 16 + (1 - job.level) / 2)
    return 0.0


def _handover(reading: Reading, taken: Iterable[Taken]) -> float:
    """O4: at each cut between priorities of a leaf, GPUs that pass from below to above it."""
    started: dict[str, Counter[int]] = {}
    stopped: dict[str, Counter[int]] = {}
    for job, choice in taken:
        if choice.action is PREEMPT and job.budgeted and not job.hit:
            stopped.setdefault(str(job.group), Counter())[job.priority] += job.held_gpus
    for job, choice in taken if stopped else ():
        if choice.action is KEEP or not job.budgeted or job.group not in stopped:
            continue
        if choice.action is START or (job.hit and choice.action is MIGRATE):
            started.setdefault(job.group, Counter())[job.priority] += choice.gpus
    total = 0.0
    for group in sorted(started):
        levels, above, under = reading.levels[group], sum(started[group].values()), 0
        for below, _ in pairwise(levels):
            above -= started[group][below]
            under += stopped[group][below]
            total += min(above, under) / 2 / (len(levels) - 1)
    return total
