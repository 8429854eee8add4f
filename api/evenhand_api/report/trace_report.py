"""A trace described, for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from evenhand_api.report.text import Column, brief, duration, heading, number, percent, plural, table
from evenhand_api.traces.rows import OddRow

Facts = dict[str, Any]


def trace_report(facts: Facts, odd: Sequence[OddRow], rows: int = 20) -> Iterator[RenderableType]:
    """Yield the sections of the report; `rows`: most rows of a list, 0: all."""
    yield from _summary(facts)
    yield from _parts("Groups", facts["groups"], facts["gpu_hours"], rows)
    yield from _parts("Kinds", facts["kinds"], facts["gpu_hours"], rows)
    yield from _parts("GPU types accepted", facts["gpu_types"], facts["gpu_hours"], rows)
    yield from _classes("Gangs", "GPUs", facts["gangs"], facts["gpu_hours"], number)
    yield from _classes("Run times", "from", facts["runs"], facts["gpu_hours"], duration)
    yield from odd_rows(odd, rows)


def _summary(facts: Facts) -> Iterator[RenderableType]:
    yield Text.assemble((f"Trace {facts['name']}", "bold"), f"  {number(facts['days'], 1)} days from {facts['t0']}")
    if facts["credit"]:
        yield Text(facts["credit"], style="dim")
    run, waits = facts["run_s"], facts["recorded_wait_s"]
    sizes = ", ".join(f"{number(gpus, 0)} GPUs for {times} x" for times, gpus in facts["gpus_for_demand"].items())
    lines = [
        f"{plural(facts['jobs'], 'job')} of {number(facts['gpu_hours'], 0)} GPU-hours; largest gang {facts['largest_gang']:,}",
        f"asks for {number(facts['mean_gpus_asked_for'])} GPUs on average: {sizes} as much demand as supply",
        f"runs {duration(run['p50'])} p50, {duration(run['p90'])} p90, {duration(run['p99'])} p99",
    ]
    if facts["supply"] is not None:
        supply = facts["supply"]
        lines.append(f"on {plural(supply['gpus'], 'GPU')}: demand {number(supply['demand_over_supply'], 2)} x supply")
    if waits is not None:
        lines.append(f"waited {duration(waits['p50'])} p50, {duration(waits['p90'])} p90 where it was recorded")
    if facts["history_gpu_hours"]:
        lines.append(f"seeds the usage window with {number(facts['history_gpu_hours'], 0)} charged GPU-hours")
    if not facts["in_order"]:
        lines.append("rows did not come in the order of submission: the trace is the same")
    yield from map(Text, lines)


def _parts(title: str, parts: list[Facts], whole: float, rows: int) -> Iterator[RenderableType]:
    if len(parts) < 2 and parts[0]["name"] in {"unknown", "any"}:
        return
    yield heading(title, plural(len(parts), "entry", "entries"))
    columns: tuple[Column, ...] = (
        "name", ("jobs", "right"), ("users", "right"), ("GPU-hours", "right"), ("share", "right"),
        ("largest", "right"), ("run p50", "right"), ("run p90", "right"),
    )  # fmt: skip
    listed = table(*columns)
    for part in parts[: rows or None]:
        share = percent(part["gpu_hours"] / whole if whole else 0.0)
        listed.add_row(
            Text(part["name"]),
            f"{part['jobs']:,}",
            f"{part['users']:,}",
            number(part["gpu_hours"], 0),
            share,
            f"{part['largest_gang']:,}",
            duration(part["run_s"]["p50"]),
            duration(part["run_s"]["p90"]),
        )
    yield listed
    if rows and len(parts) > rows:
        yield Text(f"and {len(parts) - rows:,} more; --rows 0 lists all", style="dim")


def _classes(
    title: str, column: str, classes: list[Facts], whole: float, written: Callable[[float], str]
) -> Iterator[RenderableType]:
    yield heading(title)
    listed = table(column, ("jobs", "right"), ("GPU-hours", "right"), ("share", "right"))
    for part in classes:
        low, high = part["from"], part["to"]
        name = f"{written(low)} and more" if high is None else f"{written(low)} to {written(high)}"
        name = written(low) if low == high else name
        share = percent(part["gpu_hours"] / whole if whole else 0.0)
        listed.add_row(Text(name), f"{part['jobs']:,}", number(part["gpu_hours"], 0), share)
    yield listed


def odd_rows(odd: Sequence[OddRow], rows: int) -> Iterator[RenderableType]:
    """Yield what is odd about rows: how often, and the first of them by line."""
    if not odd:
        return
    kinds: dict[str, list[OddRow]] = {}
    for row in odd:
        kinds.setdefault(row.kind, []).append(row)
    yield heading("Odd rows", f"{len(odd):,}, of which {sum(row.kind.left_out for row in odd):,} left out")
    listed = table("what", ("rows", "right"), "read as", "first lines", "for example")
    for kind, members in sorted(kinds.items(), key=lambda entry: (-len(entry[1]), entry[0])):
        lines = ", ".join(f"{row.line:,}" for row in members[:5]) + (" ..." if len(members) > 5 else "")
        outcome = "left out" if members[0].kind.left_out else "kept"
        listed.add_row(kind, f"{len(members):,}", outcome, lines, Text(brief(members[0].message)))
    yield listed
    if rows:
        yield Text("--rows 0 lists every odd row", style="dim")
        return
    every = table(("line", "right"), "what", "why")
    for row in odd:
        every.add_row(f"{row.line:,}", str(row.kind), Text(row.message))
    yield Text("")
    yield every
