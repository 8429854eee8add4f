"""The service describes itself truly: against its own schemas, and under schemathesis."""

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import jsonschema
import schemathesis
from hypothesis import HealthCheck, settings
from starlette.testclient import TestClient

from evenhand_api.rest.openapi import openapi_document

VALID_BY_SCHEMA_ONLY = [
    # JSON Schema cannot say that ids are unique or that placements fit their nodes: 422 is right for those.
    schemathesis.checks.positive_data_acceptance,
    schemathesis.checks.max_response_time,
]


def nodes_of(part: object, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(part, dict):
        yield path, part
        for key, value in part.items():
            yield from nodes_of(value, f"{path}/{key}")
    elif isinstance(part, list):
        for index, value in enumerate(part):
            yield from nodes_of(value, f"{path}/{index}")


def test_it_is_openapi_31_with_every_model_and_every_field_described() -> None:
    document = openapi_document()
    assert document["openapi"].startswith("3.1")
    for name, model in document["components"]["schemas"].items():
        assert model.get("description"), name
        for field, schema in model.get("properties", {}).items():
            assert schema.get("description"), f"{name}.{field}"
            assert "Raises" not in schema["description"]


def test_every_reference_leads_somewhere_and_every_keyword_is_one_of_json_schema() -> None:
    document = openapi_document()
    models = document["components"]["schemas"]
    known = set(jsonschema.Draft202012Validator.VALIDATORS) | {
        *("$ref", "title", "description", "default", "format", "properties", "enum", "const", "examples"),
    }
    for name, model in models.items():
        jsonschema.Draft202012Validator.check_schema(model)
        for path, node in nodes_of(model, name):
            if isinstance(reference := node.get("$ref"), str):
                assert reference.removeprefix("#/components/schemas/") in models, path
            if not path.endswith(("/properties", "/default")) and "/default/" not in path:
                assert set(node) <= known, (path, set(node) - known)


def test_every_link_leads_to_an_operation_with_all_that_stands_in_its_path() -> None:
    listed = (o for path in openapi_document()["paths"].values() for o in path.values() if "operationId" in o)
    operations = {o["operationId"]: o for o in listed}
    count = 0
    for source in operations.values():
        for answer in source["responses"].values():
            for name, link in answer.get("links", {}).items():
                count += 1
                takes = {p["name"]: p["required"] for p in operations[link["operationId"]]["parameters"]}
                assert set(link["parameters"]) == {p for p, required in takes.items() if required}, name
    assert count > 20


def test_the_document_is_served_and_is_what_the_command_line_writes(client: TestClient) -> None:
    assert client.get("/openapi.json").json() == openapi_document()


def test_a_request_and_its_plan_fit_their_schemas(client: TestClient, tiny: Any) -> None:
    document = openapi_document()
    plan = client.post("/v1/allocate", json=tiny).json()
    for value, name in ((tiny, "AllocateRequest"), (plan, "Plan")):
        schema = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
        jsonschema.Draft202012Validator(schema).validate(value)


def test_the_examples_in_the_document_are_requests_that_work(client: TestClient) -> None:
    content = openapi_document()["paths"]["/v1/allocate"]["post"]["requestBody"]["content"]
    for example in content["application/json"]["examples"].values():
        assert client.post("/v1/allocate", json=example["value"]).status_code == 200


def test_liveness_and_readiness_answer_what_they_say(client: TestClient) -> None:
    models = openapi_document()["components"]["schemas"]
    client.post("/v1/allocate", json={})  # waits for the first round
    for path, model in (("/healthz", "Health"), ("/readyz", "Readiness")):
        answer = client.get(path)
        assert answer.status_code == 200, answer.text
        jsonschema.Draft202012Validator(models[model]).validate(answer.json())


schema = schemathesis.openapi.from_dict(openapi_document())


@schema.parametrize()
@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_no_request_breaks_the_service_or_its_description(case: schemathesis.Case, service: str) -> None:
    response = case.call(base_url=service, timeout=120)
    if case.path == "/readyz" and response.status_code == 503:
        return  # not warm yet, and says so
    if case.path == "/v1/whatif" and response.status_code == 202:
        httpx2.delete(service + response.headers["location"][0])  # what is drawn need not be replayed
    case.validate_response(response, excluded_checks=VALID_BY_SCHEMA_ONLY)
    if response.status_code >= 400:
        assert json.loads(response.content)["status"] == response.status_code
