"""evenhand audit-speedups: hold declared speedups against what was observed."""

from __future__ import annotations

import gzip
import sys
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from evenhand_api.commands.inputs import read_request
from evenhand_api.commands.terminal import (
    ExitCode,
    Failure,
    JsonOption,
    StateArgument,
    read_input,
    reported,
    say,
    terminal_width,
    write_bytes,
    write_report,
)
from evenhand_api.report.speedups import speedup_report
from evenhand_models import (
    AllocateRequest,
    FieldError,
    InvalidInput,
    ObservedWork,
    SpeedupAuditRequest,
    SpeedupConsequence,
    SpeedupPolicy,
    SpeedupReport,
    SpeedupUse,
    parse_observations,
    parse_observations_csv,
)
from evenhand_models.parse_observations import csv_rows

EXIT_CODES = (
    "Exit codes: 0 done, whatever was found; 1 with --consequence refuse, and something declared was found wrong; "
    "2 wrong usage; 3 invalid input, every error printed with its JSON pointer; 4 the work could not be done. "
    "Reports go to standard output, errors to standard error."
)


def audit_speedups_command(
    state: StateArgument,
    observations: Annotated[
        str,
        typer.Argument(
            metavar="OBSERVATIONS",
            help="What was measured: JSON, or CSV if it ends in .csv; may be gzip; - reads JSON from standard input.",
            show_default=False,
        ),
    ],
    *,
    use: Annotated[
        SpeedupUse | None,
        typer.Option("--policy", help="Which speedups the next rounds go by.", show_default="declared"),
    ] = None,
    consequence: Annotated[
        SpeedupConsequence | None,
        typer.Option(help="What happens where declared speedups are found wrong.", show_default="warn"),
    ] = None,
    round_policy: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Policy of the rounds as JSON, in place of STATE's own: gains are measured by it.",
            show_default=False,
        ),
    ] = None,
    write_state: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the state that the next round should see.", show_default=False),
    ] = None,
    gains: Annotated[bool, typer.Option(help="Measure what a wrong declaration gains under each objective.")] = True,
    as_json: JsonOption = False,
    rows: Annotated[int, typer.Option(min=0, help="Most rows of a list in the report; 0: all.")] = 20,
) -> None:
    """Show who declares speedups, or resumability, that observations contradict, what it gains, and what follows."""
    with reported():
        if state == observations == "-":
            raise typer.BadParameter("only one of STATE and OBSERVATIONS can be standard input")
        if write_state == Path("-"):
            raise typer.BadParameter("standard output holds the report; name a file", param_hint="--write-state")
        asked = read_request(state, round_policy)
        request = _request(asked, observations, use, consequence)
        report = _audited(request, gains)
        if write_state is not None:
            _write_state(write_state, asked, report, with_policy=round_policy is None)
        if as_json:
            write_bytes(report.model_dump_json().encode() + b"\n")
        else:
            write_report(speedup_report(request.state, report, terminal_width(), rows))
        if write_state is not None:
            say(f"evenhand: wrote {write_state}")
        if _refuses(report):
            raise typer.Exit(ExitCode.DISAGREES)


audit_speedups_command.__doc__ = f"{audit_speedups_command.__doc__}\n\n{EXIT_CODES}"


def _request(
    asked: AllocateRequest, path: str, use: SpeedupUse | None, consequence: SpeedupConsequence | None
) -> SpeedupAuditRequest:
    """Join the state and a file of observations; what the command line says goes before what the file says."""
    body = read_input(path)
    is_table = path.lower().removesuffix(".gz").endswith(".csv")
    try:
        seen: ObservedWork = parse_observations_csv(body) if is_table else parse_observations(body)
    except InvalidInput as invalid:
        raise invalid.under(f"{path}#") from None
    said = {"use": use, "consequence": consequence}
    policy = (seen.policy or SpeedupPolicy()).model_copy(update={k: v for k, v in said.items() if v is not None})
    try:
        return SpeedupAuditRequest(
            state=asked.state,
            observations=seen.observations,
            ended_jobs=seen.ended_jobs,
            policy=policy,
            round_policy=asked.policy,
        )
    except InvalidInput as invalid:
        raise InvalidInput(_in_file(error, path, body, is_table) for error in invalid.errors) from None


def _in_file(error: FieldError, path: str, body: bytes, is_table: bool) -> FieldError:
    """Point at the place in the file of observations: a list has no /observations, a table has lines."""
    _, name, *rest = error.pointer.split("/")
    pointer = error.pointer
    if name == "observations" and is_table:
        pointer = "/".join(["", str(csv_rows(body)[int(rest[0])][0]), *rest[1:]])
    elif name == "observations" and body.lstrip().startswith(b"["):
        pointer = "/".join(["", *rest])
    return FieldError(f"{path}#{pointer}", error.message)


def _audited(request: SpeedupAuditRequest, gains: bool) -> SpeedupReport:
    """Audit, and measure gains if wanted."""
    from evenhand.speedups import audit_speedups, with_gains

    with _working("holding declared speedups against observations ..."):
        report = audit_speedups(request)
    if not gains:
        return report
    with _working("measuring what wrong declarations gain under each objective ..."):
        return with_gains(request.state, report, request.effective_round_policy)


def _working(what: str) -> AbstractContextManager[object]:
    """Show on a terminal that something takes its time; nothing elsewhere."""
    return Console(stderr=True).status(what) if sys.stderr.isatty() else nullcontext()


def _refuses(report: SpeedupReport) -> bool:
    """Whether the operator wants wrong declarations refused, and there are some."""
    if report.policy.consequence is not SpeedupConsequence.REFUSE:
        return False
    from evenhand.speedups import found_wrong

    return found_wrong(report)


def _write_state(path: Path, asked: AllocateRequest, report: SpeedupReport, with_policy: bool) -> None:
    """Write what came in, state or request, with the speedups and claims that the next round should see."""
    from evenhand.speedups import state_in_use

    changed = state_in_use(asked.state, report)
    document = changed if asked.policy is None or not with_policy else asked.model_copy(update={"state": changed})
    data = document.model_dump_json(exclude_defaults=True).encode() + b"\n"
    if path.suffix.lower() == ".gz":
        data = gzip.compress(data, mtime=0)
    beside = Path(f"{path}.part")  # STATE itself may be the file: it is whole at every moment
    try:
        beside.write_bytes(data)
        beside.replace(path)
    except OSError as reason:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise Failure(f"{path} cannot be written: {reason.strerror or reason}.") from None
