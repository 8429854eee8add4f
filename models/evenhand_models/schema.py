"""The wire contract as JSON Schema 2020-12, made from the models themselves."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from evenhand_models.plan import Plan
from evenhand_models.replays import ReplayOutcome, ReplayRequest, ReplayStatus
from evenhand_models.request import AllocateRequest
from evenhand_models.whatif import WhatIfStart, WhatIfStartRequest


def json_schema() -> dict[str, Any]:
    """Return one schema for both directions: ``#/$defs/AllocateRequest`` and ``#/$defs/Plan``.

    A document is valid if it is one of the two; what-if questions and answers are defined
    beside them. Equal versions give equal schemas, keys in one order.
    """
    _, schema = models_json_schema(
        [
            (AllocateRequest, "validation"),
            (Plan, "serialization"),
            (WhatIfStartRequest, "validation"),
            (WhatIfStart, "serialization"),
            (ReplayRequest, "validation"),
            (ReplayStatus, "serialization"),
            (ReplayOutcome, "serialization"),
        ]
    )
    return {
        "$schema": GenerateJsonSchema.schema_dialect,
        "title": "The evenhand wire contract, v1",
        "anyOf": [{"$ref": "#/$defs/AllocateRequest"}, {"$ref": "#/$defs/Plan"}],
        "$defs": dict(sorted(schema["$defs"].items())),
    }
