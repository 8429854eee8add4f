"""evenhand serve: the REST service."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from evenhand_api.commands.settings import SettingsFile
from evenhand_api.commands.terminal import reported
from evenhand_api.settings import Settings


def serve_command(
    host: Annotated[
        str | None, typer.Option(help="Address to listen on; 127.0.0.1 unless EVENHAND_HOST says otherwise.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65_535, help="TCP port, 0: any free one; 8080 unless EVENHAND_PORT says."),
    ] = None,
    settings_file: SettingsFile = None,
) -> None:
    """Serve until Ctrl-C. Settings are EVENHAND_* variables or keys of a TOML file; evenhand settings shows them."""
    with reported():
        settings = Settings.from_environment(os.environ, settings_file)
        wished = {"host": host, "port": port}
        settings = settings.model_copy(update={name: value for name, value in wished.items() if value is not None})
        from evenhand_api.service import serve

        serve(settings)
