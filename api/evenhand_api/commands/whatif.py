"""evenhand whatif: would a job start if it came now, when, and who would go."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from evenhand_api.commands.inputs import read_request
from evenhand_api.commands.progress import counted
from evenhand_api.commands.terminal import (
    EXIT_CODES,
    JsonOption,
    PolicyOption,
    StateArgument,
    read_input,
    reported,
    write_bytes,
    write_report,
)
from evenhand_api.report.forecast import forecast_report
from evenhand_models import AllocateRequest
from evenhand_models.parse import read_json
from evenhand_models.whatif import WhatIfStartRequest, parse_whatif_start


def whatif_command(
    state: StateArgument,
    *,
    add: Annotated[
        list[str],
        typer.Option(
            metavar="JOB",
            help="A job that might come, or a list of them, as JSON; may be repeated.",
            show_default=False,
        ),
    ],
    policy: PolicyOption = None,
    as_json: JsonOption = False,
    rounds: Annotated[
        int, typer.Option(min=0, max=1_000, help="Most later rounds to decide; 0: this round only.")
    ] = 24,
    rows: Annotated[int, typer.Option(min=0, help="Most rows of a list of jobs in the report; 0: all.")] = 20,
) -> None:
    """Say whether jobs that do not exist would start now, when, and who would go. Nothing is reserved or changed."""
    with reported():
        if [state, *add, policy].count("-") > 1:
            raise typer.BadParameter("only one of STATE, --add and --policy can be standard input")
        asked = _question(read_request(state, policy), add)
        from evenhand.whatif import what_if_start

        with counted("deciding rounds", rounds + 2) as progress:
            answer = what_if_start(asked.state, asked.add, asked.policy, rounds=rounds, progress=progress)
        if as_json:
            write_bytes(answer.model_dump_json().encode() + b"\n")
        else:
            write_report(forecast_report(answer, rows))


whatif_command.__doc__ = f"{whatif_command.__doc__}\n\n{EXIT_CODES}"


def _question(request: AllocateRequest, paths: list[str]) -> WhatIfStartRequest:
    """Put a state, a policy and the jobs of some files together; pointers of errors are relative to that."""
    jobs: list[object] = []
    for path in paths:
        document = read_json(read_input(path))
        jobs += document if isinstance(document, list) else [document]
    document = json.loads(request.model_dump_json(exclude_unset=True)) | {"add": jobs}
    return parse_whatif_start(json.dumps(document).encode())
