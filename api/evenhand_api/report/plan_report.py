"""A whole plan as tables: what happens, what waits and why, how the groups fare, what is proven."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from rich.console import RenderableType
from rich.text import Text

from evenhand_api.report.certificate import certificate_report
from evenhand_api.report.groups import group_report
from evenhand_api.report.text import (
    Column,
    brief,
    duration,
    heading,
    instant,
    names,
    number,
    places,
    plural,
    table,
)
from evenhand_models import Action, Assignment, ClusterState, Job, Plan

T = TypeVar("T")

ROOMY = 72
"""Columns from which lists of jobs say why."""
CHANGES = (Action.PREEMPT, Action.MIGRATE, Action.RESIZE)


def plan_report(state: ClusterState, plan: Plan, width: int, rows: int = 20) -> Iterator[RenderableType]:
    """Yield the sections of the report.

    Parameters
    ----------
    state : ClusterState
        The state the plan answers.
    plan : Plan
        The plan.
    width : int
        Columns there are, to choose between wide and narrow tables.
    rows : int
        Most rows of a list of jobs; 0: all, and groups without work too.
    """
    jobs = {job.id: job for job in state.jobs}
    yield from _summary(state, plan)
    yield from _starts([a for a in plan.assignments if a.action is Action.START], jobs, width, rows)
    yield from _changes([a for a in plan.assignments if a.action in CHANGES], jobs, width, rows)
    yield from _waits("Waits", [a for a in plan.assignments if a.action is Action.WAIT], state, jobs, width)
    never = [a for a in plan.assignments if a.action is Action.INFEASIBLE]
    yield from _waits("Can never run here", never, state, jobs, width)
    yield from _calendar(plan, rows)
    yield from group_report(state, plan, width, idle=rows == 0)
    yield from certificate_report(plan)
    yield from _warnings(plan)


def _summary(state: ClusterState, plan: Plan) -> Iterator[RenderableType]:
    gpus = Counter[str]()
    for node in state.nodes:
        gpus[node.gpu_type] += node.gpus
    held = Counter[str]()
    for assignment in plan.assignments:
        if assignment.gpu_type is not None:
            held[assignment.gpu_type] += assignment.gpus
    actions = Counter(assignment.action for assignment in plan.assignments)
    yield Text.assemble((f"Round of {instant(plan.now)}", "bold"), f"  objective {plan.policy.objective}")
    yield Text(
        f"{plural(len(state.nodes), 'node')}, {plural(sum(gpus.values()), 'GPU')}: "
        + (", ".join(f"{name} {held[name]:,} of {gpus[name]:,} given out" for name in sorted(gpus)) or "none")
    )
    yield Text(
        f"{plural(len(plan.assignments), 'job')}: "
        + (", ".join(f"{actions[action]:,} {action}" for action in Action if actions[action]) or "none")
    )


def _starts(starts: list[Assignment], jobs: dict[str, Job], width: int, rows: int) -> Iterator[RenderableType]:
    if not starts:
        return
    yield heading("Starts", _sum(starts, jobs))
    cells = []
    for assignment in _first(starts, rows):
        where = places(assignment.placement)
        if assignment.after:
            where += f" after {names(assignment.after, 1)}"
        group = jobs[assignment.job].group if assignment.job in jobs else ""
        cells.append(
            (assignment.job, group, number(assignment.gpus), assignment.gpu_type or "", where, _why(assignment))
        )
    columns: tuple[Column, ...] = ("job", "group", ("GPUs", "right"), "type", "where", "why")
    yield _listed(columns, cells, width, 5)
    yield from _rest(len(starts), rows)


def _changes(changes: list[Assignment], jobs: dict[str, Job], width: int, rows: int) -> Iterator[RenderableType]:
    if not changes:
        return
    yield heading("Stops, moves and resizes", _sum(changes, jobs))
    cells = []
    for assignment in _first(changes, rows):
        job = jobs.get(assignment.job)
        what = str(assignment.action)
        if assignment.action is Action.PREEMPT:
            what += ", requeued" if assignment.requeue else ", ended"
        was = places(job.placement) if job else ""
        cells.append(
            (
                assignment.job,
                what,
                was,
                places(assignment.placement),
                job.group if job else "",
                _why(assignment),
            )
        )
    yield _listed(("job", "what", "from", "to", "group", "why"), cells, width, 4)
    yield from _rest(len(changes), rows)


def _waits(
    title: str, waits: list[Assignment], state: ClusterState, jobs: dict[str, Job], width: int
) -> Iterator[RenderableType]:
    """List causes, not jobs, so that thousands of waits stay a handful of rows."""
    if not waits:
        return
    yield heading(title, f"{plural(len(waits), 'job')}; one can have several causes, --explain JOB has them all")
    cells = []
    for cause, members in _by_cause(waits).items():
        known = [(jobs[job], said) for job, said in members if job in jobs]
        oldest, said = min(known, key=lambda entry: (entry[0].submitted_at, entry[0].id))
        groups = Counter(job.group for job, _ in known)
        cells.append(
            (
                cause,
                f"{len(members):,}",
                f"{sum(job.gpus for job, _ in known):,}",
                f"{oldest.id}, {duration((state.now - oldest.submitted_at).total_seconds())}",
                names(f"{group} {count:,}" for group, count in groups.most_common()),
                brief(said),
            )
        )
    columns: tuple[Column, ...] = (
        ("cause", "fixed"),
        ("jobs", "right"),
        ("GPUs", "right"),
        "oldest",
        "groups",
        "why the oldest",
    )
    yield _listed(columns, cells, width, 4)


def _listed(columns: Sequence[Column], rows: Iterable[tuple[str, ...]], width: int, keep: int) -> RenderableType:
    """Make a table; where there is no room for all columns, of the first `keep`."""
    kept = len(columns) if width >= ROOMY else keep
    listed = table(*columns[:kept])
    for row in rows:
        listed.add_row(*(Text(cell) for cell in row[:kept]))
    return listed


def _by_cause(waits: list[Assignment]) -> dict[str, list[tuple[str, str]]]:
    """Collect, for each cause, the jobs it binds and what was said of each; the commonest cause first."""
    causes: dict[str, list[tuple[str, str]]] = {}
    for assignment in waits:
        said = {str(reason.code): reason.message for reason in reversed(assignment.reasons)}
        for code, message in (said or {"unexplained": ""}).items():
            causes.setdefault(code, []).append((assignment.job, message))
    return dict(sorted(causes.items(), key=lambda entry: (-len(entry[1]), entry[0])))


def _calendar(plan: Plan, rows: int) -> Iterator[RenderableType]:
    if plan.calendar:
        yield heading("Calendar", "large gangs that wait, and the date each starts by")
        listed = table("job", "starts by", "on", "nodes held")
        for entry in sorted(_first(plan.calendar, rows), key=lambda e: (e.latest_start_at is None, e.latest_start_at)):
            cells = (entry.job, instant(entry.latest_start_at), entry.gpu_type or "", names(entry.nodes, 6))
            listed.add_row(*(Text(cell) for cell in cells))
        yield listed
        yield from _rest(len(plan.calendar), rows)
    if plan.unlocks:
        first = plan.unlocks[0]
        total = sum(unlock.gpus for unlock in plan.unlocks)
        yield Text(
            f"Protection ends next at {instant(first.at)} for {first.gpus:,} {first.gpu_type}, "
            f"at {instant(plan.unlocks[-1].at)} for the last of {plural(total, 'GPU')}."
        )


def _warnings(plan: Plan) -> Iterator[RenderableType]:
    if not plan.warnings:
        return
    kinds: dict[str, list[str]] = {}
    for warning in plan.warnings:
        kinds.setdefault(warning.code, []).append(warning.message)
    yield heading("Warnings", plural(len(plan.warnings), "oddity", "oddities") + " in the input")
    listed = table("what", ("times", "right"), "first")
    for code, messages in sorted(kinds.items(), key=lambda entry: (-len(entry[1]), entry[0])):
        listed.add_row(Text(code), f"{len(messages):,}", Text(messages[0]))
    yield listed


def _why(assignment: Assignment) -> str:
    return brief(assignment.reasons[0].message) if assignment.reasons else ""


def _sum(assignments: list[Assignment], jobs: dict[str, Job]) -> str:
    """Say how many jobs, of how many GPUs asked for or held, of which groups."""
    known = [jobs[assignment.job] for assignment in assignments if assignment.job in jobs]
    gpus = sum(job.placed_gpus or job.gpus for job in known)
    groups = Counter(job.group for job in known)
    return (
        f"{plural(len(assignments), 'job')} of {plural(gpus, 'GPU')}: "
        f"{names((f'{group} {count:,}' for group, count in groups.most_common()), 6)}"
    )


def _first(items: Iterable[T], rows: int) -> list[T]:
    listed = list(items)
    return listed[:rows] if rows else listed


def _rest(count: int, rows: int) -> Iterator[RenderableType]:
    if rows and count > rows:
        yield Text(f"and {count - rows:,} more; --rows 0 lists all, --json has everything", style="dim")
