"""The JSON Schema says what the models take: a judge that shares no code with them agrees."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

import evenhand_models
from evenhand_models import InvalidInput, json_schema, parse_policy, parse_request

SCHEMA = json_schema()


def judge(name):
    return Draft202012Validator(SCHEMA | {"anyOf": [{"$ref": f"#/$defs/{name}"}]})


def test_the_schema_is_valid_and_of_draft_2020_12():
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_two_processes_make_the_same_schema():
    code = "import json, evenhand_models; print(json.dumps(evenhand_models.json_schema()))"
    root = Path(evenhand_models.__file__).parents[1]
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(root)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(runs) == 1
    assert json.loads(runs.pop()) == json.loads(json.dumps(SCHEMA))


def every_field():
    for name, model in SCHEMA["$defs"].items():
        for field, rules in model.get("properties", {}).items():
            yield pytest.param(rules, id=f"{name}.{field}")


@pytest.mark.parametrize("rules", list(every_field()))
def test_every_field_says_what_it_means(rules):
    assert rules["description"].endswith(".")


def test_descriptions_hold_nothing_that_concerns_only_python():
    assert "Raises" not in json.dumps(SCHEMA)


def test_every_object_refuses_unknown_fields():
    assert all(
        model.get("additionalProperties") is False for model in SCHEMA["$defs"].values() if "properties" in model
    )


def test_a_sound_request_is_valid_by_the_schema(sound):
    judge("AllocateRequest").validate(sound)


@pytest.mark.parametrize(
    ("path", "value"),
    [(("jobs", 0, "gpus"), value) for value in (-1, 0, 0.5, 1e308, 2**63, True, "8", None, 4.0, 10**6, 10**6 + 1)]
    + [
        (("jobs", 0, "speedup"), value)
        for value in ({}, {"": 1}, {"a\tb": 1}, {"h100": -1}, {"h100": 0}, {"h100": 1e31}, [])
    ]
    + [(("jobs", 0, "id"), value) for value in ("", "a\tb", "x" * 257, "é", 3)]
    + [(("jobs", 0, "min_gpus"), value) for value in (None, 0, 4)]
    + [(("nodes", 0, "labels"), value) for value in ({"rack": ""}, {"rack": 1}, {"rack": None}, {"": "x"}, None)]
    + [(("nodes", 0, "status"), value) for value in ("up", "down", "UP", None)]
    + [(("groups", 0, "share"), value) for value in (0, -0.1, 1e12, 1e13, "1")]
    + [(("gpu_types", 0, "charge_rate"), value) for value in (0, 1e-9, 1e6, 1e7)]
    + [
        (("now",), value)
        for value in (
            "2026-11-01T12:00:00",
            "2026-11-01T12:00:00+09",
            "2026-11-01T12:00:00.1234567890Z",
            "1969-12-31T23:59:59Z",
            "1970-06-01T00:00:00+01:00",
            "2200-01-01T00:00:00Z",
            5,
        )
    ],
)
def test_schema_and_parser_agree_on_a_single_value(sound, errors_of, path, value):
    *way, last = path
    at = sound["state"]
    for step in way:
        at = at[step]
    at[last] = value
    by_schema = judge("AllocateRequest").is_valid(sound)
    assert by_schema == (errors_of(sound) == {})


@pytest.mark.parametrize("field", sorted(SCHEMA["$defs"]["Policy"]["properties"]))
@pytest.mark.parametrize("value", [0, 1, -1, 0.5, 64, 65, 3600, 3601, 1e300, True, "x", None, [], math.pi])
def test_schema_and_parser_agree_on_every_policy_value(field, value):
    try:
        parse_policy(json.dumps({field: value}).encode())
        taken = True
    except InvalidInput:
        taken = False
    assert judge("Policy").is_valid({field: value}) == taken


def test_what_a_request_is_written_as_is_valid_by_the_schema(sound):
    request = parse_request(json.dumps(sound).encode())
    judge("AllocateRequest").validate(json.loads(request.model_dump_json()))


def test_the_words_offered_are_sorted_and_all_there():
    names = evenhand_models.__all__
    assert names == sorted(names)
    assert all(hasattr(evenhand_models, name) for name in names)
