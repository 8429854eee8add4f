"""What a plan decides, stripped of everything else: the input of `worth`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from evenhand.audit.reading import JobReading, Reading
from evenhand_models import Action, Assignment

WAIT, INFEASIBLE, PREEMPT, MIGRATE = Action.WAIT, Action.INFEASIBLE, Action.PREEMPT, Action.MIGRATE  # faster at hand


class Choice(NamedTuple):
    """What happens to one job.

    Attributes
    ----------
    action : Action
        start, keep, migrate, resize, preempt, wait or infeasible.
    gpu_type : str or None
        Type of the GPUs it holds afterwards; None if it holds none.
    gpus : int
        How many.
    replaced : int
        Of a hit job that moves: GPUs replaced, all of them unless it is repaired (R2, O6).
    """

    action: Action
    gpu_type: str | None = None
    gpus: int = 0
    replaced: int = 0


@dataclass(frozen=True, slots=True)
class Decisions:
    """What happens to all jobs.

    Attributes
    ----------
    choices : mapping of str to Choice
        By job; a running job left out is kept, any other one does what it did.
    reserved : mapping of str to str
        The type each pending job reserves on GPUs that end soon (O8), by job.
    """

    choices: Mapping[str, Choice]
    reserved: Mapping[str, str] = field(default_factory=dict)

    def taken(self, reading: Reading) -> list[tuple[JobReading, Choice]]:
        """Return what happens to all jobs that do not just wait."""
        jobs, choices = reading.jobs, self.choices
        listed = [
            (jobs[name], choice)
            for name, choice in choices.items()
            if choice.action is not WAIT and choice.action is not INFEASIBLE
        ]
        kept = sorted(reading.holds.difference(choices))
        return listed + [(jobs[name], self.of(jobs[name])) for name in kept]

    def of(self, job: JobReading) -> Choice:
        """Return what happens to a job."""
        found = self.choices.get(job.job.id)
        if found is not None:
            return found
        if job.pending:
            return Choice(Action.INFEASIBLE if job.infeasible else Action.WAIT)
        return Choice(Action.KEEP, job.held_type, job.held_gpus)


def repaired(reading: Reading, job: JobReading, placement: Mapping[str, int]) -> int | None:
    """Return how many GPUs a placement replaces if it repairs a hit job, None if it does not (R2).

    What stands on healthy nodes stays; each lost node's GPUs are replaced by one new node, or worker by
    worker where the job has workers.
    """
    if not job.hit:
        return None
    if any(name not in reading.nodes or reading.nodes[name].gpu_type != job.held_type for name in placement):
        return None
    stays = {name: gpus for name, gpus in job.held.items() if name in reading.healthy}
    if not stays:
        return None
    lost = Counter(gpus for name, gpus in job.held.items() if name not in stays)
    added = {name: gpus - stays.get(name, 0) for name, gpus in placement.items()}
    if any(placement.get(name, 0) < gpus for name, gpus in stays.items()):
        return None
    if sum(placement.values()) != job.held_gpus:
        return None
    worker = job.job.worker_gpus
    if worker is not None:
        whole = all(gpus % worker == 0 for gpus in added.values())
    else:
        whole = Counter(gpus for name, gpus in added.items() if gpus and name not in stays) == lost
    return sum(lost.elements()) if whole else None


def decisions_of(reading: Reading, answers: Iterable[Assignment]) -> Decisions:
    """Read what answers decide, those of all jobs that do not just wait; one that waits with a type is reserved on it (O8)."""
    choices: dict[str, Choice] = {}
    reserved: dict[str, str] = {}
    jobs = reading.jobs
    for answer in answers:
        action, name = answer.action, answer.job
        if action is WAIT:
            if not jobs[name].pending:  # the others wait if nothing else is said of them
                choices[name] = Choice(WAIT)
            if answer.gpu_type is not None:  # said of reserved ones only
                reserved[name] = answer.gpu_type
        elif action is PREEMPT or action is INFEASIBLE:
            choices[name] = Choice(action)
        else:
            replaced = _replaced(reading, jobs[name], answer) if action is MIGRATE else 0
            choices[name] = Choice(action, answer.gpu_type, answer.gpus, replaced)
    return Decisions(choices, reserved)


def _replaced(reading: Reading, job: JobReading, answer: Assignment) -> int:
    """Return how many GPUs of a hit job that moves are replaced."""
    if not job.hit:
        return 0
    mended = repaired(reading, job, {part.node: part.gpus for part in answer.placement})
    return job.held_gpus if mended is None else mended


def ending_gpus(reading: Reading, decisions: Decisions) -> dict[str, int]:
    """Return, by type, GPUs of live jobs that ran before and go on, and end within the restart cost (O8)."""
    ending = dict.fromkeys(reading.types, 0)
    for job in reading.holding:
        ends = job.job.expected_end_at
        if ends is None or not job.live or job.started_at is None or job.started_at >= reading.state.now:
            continue
        choice = decisions.of(job)
        left = (ends - reading.state.now).total_seconds()
        stays = choice.action in (Action.KEEP, Action.RESIZE) and choice.gpu_type is not None
        if stays and 0 < left <= reading.policy.restart_cost_s:
            ending[str(choice.gpu_type)] += choice.gpus
    return ending
