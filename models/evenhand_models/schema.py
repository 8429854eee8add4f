"""The wire contract as JSON Schema 2020-12, made from the models themselves."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from evenhand_models.comparison import ObjectiveComparison
from evenhand_models.observations import ObservedWork, SpeedupAuditRequest
from evenhand_models.plan import Plan
from evenhand_models.request import AllocateRequest
from evenhand_models.speedup_report import SpeedupReport

ASKED = (AllocateRequest, SpeedupAuditRequest, ObservedWork)
"""What may come in."""
ANSWERED = (Plan, SpeedupReport, ObjectiveComparison)
"""What goes out."""


def json_schema() -> dict[str, Any]:
    """Return one schema for both directions: ``#/$defs/AllocateRequest``, ``#/$defs/Plan`` and so on.

    A document is valid if it is one of `ASKED` or `ANSWERED`. Equal versions give equal schemas, keys in one order.
    """
    roots = [model.__name__ for model in (*ASKED, *ANSWERED)]
    _, schema = models_json_schema(
        [*((model, "validation") for model in ASKED), *((model, "serialization") for model in ANSWERED)]
    )
    return {
        "$schema": GenerateJsonSchema.schema_dialect,
        "title": "The evenhand wire contract, v1",
        "anyOf": [{"$ref": f"#/$defs/{name}"} for name in roots],
        "$defs": dict(sorted(schema["$defs"].items())),
    }
