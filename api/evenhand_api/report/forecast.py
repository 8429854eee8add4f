"""What if a job came now, for people: when it would start, who would go, and that nothing is reserved."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from evenhand_api.report.text import NONE, brief, heading, instant, number, places, plural, table
from evenhand_models.whatif import StartBasis, StartForecast, WhatIfStart

BASES = {
    None: NONE,
    StartBasis.NOW: "this round",
    StartBasis.CALENDAR: "the calendar's promise",
    StartBasis.CONTRACTS: "contracts alone",
    StartBasis.EXPECTED_ENDS: "expected ends",
}


def forecast_report(answer: WhatIfStart, rows: int = 20) -> Iterator[RenderableType]:
    """Yield the sections of the report; `rows`: most rows of a list of jobs, 0: all."""
    yield Text.assemble((f"What if at {instant(answer.now)}", "bold"), f"  {plural(answer.rounds, 'round')} decided")
    yield Text(answer.note, style="dim")
    dates = table("job", "now", "earliest", "latest", "latest rests on", "where")
    for job in answer.jobs:
        cells = (
            job.job,
            str(job.action),
            instant(job.earliest_start_at),
            instant(job.latest_start_at),
            BASES[job.basis],
            f"{number(job.gpus)} {job.gpu_type} on {places(job.placement)}" if job.placement else NONE,
        )
        dates.add_row(*(Text(cell) for cell in cells))
    yield heading("When")
    yield dates
    for job in answer.jobs:
        yield from _one(job, rows)
    if answer.changes:
        yield heading("This round would treat otherwise", plural(len(answer.changes), "job"))
        others = table("job", "group", "without", "with")
        for change in answer.changes[: rows or None]:
            others.add_row(Text(change.job), Text(change.group), str(change.without), str(change.with_added))
        yield others
        yield from _rest(len(answer.changes), rows)
    yield Text(f"\nState {answer.state_hash[:16]}: unchanged.", style="dim")


def _one(job: StartForecast, rows: int) -> Iterator[RenderableType]:
    yield heading(f"Job {job.job}")
    yield Text(job.summary)
    for reason in job.reasons:
        yield Text.assemble("  ", (reason.code, "bold"), f"  {reason.message}")
    if job.cheapest_change:
        yield Text(f"  cheapest change: {job.cheapest_change}")
    if not job.would_go:
        return
    yield heading(f"Who would go for {job.job}")
    going = table("job", "group", ("GPUs", "right"), "what", "why")
    for other in job.would_go[: rows or None]:
        what = str(other.action)
        if other.requeue is not None:
            what += ", requeued" if other.requeue else ", ended"
        why = brief(other.reasons[0].message) if other.reasons else NONE
        going.add_row(Text(other.job), Text(other.group), number(other.gpus), Text(what), Text(why))
    yield going
    yield from _rest(len(job.would_go), rows)


def _rest(count: int, rows: int) -> Iterator[RenderableType]:
    if rows and count > rows:
        yield Text(f"and {count - rows:,} more; --rows 0 lists all, --json has everything", style="dim")
