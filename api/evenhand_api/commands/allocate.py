"""evenhand allocate: decide one round."""

from __future__ import annotations

import difflib
import json
from typing import Annotated

import typer

from evenhand_api.commands.inputs import read_request
from evenhand_api.commands.terminal import (
    EXIT_CODES,
    ExitCode,
    JsonOption,
    PolicyOption,
    StateArgument,
    reported,
    say,
    terminal_width,
    write_bytes,
    write_report,
)
from evenhand_api.report import explanation, plan_report
from evenhand_models import AllocateRequest, CertificateStatus, Job, Plan


def allocate_command(
    state: StateArgument,
    *,
    policy: PolicyOption = None,
    as_json: JsonOption = False,
    explain: Annotated[
        str | None,
        typer.Option(metavar="JOB", help="Show everything about one job instead.", show_default=False),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--cross-check", help="Solve again by another formulation and another solver, compare."),
    ] = False,
    rows: Annotated[int, typer.Option(min=0, help="Most rows of a list of jobs in the report; 0: all.")] = 20,
) -> None:
    """Decide one round and show the plan: what starts, stops and waits, why, and what is proven."""
    with reported():
        request = read_request(state, policy)
        job = None if explain is None else find_job(request, explain)
        from evenhand import allocate

        plan = allocate(request.state, request.policy)
        if as_json:
            write_bytes(_job_json(plan, job) if job else plan.to_json_bytes() + b"\n")
        elif job:
            write_report(explanation(request.state, plan, job))
        else:
            write_report(plan_report(request.state, plan, terminal_width(), rows))
        if plan.certificate.status is CertificateStatus.FALLBACK:
            say("evenhand: the plan is the fallback's: it keeps every rule, but a better one may exist.")
        if check:
            _cross_check(request, plan)


allocate_command.__doc__ = f"{allocate_command.__doc__}\n\n{EXIT_CODES}"


def find_job(request: AllocateRequest, name: str) -> Job:
    """Find a job of the state by its id.

    Raises
    ------
    typer.BadParameter
        If there is none; names those that look like it.
    """
    for job in request.state.jobs:
        if job.id == name:
            return job
    near = difflib.get_close_matches(name, [job.id for job in request.state.jobs], 3)
    raise typer.BadParameter(
        f"no job {name!r} in the state" + (f"; near it: {', '.join(near)}" if near else ""),
        param_hint="--explain",
    )


def _job_json(plan: Plan, job: Job) -> bytes:
    """Write what there is about one job as JSON."""
    document = {
        "now": plan.model_dump(mode="json", include={"now"})["now"],
        "job": job.model_dump(mode="json"),
        "assignment": next(a.model_dump(mode="json") for a in plan.assignments if a.job == job.id),
        "group": next((g.model_dump(mode="json") for g in plan.groups if g.group == job.group), None),
        "calendar": next((c.model_dump(mode="json") for c in plan.calendar if c.job == job.id), None),
    }
    return json.dumps(document, ensure_ascii=False).encode() + b"\n"


def _cross_check(request: AllocateRequest, plan: Plan) -> None:
    """Compare with a second formulation; what it says goes to standard error, so that --json stays JSON."""
    from evenhand.crosscheck import cross_check

    say("cross-check: solving the round again by another formulation and another solver, up to a minute ...")
    check = cross_check(request.state, request.effective_policy, plan)
    say(f"cross-check: {'agrees' if check.agrees else 'DISAGREES'}: {check.message}")
    if not check.agrees:
        raise typer.Exit(ExitCode.DISAGREES)
