"""Everything about one job: what it asks, what happens, all causes, whom they name, how its groups stand."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from evenhand_api.report.text import (
    by_type,
    duration,
    heading,
    instant,
    names,
    number,
    places,
    plural,
    table,
)
from evenhand_models import Assignment, ClusterState, Job, Plan


def explanation(state: ClusterState, plan: Plan, job: Job) -> Iterator[RenderableType]:
    """Yield all that the state and the plan know about a job of the state."""
    assignment = next(a for a in plan.assignments if a.job == job.id)
    what = f"{assignment.action}"
    if assignment.requeue is not None:
        what += ", requeued" if assignment.requeue else ", not requeued: it cannot resume"
    yield Text.assemble((f"Job {job.id}", "bold"), f"  {what}")
    yield _facts(_asked(state, job) + _decided(plan, assignment))
    yield heading("Why")
    for reason in assignment.reasons:
        yield Text.assemble((reason.code, "bold"), f"  {reason.message}")
        if reason.refs:
            yield Text(f"  names {names(reason.refs, 20)}", style="dim")
        if reason.earliest_start_at is not None:
            yield Text(f"  ends at {instant(reason.earliest_start_at)} at the earliest")
        if reason.cheapest_change is not None:
            yield Text(f"  would be lifted by: {reason.cheapest_change}")
    if not assignment.reasons:
        yield Text("no reason was given")
    yield from _named_jobs(state, plan, assignment)
    yield from _groups(state, plan, job)


def _asked(state: ClusterState, job: Job) -> list[tuple[str, str]]:
    size = plural(job.gpus, "GPU") + (f", elastic down to {job.min_gpus}" if job.min_gpus else "")
    if job.worker_gpus:
        size += f", in workers of {job.worker_gpus}"
    if job.gpus_per_node:
        size += f", exactly {job.gpus_per_node} on each node"
    contract = f"protected for {duration(job.contract.min_runtime_s)} after each start"
    if job.contract.min_runtime_s == 0:
        contract = "unallocated use: never charged, never protected"
    waited = (state.now - job.submitted_at).total_seconds()
    facts = [
        ("group", job.group + (f", user {job.user}" if job.user else "")),
        ("asks for", size),
        ("speedup", ", ".join(f"{name} {value:g}" for name, value in job.speedup.items()) or "none"),
        ("contract", contract + (", resumable" if job.contract.resumable else ", cannot resume")),
        ("submitted", f"{instant(job.submitted_at)}, {duration(waited)} ago; priority {job.priority}"),
        (
            "was",
            f"{job.state}" + (f" since {instant(job.started_at)} on {places(job.placement)}" if job.placement else ""),
        ),
    ]
    if job.requires or job.same:
        needs = [f"{key}={value}" for key, value in job.requires.items()] + ([f"one {job.same}"] if job.same else [])
        facts.insert(3, ("needs", ", ".join(needs)))
    return facts


def _decided(plan: Plan, assignment: Assignment) -> list[tuple[str, str]]:
    facts = []
    if assignment.placement:
        use = ", as unallocated use" if assignment.unallocated else ""
        held = f"{number(assignment.gpus)} {assignment.gpu_type} on {places(assignment.placement, 20)}{use}"
        facts.append(("gets", held))
    if assignment.after:
        facts.append(("after", f"{names(assignment.after, 20)} left"))
    if assignment.protected_until_at is not None:
        facts.append(("protected until", instant(assignment.protected_until_at)))
    if assignment.earliest_start_at is not None:
        facts.append(("not before", instant(assignment.earliest_start_at)))
    if assignment.cheapest_change is not None:
        facts.append(("cheapest change", assignment.cheapest_change))
    for entry in plan.calendar:
        if entry.job == assignment.job:
            held = f"; held for it: {names(entry.nodes, 20)}" if entry.nodes else ""
            facts.append(("starts by", instant(entry.latest_start_at) + held))
    return facts


def _named_jobs(state: ClusterState, plan: Plan, assignment: Assignment) -> Iterator[RenderableType]:
    """Say what happens to the jobs the reasons name."""
    named = {ref for reason in assignment.reasons for ref in reason.refs} | set(assignment.after)
    named.discard(assignment.job)
    jobs = {job.id: job for job in state.jobs if job.id in named}
    if not jobs:
        return
    yield heading("Jobs it names")
    listed = table("job", "group", ("GPUs", "right"), "what", "protected until", "where")
    for other in plan.assignments:
        if other.job in jobs:
            listed.add_row(
                Text(other.job),
                Text(jobs[other.job].group),
                number(jobs[other.job].gpus),
                Text(str(other.action)),
                Text(instant(other.protected_until_at)),
                Text(places(other.placement or jobs[other.job].placement)),
            )
    yield listed


def _groups(state: ClusterState, plan: Plan, job: Job) -> Iterator[RenderableType]:
    """Show how the job's group and the groups above it stand."""
    parents = {group.id: group.parent for group in state.groups}
    reports = {report.group: report for report in plan.groups}
    path: list[str] = []
    group: str | None = job.group
    while group is not None and group not in path:
        path.append(group)
        group = parents.get(group)
    known = [reports[group] for group in path if group in reports]
    if not known:
        return
    yield heading("Its group and those above it")
    listed = table(
        "group",
        ("usage", "right"),
        ("demand", "right"),
        ("entitled", "right"),
        ("standing", "right"),
        "allocated",
        "unallocated",
    )
    for report in known:
        cells = (number(report.usage_gpu_hours), number(report.demand_gpus), number(report.entitled_gpus))
        listed.add_row(
            Text(report.group),
            *cells,
            f"{report.standing:,}",
            Text(by_type(report.allocated)),
            Text(by_type(report.unallocated_use)),
        )
    yield listed


def _facts(facts: list[tuple[str, str]]) -> RenderableType:
    listed = table("", "")
    listed.show_header = False
    for name, value in facts:
        listed.add_row(Text(name, style="dim"), Text(value))
    return listed
