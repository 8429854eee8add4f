"""evenhand trace: describe a trace, convert it, or build a cluster for it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

import typer

from evenhand_api.commands.terminal import EXIT_CODES, JsonOption, read_input, reported, say, write_bytes, write_report
from evenhand_api.report.trace_report import trace_report
from evenhand_api.traces import Format, Reading, ReadOptions, read_trace
from evenhand_api.traces.clusters import built_cluster, groups_of_budget, groups_of_trace, parse_cluster
from evenhand_api.traces.describe import description
from evenhand_api.traces.neutral import write_neutral
from evenhand_models import ClusterState, InvalidInput

trace_app = typer.Typer(
    name="trace",
    help="Describe a trace, convert it, or build a cluster to replay it on.",
    no_args_is_help=True,
    epilog=EXIT_CODES,
)

TraceArgument = Annotated[
    str,
    typer.Argument(
        metavar="TRACE",
        help="A trace: neutral CSV, sacct --parsable2 or --json, SWF, Philly, Helios or Alibaba 2023; may be gzip; "
        "- reads standard input.",
        show_default=False,
    ),
]
FormatOption = Annotated[
    Format | None, typer.Option("--from", help="Layout of the file; told by its beginning if left out.")
]
SinceOption = Annotated[
    datetime | None,
    typer.Option("--since", formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"], help="Begin here; what ran before seeds usage."),
]
UntilOption = Annotated[
    datetime | None,
    typer.Option("--until", formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"], help="End here, not included."),
]
GroupByOption = Annotated[
    str | None, typer.Option(metavar="FIELD", help="What names the group: account, partition, qos, user, queue, vc ...")
]
ClusterOption = Annotated[
    str | None,
    typer.Option(
        "--cluster", metavar="FILE", help="A state, or gpu_types, nodes and groups, as JSON.", show_default=False
    ),
]
ColumnsOption = Annotated[
    str | None, typer.Option(metavar="A,B,...", help="Columns of a file without header, joined by commas.")
]


class Target(StrEnum):
    """What a trace can be converted to."""

    CSV = "csv"
    """The neutral CSV."""


def read_cluster(path: str) -> ClusterState:
    """Read a cluster file.

    Raises
    ------
    InvalidInput
        With pointers that begin with the file's name.
    """
    try:
        return parse_cluster(read_input(path))
    except InvalidInput as invalid:
        raise invalid.under(f"{path}#") from None


def read_options(
    since: datetime | None,
    until: datetime | None,
    group_by: str | None,
    columns: str | None,
    cluster: ClusterState | None,
) -> ReadOptions:
    """Put what a command line says about reading together."""
    return ReadOptions(
        since=None if since is None else since.replace(tzinfo=UTC),
        until=None if until is None else until.replace(tzinfo=UTC),
        group_by=group_by,
        columns=tuple(columns.split(",")) if columns else (),
        groups=None if cluster is None else frozenset(group.id for group in cluster.groups),
        gpu_types=None if cluster is None else frozenset(kind.name for kind in cluster.gpu_types),
        charge_rates={} if cluster is None else {kind.name: kind.charge_rate for kind in cluster.gpu_types},
    )


@trace_app.command("describe")
def describe_command(
    trace: TraceArgument,
    *,
    layout: FormatOption = None,
    cluster: ClusterOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    group_by: GroupByOption = None,
    columns: ColumnsOption = None,
    as_json: JsonOption = False,
    rows: Annotated[int, typer.Option(min=0, help="Most rows of a list; 0: all, every odd row too.")] = 20,
) -> None:
    """Say what a trace asks for: jobs, GPU-hours, groups, gangs, run times, and every odd row by line."""
    with reported():
        on = None if cluster is None else read_cluster(cluster)
        reading = read_trace(trace, read_options(since, until, group_by, columns, on), layout)
        facts = description(reading, on)
        if as_json:
            odd = [{"line": row.line, "kind": str(row.kind), "message": row.message} for row in reading.odd]
            write_bytes(json.dumps(facts | {"odd_rows": odd}, ensure_ascii=False).encode() + b"\n")
        else:
            write_report(trace_report(facts, reading.odd, rows))


@trace_app.command("convert")
def convert_command(
    trace: TraceArgument,
    *,
    to: Annotated[Target, typer.Option(help="Layout to write.")] = Target.CSV,
    layout: FormatOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    group_by: GroupByOption = None,
    columns: ColumnsOption = None,
) -> None:
    """Write a trace in another layout to standard output; odd rows are counted on standard error."""
    with reported():
        reading = read_trace(trace, read_options(since, until, group_by, columns, None), layout)
        assert to is Target.CSV
        write_bytes(write_neutral(reading.trace).encode())
        mention_odd(trace, reading)


def mention_odd(path: str, reading: Reading) -> None:
    """Say on standard error how many rows were odd."""
    if reading.odd:
        left_out = len({row.line for row in reading.odd if row.kind.left_out})
        say(
            f"evenhand: {len(reading.odd):,} odd rows in {path}, {left_out:,} left out, the first in line "
            f"{reading.odd[0].line:,}: {reading.odd[0].message} (evenhand trace describe --rows 0 lists all)"
        )


@trace_app.command("cluster")
def cluster_command(
    gpus: Annotated[list[str], typer.Argument(metavar="TYPE=COUNT...", help="GPUs by type, for example h100=1024.")],
    *,
    gpus_per_node: Annotated[int, typer.Option(min=1, help="GPUs of a node.")] = 8,
    budget: Annotated[str | None, typer.Option(metavar="FILE", help="A budget tree; budgets become shares.")] = None,
    depth: Annotated[int, typer.Option(min=1, max=3, help="Levels of the budget tree to take.")] = 2,
    trace: Annotated[
        str | None,
        typer.Option(metavar="TRACE", help="Without a budget: a group with an equal share for each it names."),
    ] = None,
) -> None:
    """Write a cluster of equal nodes as JSON, to replay on: its groups from a budget tree or from a trace."""
    with reported():
        if (budget is None) == (trace is None):
            raise typer.BadParameter("give --budget or --trace, for the groups")
        if budget is not None:
            groups = groups_of_budget(read_input(budget), depth)
        else:
            groups = groups_of_trace(read_trace(trace or "").trace)
        cluster = built_cluster(_counts(gpus), gpus_per_node, groups)
        write_bytes(cluster.model_dump_json(indent=1, exclude_defaults=True).encode() + b"\n")


def _counts(parts: list[str]) -> dict[str, int]:
    """Read ``h100=1024``."""
    found = {}
    for part in parts:
        kind, _, count = part.rpartition("=")
        if not kind or not count.isdecimal() or not 0 < int(count) <= 10**6:
            raise typer.BadParameter(f"{part!r} does not read TYPE=COUNT", param_hint="TYPE=COUNT")
        found[kind] = int(count)
    return found
