"""The audit of declared speedups for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import exp
from typing import TypeVar

from rich.console import RenderableType
from rich.text import Text

from evenhand_api.report.text import NONE, Column, heading, instant, names, number, percent, plural, table
from evenhand_models import (
    ClusterState,
    MisreportGain,
    Objective,
    SpeedupConsequence,
    SpeedupFlag,
    SpeedupRatio,
    SpeedupReport,
    SpeedupUse,
)

T = TypeVar("T")

WRONG = (SpeedupFlag.OVERDECLARED, SpeedupFlag.UNDERDECLARED)
STYLES = {SpeedupFlag.SUSPECT: "yellow", SpeedupFlag.OVERDECLARED: "bold red", SpeedupFlag.UNDERDECLARED: "bold red"}
ROOMY = 90
"""Columns from which a ratio comes with what it is compared with."""
WIDE = 108
"""Columns from which the gains under all objectives fit side by side."""
USES = {
    SpeedupUse.DECLARED: "what is declared",
    SpeedupUse.OBSERVED: "what was observed, where there is evidence enough",
    SpeedupUse.BLEND: "a blend of what is declared and what was observed",
}
CONSEQUENCES = {
    SpeedupConsequence.WARN: "",
    SpeedupConsequence.USE_OBSERVED: "; by what was observed wherever a declaration was found wrong",
    SpeedupConsequence.REFUSE: "; waiting jobs that declare wrongly are refused, the rest goes by what was observed",
}


def speedup_report(state: ClusterState, report: SpeedupReport, width: int, rows: int = 20) -> Iterator[RenderableType]:
    """Yield the sections of the report.

    Parameters
    ----------
    state : ClusterState
        The state it is about, with what jobs declare.
    report : SpeedupReport
        What was found.
    width : int
        Columns there are.
    rows : int
        Most rows of a list; 0: all.
    """
    yield from _summary(report)
    yield from _groups(report, width, rows)
    yield from _own(report, width, rows)
    yield from _gains(report, width)
    yield from _refuted(report, rows)
    yield from _next_rounds(state, report, rows)
    yield from _undeclared(report, rows)
    yield from _hints(report, rows)


def _summary(report: SpeedupReport) -> Iterator[RenderableType]:
    yield Text.assemble(
        (f"Declared speedups against observed ones, {instant(report.now)}", "bold"),
        f"  confidence {percent(report.policy.confidence)}, tolerance {percent(report.policy.tolerance)}",
    )
    bad = {entry.group for entry in report.groups if entry.flag in WRONG}
    jobs = sum(any(ratio.flag in WRONG for ratio in entry.measured) for entry in report.jobs)
    if bad or jobs:
        found = plural(len(bad), "group") + " and " + plural(jobs, "job") + " declare what observations contradict"
        yield Text(found, style="bold red")
    else:
        yield Text("no declared speedup is contradicted by observations", style="green")
    for left in report.left_out:
        yield Text(f"left out, {left.code}: {plural(left.observations, 'observation')}, {names(left.names)}")


def _groups(report: SpeedupReport, width: int, rows: int) -> Iterator[RenderableType]:
    if not report.groups:
        yield Text("no group was observed on a type that its jobs declare, besides the one others are compared with")
        return
    listed = sorted(report.groups, key=lambda e: (-e.severity, not e.enough, e.group, e.gpu_type))
    yield heading("Groups", "observed over declared, relative to a reference type; 1 is right")
    found = table("group", *_titles(width), ("jobs", "right"), "finding")
    for entry in _first(listed, rows):
        found.add_row(Text(entry.group), *_ratio(entry, width), f"{entry.jobs:,}", _finding(entry))
    yield found
    yield from _more(len(listed), rows)


def _own(report: SpeedupReport, width: int, rows: int) -> Iterator[RenderableType]:
    wrong = [(entry, ratio) for entry in report.jobs for ratio in entry.measured if ratio.flag in WRONG]
    if not wrong:
        return
    wrong.sort(key=lambda pair: (-pair[1].severity, pair[0].job, pair[1].gpu_type))
    yield heading("Jobs found wrong by what they themselves did")
    found = table("job", "group", *_titles(width), "finding")
    for entry, ratio in _first(wrong, rows):
        found.add_row(Text(entry.job), Text(entry.group), *_ratio(ratio, width), _finding(ratio))
    yield found
    yield from _more(len(wrong), rows)


def _titles(width: int) -> tuple[Column, ...]:
    """Columns for a ratio; where there is little room, without what it was compared with and how often."""
    titles: tuple[Column, ...] = ("type", "against", ("observed / declared", "right"), ("seen", "right"))
    return titles if width >= ROOMY else ("type", ("observed / declared", "right"))


def _ratio(entry: SpeedupRatio, width: int) -> list[Text]:
    """The cells of `_titles`."""
    value = NONE
    if entry.ratio is not None and entry.low is not None and entry.high is not None:
        value = f"{_factor(entry.ratio)} ({_factor(entry.low)} to {_factor(entry.high)})"
    if width < ROOMY:
        return [Text(entry.gpu_type), Text(value)]
    seen = f"{entry.observations:,} + {entry.reference_observations:,}"
    return [Text(entry.gpu_type), Text(entry.reference_type), Text(value), Text(seen)]


def _factor(logarithm: float) -> str:
    return f"{exp(max(-700.0, min(700.0, logarithm))):.3g}"


def _finding(entry: SpeedupRatio) -> Text:
    if entry.flag in WRONG:
        return Text(f"{entry.flag} {_share(entry.severity)} or more", style=STYLES[entry.flag])
    if entry.flag is SpeedupFlag.SUSPECT:
        return Text("suspect: off, maybe within tolerance", style=STYLES[entry.flag])
    return Text("no fault found" if entry.enough else "too little evidence", style="dim")


def _share(value: float) -> str:
    return f"{100 * value:.0f} %" if value < 100 else f"{value:.3g} times"


def _gains(report: SpeedupReport, width: int) -> Iterator[RenderableType]:
    if not report.gains:
        return
    yield heading(
        "What it gains", "the group's own throughput by true speedups, over that of the truth; then all others'"
    )
    by_group: dict[str, dict[Objective, MisreportGain]] = {}
    for gain in report.gains:
        by_group.setdefault(gain.group, {})[gain.objective] = gain
    objectives = [objective for objective in Objective if any(objective in row for row in by_group.values())]
    if width >= WIDE:
        found = table("group", *((str(objective), "right") for objective in objectives))
        for group, row in by_group.items():
            found.add_row(Text(group), *(_gain(row.get(objective)) for objective in objectives))
    else:
        found = table("group", "objective", ("own, others", "right"))
        for gain in report.gains:
            found.add_row(Text(gain.group), Text(gain.objective), _gain(gain))
    yield found
    if report.gains_left_out:
        yield Text(f"not measured for {plural(report.gains_left_out, 'more group')} (most_gains)", style="dim")


def _gain(gain: MisreportGain | None) -> Text:
    if gain is None:
        return Text(NONE)
    style = "red" if gain.gain is not None and gain.gain > 1e-3 else ""
    return Text(f"{_signed(gain.gain)}, {_signed(gain.others)}", style=style)


def _signed(share: float | None) -> str:
    return NONE if share is None else f"{100 * share:+.1f} %"


def _refuted(report: SpeedupReport, rows: int) -> Iterator[RenderableType]:
    if not report.refuted:
        return
    yield heading("Declared resumable, came back without their progress", "their work since each start counts as lost")
    found = table(
        "job", "group", ("requeues", "right"), ("failed", "right"), ("kept", "right"), ("GPU-hours lost", "right")
    )
    for entry in _first(report.refuted, rows):
        counts = (f"{entry.requeues:,}", f"{entry.failed:,}", percent(entry.kept), number(entry.lost_gpu_hours))
        found.add_row(Text(entry.job), Text(entry.group), *counts)
    yield found
    yield from _more(len(report.refuted), rows)


def _next_rounds(state: ClusterState, report: SpeedupReport, rows: int) -> Iterator[RenderableType]:
    yield heading("In the next rounds")
    yield Text(f"jobs go by {USES[report.policy.use]}{CONSEQUENCES[report.policy.consequence]}")
    refused = [entry.job for entry in report.jobs if entry.refused]
    changed = [entry for entry in report.jobs if entry.changed and not entry.refused]
    kept = len(report.jobs) - len(changed) - len(refused)
    yield Text(f"{plural(kept, 'job')} as declared, {len(changed):,} changed, {len(refused):,} refused")
    if refused:
        yield Text(f"refused: {names(refused, rows or len(refused))}", style="bold red")
    if changed:
        declared = {job.id: job.speedup for job in state.jobs}
        found = table("job", "group", "declared", "in use")
        for entry in _first(changed, rows):
            told = Text(_vector(declared[entry.job]))
            found.add_row(Text(entry.job), Text(entry.group), told, Text(_vector(entry.speedup)))
        yield found
        yield from _more(len(changed), rows)


def _vector(speedup: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in speedup.items()) or NONE


def _undeclared(report: SpeedupReport, rows: int) -> Iterator[RenderableType]:
    if not report.undeclared:
        return
    yield heading("Types that jobs leave out", "estimates on the scale each job declares; never used by themselves")
    found = table("job", "type", ("speedup", "right"), ("interval", "right"), "from")
    for entry in _first(report.undeclared, rows):
        source = "its own runs" if not entry.like_jobs else plural(entry.like_jobs, "like job")
        interval = f"{entry.low:.3g} to {entry.high:.3g}"
        found.add_row(Text(entry.job), Text(entry.gpu_type), f"{entry.speedup:.3g}", interval, Text(source))
    yield found
    yield from _more(len(report.undeclared), rows)


def _hints(report: SpeedupReport, rows: int) -> Iterator[RenderableType]:
    if not report.hints:
        return
    yield heading("What should be measured")
    for hint in _first(report.hints, rows):
        yield Text(f"{hint.code}: {hint.message} Jobs: {names(hint.jobs)}.")
    yield from _more(len(report.hints), rows)


def _first(listed: Sequence[T], rows: int) -> Sequence[T]:
    return listed[:rows] if rows else listed


def _more(count: int, rows: int) -> Iterator[RenderableType]:
    if rows and count > rows:
        yield Text(f"and {count - rows:,} more; --rows 0 lists all", style="dim")
