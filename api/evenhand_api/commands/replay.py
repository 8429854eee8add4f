"""evenhand replay and evenhand sweep: what months of jobs would have got, under one scenario or many."""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand_api.commands.progress import shares
from evenhand_api.commands.terminal import (
    EXIT_CODES,
    Failure,
    JsonOption,
    read_input,
    reported,
    say,
    terminal_width,
    write_bytes,
    write_report,
)
from evenhand_api.commands.trace import (
    ColumnsOption,
    FormatOption,
    GroupByOption,
    SinceOption,
    TraceArgument,
    UntilOption,
    mention_odd,
    read_cluster,
    read_options,
)
from evenhand_api.traces import Format, read_trace
from evenhand_models import InvalidInput, Policy, parse_policy

if TYPE_CHECKING:
    from evenhand.replay import Scheduler
    from evenhand_api.whatif.runs import Base, Run

NeededCluster = Annotated[
    str,
    typer.Option(
        "--cluster", metavar="FILE", help="A state, or gpu_types, nodes and groups, as JSON.", show_default=False
    ),
]
DaysOption = Annotated[float | None, typer.Option(min=0.01, help="Replay only so many days from the beginning.")]
OutOption = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Keep finished runs here; what is there is not replayed again."),
]
HtmlOption = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write a report with plots, one file.")]
WorkersOption = Annotated[
    int | None, typer.Option(min=1, help="Processes that replay; left out: one a processor.", show_default=False)
]
RayOption = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Replay on a Ray cluster instead (needs the extra named ray).")
]
BaseOption = Annotated[
    list[str] | None,
    typer.Option("--base", metavar="FILE", help="A scenario laid under all runs; may be repeated.", show_default=False),
]
RulesOption = Annotated[
    str | None,
    typer.Option("--policy", metavar="FILE", help="A policy as JSON; left out: defaults.", show_default=False),
]
SeedsOption = Annotated[int, typer.Option(min=1, max=1_000, help="So many seeds, 0 and up; more give confidence.")]


def replay_command(
    trace: TraceArgument,
    *,
    cluster: NeededCluster,
    scenario: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE", help="A scenario as YAML or JSON, beside the base; may be repeated.", show_default=False
        ),
    ] = None,
    scheduler: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Who decides: evenhand, first_fit, backfill ...; may be repeated."),
    ] = None,
    base: BaseOption = None,
    policy: RulesOption = None,
    seeds: SeedsOption = 1,
    days: DaysOption = None,
    out: OutOption = None,
    html: HtmlOption = None,
    as_json: JsonOption = False,
    workers: WorkersOption = None,
    ray: RayOption = None,
    layout: FormatOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    group_by: GroupByOption = None,
    columns: ColumnsOption = None,
) -> None:
    """Replay a trace on a cluster with the engine itself, beside scenarios and other schedulers."""
    with reported():
        from evenhand.replay import Scheduler
        from evenhand_api.whatif.grid import load_scenario
        from evenhand_api.whatif.runs import Run
        from evenhand_models.scenarios import BASE

        deciders = [_scheduler(name) for name in scheduler or [str(Scheduler.EVENHAND)]]
        scenarios = [BASE, *(load_scenario(path) for path in scenario or ())]
        runs = [Run(one, who, seed) for one in scenarios for who in deciders for seed in range(seeds)]
        common = _base(trace, cluster, base or [], policy, days, layout, (since, until), group_by, columns)
        _replay_all(common, runs, out, html, as_json, workers, ray)


def sweep_command(
    trace: TraceArgument,
    grid: Annotated[
        str, typer.Argument(metavar="GRID", help="Scenarios, policy values, schedulers, seeds: YAML or JSON.")
    ],
    *,
    cluster: NeededCluster,
    out: Annotated[
        Path,
        typer.Option(
            "--out", metavar="DIR", help="Where finished runs are kept; run again to go on.", show_default=False
        ),
    ],
    base: BaseOption = None,
    policy: RulesOption = None,
    days: DaysOption = None,
    html: HtmlOption = None,
    as_json: JsonOption = False,
    workers: WorkersOption = None,
    ray: RayOption = None,
    layout: FormatOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    group_by: GroupByOption = None,
    columns: ColumnsOption = None,
) -> None:
    """Replay a trace under every combination of a grid; a sweep that was stopped goes on where it was."""
    with reported():
        from evenhand_api.whatif.grid import load_grid

        runs = load_grid(grid).runs()
        common = _base(trace, cluster, base or [], policy, days, layout, (since, until), group_by, columns)
        _replay_all(common, runs, out, html, as_json, workers, ray)


def report_command(
    runs: Annotated[list[str], typer.Argument(metavar="RUNS...", help="Folders or files of finished runs.")],
    *,
    html: HtmlOption = None,
    as_json: JsonOption = False,
    only: Annotated[
        list[str] | None, typer.Option(metavar="LABEL", help="Only runs of this label, in this order; may be repeated.")
    ] = None,
) -> None:
    """Set finished runs side by side: as a table, as JSON, or as one HTML file with plots."""
    with reported():
        from evenhand_api.whatif.store import read_results

        _show(read_results(runs), html, as_json, only)


for _command in (replay_command, sweep_command, report_command):
    _command.__doc__ = f"{_command.__doc__}\n\n{EXIT_CODES}"


def _scheduler(name: str) -> Scheduler:
    from evenhand.replay import Scheduler

    try:
        return Scheduler(name)
    except ValueError:
        raise typer.BadParameter(f"{name!r} is none of {', '.join(Scheduler)}", param_hint="--scheduler") from None


def _base(
    trace: str,
    cluster: str,
    under: list[str],
    policy: str | None,
    days: float | None,
    layout: Format | None,
    period: tuple[datetime | None, datetime | None],
    group_by: str | None,
    columns: str | None,
) -> Base:
    """Read what all runs have in common."""
    from evenhand.replay import WorldRules
    from evenhand.scenarios import ReplayCase, laid_over
    from evenhand_api.whatif.grid import load_scenario
    from evenhand_api.whatif.runs import Base

    on = read_cluster(cluster)
    rules = _policy(policy)
    reading = read_trace(trace, read_options(*period, group_by, columns, on), layout)
    mention_odd(trace, reading)
    case = ReplayCase(reading.trace, on.model_copy(update={"now": reading.trace.t0}), rules, WorldRules())
    for path in under:
        try:
            case = laid_over(case, load_scenario(path))
        except InvalidInput as invalid:
            raise (invalid if "#" in invalid.errors[0].pointer else invalid.under(f"{path}#")) from None
    return Base(case, None if days is None else round(days * 86_400))


def _policy(path: str | None) -> Policy:
    if path is None:
        return Policy()
    try:
        return parse_policy(read_input(path))
    except InvalidInput as invalid:
        raise invalid.under(f"{path}#") from None


def _replay_all(
    base: Base,
    runs: list[Run],
    out: Path | None,
    html: Path | None,
    as_json: bool,
    workers: int | None,
    ray: str | None,
) -> None:
    """Replay what is not finished, and show everything."""
    from evenhand_api.whatif.pools import Here, Pool, Processes, Ray
    from evenhand_api.whatif.store import Folder, Memory
    from evenhand_api.whatif.sweep import sweep

    count = min(len(runs), workers or os.cpu_count() or 1)
    pool: Pool = Ray(ray) if ray is not None else Here() if count == 1 else Processes(count)
    store = Memory() if out is None else Folder(out)
    try:
        with shares(f"replaying {len(runs):,} runs") as share:
            results = sweep(base, runs, pool, store, lambda part, *_: share(part))
    except KeyboardInterrupt:
        say("evenhand: stopped." + (f" What was finished is kept in {out}: run again to go on." if out else ""))
        raise typer.Exit(128 + 2) from None
    _show(results, html, as_json, None)


def _show(results: list[dict[str, Any]], html: Path | None, as_json: bool, only: list[str] | None) -> None:
    """Write results as a table or JSON to standard output, and as HTML to a file."""
    from evenhand_api.report.comparison import MOST_RUNS, compare
    from evenhand_api.report.comparison_table import comparison_table

    if only:
        by_label = {label: [result for result in results if result["label"] == label] for label in only}
        if missing := [label for label, own in by_label.items() if not own]:
            known = ", ".join(sorted({result["label"] for result in results}))
            raise typer.BadParameter(f"there is no run {missing[0]!r}; there are: {known}", param_hint="--only")
        results = [result for own in by_label.values() for result in own]
    comparison = compare(results)
    if html is not None:
        from evenhand_api.report.page import comparison_page

        shown = comparison.first(MOST_RUNS)
        _write(html, comparison_page(shown))
        left = len(comparison.labels) - len(shown.labels)
        say(
            f"evenhand: wrote {html}"
            + (f" with the first {MOST_RUNS} runs; {left} more are not in it (--only)" if left else "")
        )
    if as_json:
        write_bytes(json.dumps(comparison.to_json(), ensure_ascii=False).encode() + b"\n")
    else:
        write_report(comparison_table(comparison, terminal_width()))


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as reason:
        raise Failure(f"{path} cannot be written: {reason.strerror or reason}.") from None
