"""evenhand audit: judge a plan from the state alone."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.text import Text

from evenhand_api.commands.inputs import read_request
from evenhand_api.commands.terminal import (
    EXIT_CODES,
    ExitCode,
    JsonOption,
    PolicyOption,
    StateArgument,
    read_input,
    reported,
    write_bytes,
    write_report,
)
from evenhand_api.report.text import heading, names, table
from evenhand_models import InvalidInput, parse_plan


def audit_command(
    state: StateArgument,
    plan: Annotated[
        str,
        typer.Argument(metavar="PLAN", help="A plan as JSON, as allocate --json writes it.", show_default=False),
    ],
    policy: PolicyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check a plan against every rule, from the state alone and without a solver."""
    with reported():
        if state == plan == "-":
            raise typer.BadParameter("only one of STATE and PLAN can be standard input")
        request = read_request(state, policy)
        try:
            judged = parse_plan(read_input(plan))
        except InvalidInput as invalid:
            raise invalid.under(f"{plan}#") from None
        from evenhand import audit

        report = audit(request.state, judged, request.policy)
        if as_json:
            findings = [{"rule": f.rule, "message": f.message, "refs": list(f.refs)} for f in report.findings]
            document = {"ok": report.ok, "findings": findings}
            write_bytes(json.dumps(document, ensure_ascii=False).encode() + b"\n")
        elif report.ok:
            write_report([Text("The plan keeps every rule.")])
        else:
            listed = table("rule", "finding", "names")
            for finding in report.findings:
                listed.add_row(Text(finding.rule), Text(finding.message), Text(names(finding.refs, 6)))
            write_report([heading(f"The plan breaks rules: {len(report.findings):,} findings"), listed])
        if not report.ok:
            raise typer.Exit(ExitCode.DISAGREES)


audit_command.__doc__ = f"{audit_command.__doc__}\n\n{EXIT_CODES}"
