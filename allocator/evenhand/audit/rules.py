"""What must hold of every plan: all checks of actions and places, in the order of the rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from evenhand.audit.answers import check_protection_dates, check_reasons
from evenhand.audit.decisions import Decisions, ending_gpus
from evenhand.audit.jobs import JobReading
from evenhand.audit.leaving import check_limits_and_victims, check_order
from evenhand.audit.outcomes import outcomes
from evenhand.audit.places import check_capacity, check_gangs, check_stays
from evenhand.audit.reading import Reading
from evenhand.audit.report import Finding
from evenhand_models import Assignment, Plan


def check_rules(reading: Reading, plan: Plan, told: Sequence[Assignment], names: Set[str]) -> Iterator[Finding]:
    """Check a plan with one answer for every job, each of a kind its state allows.

    Parameters
    ----------
    told : sequence of Assignment
        Its answers that say more than that a job waits: `telling`.
    names : set of str
        What its reasons may name.
    """
    listed = outcomes(reading, told)
    yield from check_reasons(reading, plan, told, names)
    yield from check_protection_dates(reading, told)
    yield from check_capacity(reading, listed)
    yield from check_gangs(reading, listed)
    yield from check_stays(reading, listed)
    yield from check_order(reading, listed)
    yield from check_limits_and_victims(reading, listed)


def _within_limits(reading: Reading, job: JobReading) -> bool:
    """Say whether no limit on a job's way up is below its size."""
    limits = {group.id: group.max_gpus for group in reading.state.groups if group.max_gpus is not None}
    return all(limits.get(group, job.job.gpus) >= job.job.gpus for group in reading.tree.path(str(job.group)))


def check_reservations(reading: Reading, decisions: Decisions) -> Iterator[Finding]:
    """O8: only pending budgeted jobs reserve, whole, where they fully fit, and no more than ends soon."""
    ending = ending_gpus(reading, decisions)
    wanted = dict.fromkeys(ending, 0)
    for name, kind in decisions.reserved.items():
        job = reading.jobs[name]
        if not (job.pending and job.budgeted and kind in job.full and _within_limits(reading, job)):
            yield Finding("O8", f"job {name!r} is reserved on {kind!r}, which it may not be.", (name, kind))
        wanted[kind] = wanted.get(kind, 0) + job.job.gpus
    for kind, gpus in wanted.items():
        if gpus > ending.get(kind, 0):
            message = f"{gpus} GPUs of {kind!r} are reserved, but only {ending.get(kind, 0)} end soon."
            yield Finding("O8", message, (kind,))
