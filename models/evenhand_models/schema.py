"""The wire contract as JSON Schema 2020-12, made from the models themselves."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from evenhand_models.comparison import ObjectiveComparison
from evenhand_models.plan import Plan
from evenhand_models.request import AllocateRequest


def json_schema() -> dict[str, Any]:
    """Return one schema for both directions: ``#/$defs/AllocateRequest``, ``#/$defs/Plan`` and the other answers.

    A document is valid if it is one of them. Equal versions give equal schemas, keys in one order.
    """
    answers = (Plan, ObjectiveComparison)
    _, schema = models_json_schema(
        [(AllocateRequest, "validation"), *((answer, "serialization") for answer in answers)]
    )
    return {
        "$schema": GenerateJsonSchema.schema_dialect,
        "title": "The evenhand wire contract, v1",
        "anyOf": [{"$ref": f"#/$defs/{model.__name__}"} for model in (AllocateRequest, *answers)],
        "$defs": dict(sorted(schema["$defs"].items())),
    }
