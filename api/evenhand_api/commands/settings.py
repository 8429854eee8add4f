"""evenhand settings: what the service would run with, and where each value comes from."""

from __future__ import annotations

import json
import os
from typing import Annotated

import typer
from rich.text import Text

from evenhand_api.commands.terminal import JsonOption, reported, write_bytes, write_report
from evenhand_api.report.text import table
from evenhand_api.settings import Settings

SettingsFile = Annotated[
    str | None,
    typer.Option("--settings", metavar="FILE", help="A TOML file with settings; else EVENHAND_SETTINGS_FILE's."),
]


def settings_command(*, settings_file: SettingsFile = None, as_json: JsonOption = False) -> None:
    """Show every setting with its value; what is secret in it is masked."""
    with reported():
        settings = Settings.from_environment(os.environ, settings_file)
        shown = settings.shown()
        if as_json:
            write_bytes(json.dumps(shown, indent=2).encode() + b"\n")
            return
        listed = table("setting", "value", "set", "meaning")
        for name, field in Settings.model_fields.items():
            given = "yes" if name in settings.model_fields_set else ""
            listed.add_row(Text(name), Text(str(shown[name])), Text(given), Text(field.description or ""))
        write_report([listed])
