"""evenhand fairness: every objective on one state, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenhand_api.commands.inputs import read_request
from evenhand_api.commands.terminal import (
    EXIT_CODES,
    Failure,
    JsonOption,
    PolicyOption,
    StateArgument,
    reported,
    say,
    terminal_width,
    write_bytes,
    write_report,
)
from evenhand_api.report.fairness import fairness_report
from evenhand_models import ObjectiveComparison


def fairness_command(
    state: StateArgument,
    *,
    policy: PolicyOption = None,
    as_json: JsonOption = False,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the comparison too; .svg or .png says the format.", show_default=False),
    ] = None,
    rows: Annotated[int, typer.Option(min=0, help="Most groups in the report; 0: all.")] = 20,
) -> None:
    """Show what each objective would make of a state: throughput, sharing incentive, envy, waste, side by side."""
    with reported():
        if plot is not None and plot.suffix.lower() not in {".svg", ".png"}:
            raise typer.BadParameter(f"{plot} must end in .svg or .png", param_hint="--plot")
        request = read_request(state, policy)
        from evenhand import compare_objectives

        found = compare_objectives(request.state, request.policy)
        if plot is not None:
            _draw(found, plot)
        if as_json:
            write_bytes(found.model_dump_json().encode() + b"\n")
        else:
            write_report(fairness_report(found, terminal_width(), rows))


fairness_command.__doc__ = f"{fairness_command.__doc__}\n\n{EXIT_CODES}"


def _draw(found: ObjectiveComparison, out: Path) -> None:
    """Write the plot.

    Raises
    ------
    Failure
        If matplotlib is not there, or the file cannot be written.
    """
    try:
        from evenhand_api.report.fairness_plot import plot_comparison
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "matplotlib":
            raise
        raise Failure("plots need matplotlib: pip install 'evenhand[plot]'.") from None
    try:
        plot_comparison(found, out)
    except OSError as reason:
        raise Failure(f"{out} cannot be written: {reason.strerror or reason}.") from None
    say(f"evenhand: wrote {out}")
