"""A plan as a point of the program: does it fit the rows, and what is it worth there?"""

from __future__ import annotations

from evenhand.audit.decisions import decisions_of, repaired
from evenhand.audit.jobs import JobReading
from evenhand.crosscheck.crews import Crew
from evenhand.crosscheck.draft import RUNS, Act, Draft, Way
from evenhand_models import Action, Assignment, Plan


class NoWay(Exception):
    """The plan does something the program has no column for."""


def point_of(draft: Draft, plan: Plan) -> list[float]:
    """Return the value of every column under a plan.

    Raises
    ------
    NoWay
        If the plan does something to a job that the program does not know as possible.
    """
    values = [0.0] * len(draft.sheet.columns)
    crews = {job.job.id: crew for crew in draft.crews for job in crew.jobs}
    reserved = decisions_of(draft.facts.reading, plan.assignments).reserved
    for answer in plan.assignments:
        crew = crews.get(answer.job)
        if crew is not None:
            job = draft.facts.reading.jobs[answer.job]
            _enter(draft, crew, job, answer, reserved.get(answer.job), values)
    return draft.sheet.complete(values)


def _enter(
    draft: Draft, crew: Crew, job: JobReading, answer: Assignment, reserved: str | None, values: list[float]
) -> None:
    """Count one answer in the columns of its crew."""
    act = _act(draft, job, answer, reserved)
    if act is None:
        return
    kind = reserved if act is Act.RESERVE else answer.gpu_type
    placed = {part.node: part.gpus for part in answer.placement} if act in RUNS else {}
    way = next((w for w in draft.of(crew) if _is(draft, w, act, kind, answer, placed)), None)
    if way is None:
        raise NoWay(f"job {answer.job!r}: {answer.action} of {answer.gpus} GPUs of {kind} is not possible")
    values[way.column] += 1
    stand = draft.stands.get((way.job.job.id, way.act, way.kind, way.value))
    if stand is None:
        return
    for node, gpus in placed.items():
        new = gpus if act is not Act.REPAIR else gpus - _healthy(draft, job, node)
        if new == 0:
            continue
        unit = next((u for u, columns in stand.unit.items() if node in columns and new % u == 0), None)
        if unit is None or (act is Act.REPAIR and job.job.worker_gpus is None and new not in stand.unit):
            raise NoWay(f"job {answer.job!r}: {answer.action} may not put {new} GPUs on {node!r}")
        if act is Act.REPAIR and job.job.worker_gpus is None:
            unit = new
        values[stand.unit[unit][node]] += new // unit
        if node in stand.used:
            values[stand.used[node]] = 1


def _healthy(draft: Draft, job: JobReading, node: str) -> int:
    """Return what a hit job still has on a node."""
    return job.held.get(node, 0) if node in draft.facts.reading.healthy else 0


def _act(draft: Draft, job: JobReading, answer: Assignment, reserved: str | None) -> Act | None:
    """Say what an answer does."""
    act: Act | None = None
    match answer.action:
        case Action.START:
            act = Act.START
        case Action.KEEP:
            act = Act.KEEP
        case Action.RESIZE:
            act = Act.GROW if answer.gpus > job.held_gpus else Act.SHRINK
        case Action.MIGRATE:
            placed = {part.node: part.gpus for part in answer.placement}
            mended = repaired(draft.facts.reading, job, placed) is not None
            act = Act.REPAIR if mended else Act.MIGRATE
        case Action.PREEMPT:
            act = Act.PREEMPT
        case Action.WAIT:
            act = Act.RESERVE if reserved is not None else None
        case Action.INFEASIBLE:
            act = None
    return act


def _is(draft: Draft, way: Way, act: Act, kind: str | None, answer: Assignment, placed: dict[str, int]) -> bool:
    """Say whether a way is what an answer does, at its size, on its type and label value."""
    if way.act is not act:
        return False
    if act is Act.PREEMPT:
        return True
    if act is Act.RESERVE:
        return way.kind == kind
    key, node = way.job.job.same, draft.facts.reading.nodes.get(next(iter(placed), ""))
    value = node.labels.get(key) if key is not None and node is not None and act is not Act.KEEP else None
    return (way.kind, way.gpus, way.value) == (kind, answer.gpus, value)
