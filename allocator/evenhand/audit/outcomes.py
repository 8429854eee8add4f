"""Who stands where before and after a plan: what the checks of capacity, shape and leaving look at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from evenhand.audit.jobs import JobReading
from evenhand.audit.reading import Reading
from evenhand_models import Action, Assignment, Plan


@dataclass(frozen=True, slots=True)
class Outcome:
    """One job that holds GPUs before or after the plan.

    Attributes
    ----------
    job : JobReading
        The job.
    answer : Assignment
        What the plan says of it.
    after : mapping of str to int
        GPUs by node once the plan is applied; none if it stops or is terminating.
    arrives : mapping of str to int
        GPUs by node that it did not hold before.
    leaves : mapping of str to int
        GPUs by node that it gives up.
    """

    job: JobReading
    answer: Assignment
    after: Mapping[str, int]
    arrives: Mapping[str, int]
    leaves: Mapping[str, int]

    @property
    def action(self) -> Action:
        """What happens to it."""
        return self.answer.action


def outcomes(reading: Reading, plan: Plan) -> tuple[Outcome, ...]:
    """Return the outcome of every job that holds GPUs before or after the plan, by id."""
    return tuple(_outcomes(reading, plan))


def _outcomes(reading: Reading, plan: Plan) -> Iterator[Outcome]:
    """Go through the answers."""
    for answer in plan.assignments:
        job = reading.jobs[answer.job]
        if not job.held and not answer.placement:
            continue
        if job.terminating:
            after: dict[str, int] = {}
        elif answer.action is Action.KEEP:
            after = dict(job.held)
        else:
            after = {part.node: part.gpus for part in answer.placement}
        arrives = {name: gpus - job.held.get(name, 0) for name, gpus in after.items()}
        leaves = {name: gpus - after.get(name, 0) for name, gpus in job.held.items()}
        yield Outcome(
            job=job,
            answer=answer,
            after=after,
            arrives={name: gpus for name, gpus in arrives.items() if gpus > 0},
            leaves={name: gpus for name, gpus in leaves.items() if gpus > 0},
        )
