"""The command line: one small program, its commands in `evenhand_api.commands`."""

from __future__ import annotations

from typing import Annotated

import typer

from evenhand_api import __version__
from evenhand_api.commands.allocate import allocate_command
from evenhand_api.commands.audit import audit_command
from evenhand_api.commands.audit_speedups import audit_speedups_command
from evenhand_api.commands.export import export_command
from evenhand_api.commands.fairness import fairness_command
from evenhand_api.commands.schema import schema_command
from evenhand_api.commands.serve import serve_command
from evenhand_api.commands.terminal import EXIT_CODES

app = typer.Typer(
    name="evenhand",
    help="An even hand over uneven GPUs: who gets which GPUs of a shared cluster, fairly, optimally, with proof.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("allocate")(allocate_command)
app.command("serve")(serve_command)
app.command("audit")(audit_command)
app.command("audit-speedups")(audit_speedups_command)
app.command("export")(export_command)
app.command("fairness")(fairness_command)
app.command("schema")(schema_command)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"evenhand {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and leave."),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line."""
    app()


if __name__ == "__main__":
    main()
