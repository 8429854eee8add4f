"""Who stands where before and after a plan: what the checks of capacity, shape and leaving look at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from evenhand.audit.jobs import NOTHING, JobReading
from evenhand.audit.reading import Reading
from evenhand_models import Action, Assignment

KEEP = Action.KEEP  # to look an enum's member up for every job takes long


class Outcome(NamedTuple):
    """One job that holds GPUs before or after the plan.

    Attributes
    ----------
    job : JobReading
        The job.
    answer : Assignment
        What the plan says of it.
    action : Action
        What happens to it.
    after : mapping of str to int
        GPUs by node once the plan is applied; none if it stops or is terminating.
    arrives : mapping of str to int
        GPUs by node that it did not hold before.
    leaves : mapping of str to int
        GPUs by node that it gives up.
    """

    job: JobReading
    answer: Assignment
    action: Action
    after: Mapping[str, int]
    arrives: Mapping[str, int]
    leaves: Mapping[str, int]


def outcomes(reading: Reading, told: Iterable[Assignment]) -> tuple[Outcome, ...]:
    """Return the outcome of every job that holds GPUs before or after the plan, by id."""
    jobs, listed = reading.jobs, []
    for answer in told:
        job = jobs[answer.job]
        held, action = job.held, answer.action
        if not answer.placement and job.pending:
            continue
        if action is KEEP and not job.terminating:
            listed.append(Outcome(job, answer, KEEP, held, NOTHING, NOTHING))
            continue
        after = {} if job.terminating else {part.node: part.gpus for part in answer.placement}
        if job.pending:
            listed.append(Outcome(job, answer, action, after, after, NOTHING))
            continue
        arrives = {name: gpus - held.get(name, 0) for name, gpus in after.items() if gpus > held.get(name, 0)}
        leaves = {name: gpus - after.get(name, 0) for name, gpus in held.items() if gpus > after.get(name, 0)}
        listed.append(Outcome(job, answer, action, after, arrives, leaves))
    return tuple(listed)
