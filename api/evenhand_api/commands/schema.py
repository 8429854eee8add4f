"""evenhand schema: the wire contract for programs."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, Any

import typer

from evenhand_api.commands.terminal import reported, write_bytes
from evenhand_models import json_schema


class Which(StrEnum):
    """Which description to write."""

    REQUEST = "request"
    """What POST /v1/allocate takes."""
    PLAN = "plan"
    """What it answers."""
    OBSERVATIONS = "observations"
    """A file of observations for audit-speedups."""
    SPEEDUP_REPORT = "speedup-report"
    """What audit-speedups answers."""
    OPENAPI = "openapi"
    """The whole service."""


ROOTS = {
    Which.REQUEST: "AllocateRequest",
    Which.PLAN: "Plan",
    Which.OBSERVATIONS: "ObservedWork",
    Which.SPEEDUP_REPORT: "SpeedupReport",
}


def schema_command(
    which: Annotated[Which, typer.Argument(help="What to describe.")] = Which.REQUEST,
) -> None:
    """Write the JSON Schema of what goes in or comes out, or the service's OpenAPI document."""
    with reported():
        if which is Which.OPENAPI:
            from evenhand_api.rest.openapi import openapi_document

            document = openapi_document()
        else:
            document = _rooted_at(ROOTS[which])
        write_bytes(json.dumps(document, indent=2, ensure_ascii=False).encode() + b"\n")


def _rooted_at(root: str) -> dict[str, Any]:
    """Cut the contract's schema down to one model and what it refers to."""
    whole = json_schema()
    wanted, found = [root], set[str]()
    while wanted:
        name = wanted.pop()
        if name not in found:
            found.add(name)
            wanted += _references(whole["$defs"][name])
    return {
        "$schema": whole["$schema"],
        "title": f"evenhand {root}",
        "$ref": f"#/$defs/{root}",
        "$defs": {name: schema for name, schema in whole["$defs"].items() if name in found},
    }


def _references(node: object) -> list[str]:
    """List the models a schema refers to."""
    if isinstance(node, list):
        return [name for item in node for name in _references(item)]
    if not isinstance(node, dict):
        return []
    own = [node["$ref"].rsplit("/", 1)[-1]] if isinstance(node.get("$ref"), str) else []
    return own + [name for value in node.values() for name in _references(value)]
