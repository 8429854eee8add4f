"""evenhand ledger: look at the ledger, export it, adjust it, check it, replay it, let it forget."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress
from rich.text import Text
from sqlalchemy import Connection, Engine, func, select

from evenhand_api.commands.terminal import (
    EXIT_CODES,
    ExitCode,
    Failure,
    JsonOption,
    reported,
    write_bytes,
    write_report,
)
from evenhand_api.ledger import export, retention
from evenhand_api.ledger.adjustments import add_adjustment
from evenhand_api.ledger.amounts import as_gpu_hours
from evenhand_api.ledger.clusters import find_cluster, list_clusters
from evenhand_api.ledger.database import reading, writing
from evenhand_api.ledger.errors import LedgerUnavailable, UnknownName
from evenhand_api.ledger.fading import faded_differences, rebuild_faded
from evenhand_api.ledger.instants import HOUR, SECOND, to_us, written
from evenhand_api.ledger.opening import Ledger
from evenhand_api.ledger.replay import Replayed, replay
from evenhand_api.ledger.rollups import differences, rebuild
from evenhand_api.ledger.tables import rounds
from evenhand_api.ledger.usage import window_usage
from evenhand_api.ledger.words import instant_of
from evenhand_api.report.text import heading, table
from evenhand_api.settings import Settings
from evenhand_models import FieldError, InvalidInput

ledger_app = typer.Typer(
    help="What the service remembers: usage, rounds, adjustments. EVENHAND_DATA_DIR or EVENHAND_DATABASE_URL says where.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
)
ClusterArgument = Annotated[str, typer.Argument(metavar="CLUSTER", help="Name of the cluster.", show_default=False)]
FromOption = Annotated[str | None, typer.Option("--from", metavar="INSTANT", help="Begin of the period (RFC 3339).")]
ToOption = Annotated[str | None, typer.Option("--to", metavar="INSTANT", help="End of the period (RFC 3339).")]
LINES = 5_000
"""Lines of an export that are written at once."""


class Format(StrEnum):
    """How an export is written."""

    CSV = "csv"
    """One line each, a header first."""
    JSON = "json"
    """One JSON object a line."""


@ledger_app.command("show")
def show_command(
    cluster: Annotated[str | None, typer.Argument(metavar="CLUSTER", help="Left out: lists all clusters.")] = None,
    start: FromOption = None,
    end: ToOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what groups were charged over a period; the policy's window up to the last round unless said."""
    with _opened() as engine, reading(engine) as connection:
        if cluster is None:
            _show_clusters(connection, as_json)
            return
        found = find_cluster(connection, cluster)
        to = _instant(end, "--to", found.last_now_us)
        begin = _instant(start, "--from", to - found.policy.window_s * SECOND)
        begin = max(begin, found.kept_from_us)
        used = window_usage(connection, found.id, begin, to)
        hours = {group: as_gpu_hours(amount) for group, amount in used.items()}
        if as_json:
            period = {"from_at": written(begin), "to_at": written(to)}
            _write_json({"cluster": cluster, "last_round": found.last_round} | period | {"charged_gpu_hours": hours})
            return
        listed = table("group", ("charged GPU-hours", "right"))
        for group, used_hours in hours.items():
            listed.add_row(Text(group), Text(f"{used_hours:,.3f}"))
        title = f"Cluster {cluster}: charged from {written(begin)} to {written(to)} ({found.last_round:,} rounds)"
        write_report([heading(title), listed])


def _show_clusters(connection: Connection, as_json: bool) -> None:
    found = [find_cluster(connection, name) for name in list_clusters(connection)]
    rows = [
        {
            "cluster": one.name,
            "rounds": one.last_round,
            "last_now": None if one.last_now_us is None else written(one.last_now_us),
            "config_version": one.config_version,
        }
        for one in found
    ]
    if as_json:
        _write_json(rows)
        return
    listed = table("cluster", ("rounds", "right"), "last round at", ("configuration", "right"))
    for row in rows:
        listed.add_row(*(Text(str(row[name] if row[name] is not None else "")) for name in row))
    write_report([heading(f"{len(rows):,} clusters"), listed])


@ledger_app.command("export")
def export_command(
    cluster: ClusterArgument,
    form: Annotated[Format, typer.Option("--format", help="csv, or json: one object a line.")] = Format.CSV,
    start: FromOption = None,
    end: ToOption = None,
) -> None:
    """Write every line of a cluster's ledger to standard output: occupancy, what goes on, adjustments."""
    with _opened() as engine, reading(engine) as connection:
        found = find_cluster(connection, cluster)
        from_us = None if start is None else _instant(start, "--from", None)
        to_us_ = None if end is None else _instant(end, "--to", None)
        if form is Format.CSV:
            write_bytes((",".join(export.FIELDS) + "\n").encode())
        batch: list[dict[str, Any]] = []
        for line in export.lines(connection, found.id, from_us, to_us_):
            batch.append(line)
            if len(batch) == LINES:
                _write_lines(batch, form)
                batch = []
        _write_lines(batch, form)


def _write_lines(lines: list[dict[str, Any]], form: Format) -> None:
    out = io.StringIO()
    if form is Format.JSON:
        out.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    else:
        csv.DictWriter(out, export.FIELDS, lineterminator="\n").writerows(lines)
    write_bytes(out.getvalue().encode())


@ledger_app.command("adjust")
def adjust_command(
    cluster: ClusterArgument,
    group: Annotated[str, typer.Argument(metavar="GROUP", help="Id of the group.", show_default=False)],
    hours: Annotated[
        str, typer.Argument(metavar="HOURS", help="Charged GPU-hours to add; put -- before a negative one.")
    ],
    reason: Annotated[str, typer.Option(help="Why; kept for good.", show_default=False)],
    author: Annotated[str, typer.Option(help="Who decided it; kept for good.", show_default=False)],
    at: Annotated[
        str | None, typer.Option(metavar="INSTANT", help="When it counts; the last round unless said.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Add charged GPU-hours to a group's usage, or take them off, with a reason and an author."""
    with _opened() as engine:
        try:
            amount = Decimal(hours)
        except InvalidOperation:
            raise InvalidInput([FieldError("HOURS", f"{hours!r} is no number.")]) from None
        if not amount.is_finite() or not reason.strip() or not author.strip():
            raise InvalidInput([FieldError("", "HOURS must be finite, the reason and the author not empty.")])
        at_us = None if at is None else _instant(at, "--at", None)
        with writing(engine) as connection:
            found = find_cluster(connection, cluster, lock=True)
            kept = add_adjustment(
                connection, found, group=group, hours=amount, reason=reason, author=author, at_us=at_us
            )
        if as_json:
            _write_json(kept)
        else:
            write_report(
                [Text(f"Adjustment {kept['adjustment']}: {group} {amount:+} charged GPU-hours at {kept['at']}.")]
            )


@ledger_app.command("check")
def check_command(
    cluster: ClusterArgument,
    repair: Annotated[bool, typer.Option("--repair", help="Make the sums anew where they differ.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Hold hourly sums, and those under a half-life, against the intervals; exit code 1 if they differ."""
    with _opened() as engine:
        with writing(engine) as connection:
            found = find_cluster(connection, cluster, lock=True)
            wrong = differences(connection, found.id, found.kept_from_us // HOUR)
            faded = faded_differences(connection, found.id)
            if repair and wrong:
                rebuild(connection, found.id)
            if repair and faded:
                rebuild_faded(connection, found.id)
        off = bool(wrong or faded)
        cells = [{"hour_at": written(h * HOUR), "group": g, "gpu_type": t, "charged": c} for h, g, t, c in wrong]
        if as_json:
            said = {"cluster": cluster, "ok": not off, "repaired": off and repair, "cells": cells}
            _write_json(said | {"half_life_groups": faded})
        elif not off:
            write_report([Text(f"The sums of {cluster} are what its intervals make them.")])
        else:
            listed = table("hour", "group", "type", "charged")
            for cell in cells[:50]:
                listed.add_row(*(Text(str(value)) for value in cell.values()))
            done = "; they were made anew" if repair else ""
            title = f"{len(cells):,} hourly sums and {len(faded):,} under the half-life differ from the intervals{done}"
            write_report([heading(title), listed])
        if off:
            raise typer.Exit(ExitCode.DISAGREES)


@ledger_app.command("replay")
def replay_command(
    cluster: ClusterArgument,
    first: Annotated[int, typer.Option(min=1, help="Number of the first round.")] = 1,
    last: Annotated[int | None, typer.Option(min=1, help="Number of the last one; the latest unless said.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Decide stored rounds again; exit code 1 if a plan is not what it was."""
    from evenhand import allocate

    with _opened() as engine, reading(engine) as connection:
        found = find_cluster(connection, cluster)
        r = rounds.c
        query = select(func.count()).where(r.cluster_id == found.id, r.n >= first, r.n <= (last or found.last_round))
        count = connection.execute(query).scalar_one()
        done: list[Replayed] = []
        with Progress(console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task("rounds", total=count)
            for one in replay(connection, found, allocate, first, last):
                done.append(one)
                progress.advance(task)
        bad = [one for one in done if not one.ok]
        unsure = [one.n for one in done if one.ok and not one.same_plan]
        if as_json:
            said = {"cluster": cluster, "rounds": len(done), "same": sum(one.same_plan for one in done)}
            _write_json(said | {"differ": [one.n for one in bad], "cut_by_time_or_other_engine": unsure})
        else:
            lines = [Text(f"{sum(one.same_plan for one in done):,} of {len(done):,} rounds give the same plan again.")]
            if unsure:
                lines.append(Text(f"{len(unsure):,} were cut by the clock or decided by another version."))
            if bad:
                lines.append(Text(f"{len(bad):,} differ, the first is round {bad[0].n}.", style="bold red"))
            write_report(lines)
        if bad:
            raise typer.Exit(ExitCode.DISAGREES)


@ledger_app.command("forget")
def forget_command(
    cluster: ClusterArgument,
    before: Annotated[str, typer.Option(metavar="INSTANT", help="What ended before is deleted.", show_default=False)],
    as_json: JsonOption = False,
) -> None:
    """Delete what ended before an instant that the policy's window no longer reaches; export it first."""
    with _opened() as engine:
        with writing(engine) as connection:
            found = find_cluster(connection, cluster, lock=True)
            gone = retention.forget_before(connection, found, _instant(before, "--before", None))
        if as_json:
            _write_json({"cluster": cluster, "intervals": gone.intervals, "rounds": gone.rounds, "jobs": gone.jobs})
        else:
            said = f"Forgotten: {gone.jobs:,} jobs with {gone.intervals:,} intervals, and {gone.rounds:,} rounds."
            write_report([Text(said)])


@contextmanager
def _opened() -> Iterator[Engine]:
    """Open the ledger the settings name; what it refuses becomes a line on standard error."""
    with reported():
        try:
            ledger = Ledger(Settings.from_environment(os.environ))
            try:
                yield ledger.engine()
            finally:
                ledger.close()
        except LedgerUnavailable as away:
            raise Failure(f"{away}.") from None
        except UnknownName as unknown:
            raise InvalidInput([FieldError("CLUSTER", f"{unknown}.")]) from None


def _instant(text: str | None, option: str, otherwise: int | None) -> int:
    """Read an instant from the command line, else take another."""
    if text is None:
        if otherwise is None:
            raise InvalidInput([FieldError(option, "there has been no round yet: say an instant.")])
        return otherwise
    try:
        return to_us(instant_of(text))
    except ValueError as refused:
        raise InvalidInput([FieldError(option, f"{refused}.")]) from None


def _write_json(document: object) -> None:
    write_bytes(json.dumps(document, ensure_ascii=False).encode() + b"\n")
