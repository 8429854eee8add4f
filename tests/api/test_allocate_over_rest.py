"""POST /v1/allocate: a plan for what is right, every fault with its pointer for what is wrong."""

import gzip
import json
from typing import Any

import pytest
from starlette.testclient import TestClient

from evenhand_models import parse_plan

JSON = {"Content-Type": "application/json"}


def post(client: TestClient, body: Any, **headers: str) -> Any:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return client.post("/v1/allocate", content=content, headers=JSON | headers)


def test_a_right_request_gets_a_verified_plan_with_one_assignment_for_each_job(client: TestClient, tiny: Any) -> None:
    answer = post(client, tiny)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    plan = parse_plan(answer.content)
    assert [assignment.job for assignment in plan.assignments] == ["train-1", "train-2"]
    assert plan.certificate.verified


def test_the_policy_is_obeyed_and_echoed(client: TestClient, tiny: Any) -> None:
    tiny["policy"] = {"objective": "fair_share", "seed": 7}
    plan = parse_plan(post(client, tiny).content)
    assert (plan.policy.objective, plan.policy.seed, plan.policy.window_s) == ("fair_share", 7, 604_800)


def test_a_body_may_come_as_gzip(client: TestClient, tiny: Any) -> None:
    packed = gzip.compress(json.dumps(tiny).encode())
    assert post(client, packed, **{"Content-Encoding": "gzip"}).status_code == 200


def test_the_same_request_gets_the_same_plan(client: TestClient, tiny: Any) -> None:
    first, second = (post(client, tiny).json() for _ in range(2))
    assert first.pop("solver")["plan_hash"] == second.pop("solver")["plan_hash"]
    assert first == second


def test_all_faults_come_back_at_once_with_pointers(client: TestClient, tiny: Any) -> None:
    jobs = tiny["state"]["jobs"]
    jobs[0]["gpus"] = 0.5
    jobs[1]["colour"] = "red"
    tiny["state"]["nodes"].append({"name": "n1", "gpu_type": "h100", "gpus": 8})
    tiny["policy"] = {"window_s": 0}
    answer = post(client, tiny)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert set(problem) == {"type", "title", "status", "detail", "errors"}
    assert problem["status"] == 422
    pointers = {error["pointer"] for error in problem["errors"]}
    assert pointers == {
        "/state/jobs/0/gpus",
        "/state/jobs/1/colour",
        "/state/nodes/1/name",
        "/policy/window_s",
    }


@pytest.mark.parametrize("gpus", [-1, 0, 0.5, 2**63, 1e308, "8", True, None])
def test_odd_numbers_of_gpus_are_refused_with_their_pointer(client: TestClient, tiny: Any, gpus: object) -> None:
    tiny["state"]["jobs"][0]["gpus"] = gpus
    answer = post(client, tiny)
    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/state/jobs/0/gpus"]


def test_two_jobs_of_one_id_are_refused_naming_it(client: TestClient, tiny: Any) -> None:
    tiny["state"]["jobs"][1]["id"] = "train-1"
    answer = post(client, tiny)
    assert answer.status_code == 422
    assert "train-1" in answer.json()["errors"][0]["message"]


def test_a_cycle_in_the_tree_is_refused(client: TestClient, tiny: Any) -> None:
    tiny["state"]["groups"][0]["parent"] = "vision"
    assert post(client, tiny).status_code == 422


def test_a_contract_above_the_cap_is_refused_naming_the_cap(client: TestClient, tiny: Any) -> None:
    tiny["state"]["jobs"][0]["contract"]["min_runtime_s"] = 9 * 3600
    answer = post(client, tiny)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/state/jobs/0/contract/min_runtime_s"
    assert "28800" in answer.json()["errors"][0]["message"]


def test_a_time_limit_above_what_the_service_allows_is_refused(client: TestClient, tiny: Any) -> None:
    tiny["policy"] = {"time_limit_s": 600}
    answer = post(client, tiny)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/policy/time_limit_s"


def test_one_job_of_an_unknown_group_does_not_fail_the_others(client: TestClient, tiny: Any) -> None:
    tiny["state"]["jobs"][1]["group"] = "nobody"
    plan = parse_plan(post(client, tiny).content)
    assert {a.job: a.action for a in plan.assignments} == {"train-1": "start", "train-2": "infeasible"}
    assert plan.warnings


def test_a_state_with_nothing_in_it_gets_an_empty_plan(client: TestClient) -> None:
    state = {"now": "2026-11-01T00:00:00Z", "gpu_types": [], "nodes": [], "groups": [], "jobs": []}
    answer = post(client, {"state": state})
    assert answer.status_code == 200, answer.text
    assert parse_plan(answer.content).assignments == ()


def test_the_same_instants_in_other_zones_get_the_same_plan(client: TestClient, tiny: Any) -> None:
    moved = json.loads(json.dumps(tiny).replace("T12:00:00Z", "T21:00:00+09:00"))
    assert moved != tiny
    first, second = post(client, tiny).json(), post(client, moved).json()
    assert first["solver"]["plan_hash"] == second["solver"]["plan_hash"]
