"""evenhand export: the round as a program any solver reads."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenhand_api.commands.inputs import read_request
from evenhand_api.commands.terminal import EXIT_CODES, Failure, PolicyOption, StateArgument, reported, say


def export_command(
    state: StateArgument,
    out: Annotated[
        Path,
        typer.Argument(metavar="OUT", help="File to write; .lp or .mps says the format.", show_default=False),
    ],
    policy: PolicyOption = None,
) -> None:
    """Write the round's mixed-integer program, its rows named after what they say, as LP or MPS."""
    with reported():
        if out.suffix.lower() not in {".lp", ".mps"}:
            raise typer.BadParameter(f"{out} must end in .lp or .mps", param_hint="OUT")
        request = read_request(state, policy)
        from evenhand.crosscheck import export_program

        try:
            export_program(request.state, request.effective_policy, out)
        except OSError as reason:
            raise Failure(f"{out} cannot be written: {reason.strerror or reason}.") from None
        say(f"evenhand: wrote {out}")


export_command.__doc__ = f"{export_command.__doc__}\n\n{EXIT_CODES}"
