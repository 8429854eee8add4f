"""What Prometheus reads: valid, complete, and true to what was decided."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

import evenhand.rounds
from evenhand import allocate
from evenhand_api.metrics.figures import figures_of
from evenhand_api.rest.rounds import TINY
from evenhand_api.settings import Settings
from evenhand_models import parse_request
from service.conftest import Office
from service.departments import CLUSTER, CONFIG, ROUNDS
from service.inline import inline_client


def samples(client: TestClient, **headers: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    answer = client.get("/metrics", headers=headers)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    families = text_string_to_metric_families(answer.text)
    return {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}


def value(found: dict[Any, float], name: str, **labels: str) -> float:
    return found[f"evenhand_{name}", frozenset(labels.items())]


@pytest.fixture
def client(tmp_path: Path) -> TestClient:
    return inline_client(Settings(data_dir=str(tmp_path)))


def test_rounds_are_counted_by_status_stage_gap_and_action(client: TestClient) -> None:
    assert client.put(f"/v1/clusters/{CLUSTER}", json=CONFIG).status_code == 201
    wanted: dict[str, int] = {}
    for request in ROUNDS:
        plan = client.post(f"/v1/clusters/{CLUSTER}/rounds", json=request).json()["plan"]
        for assignment in plan["assignments"]:
            wanted[assignment["action"]] = wanted.get(assignment["action"], 0) + 1
    found = samples(client)
    for action, jobs in wanted.items():
        assert value(found, "actions_total", cluster=CLUSTER, action=action) == jobs
    assert wanted["preempt"] > 0
    assert value(found, "preemptions_total", cluster=CLUSTER) == wanted["preempt"]
    assert value(found, "rounds_total", cluster=CLUSTER, status="optimal") == 3
    assert value(found, "round_gap_count", cluster=CLUSTER) == 3
    assert value(found, "fallbacks_total", cluster=CLUSTER) == 0
    for stage in plan["solver"]["stages_ms"]:
        assert value(found, "round_stage_seconds_count", stage=stage) == 3
    assert value(found, "requests_total", route="/v1/clusters/{name}/rounds", method="POST", status="200") == 3


def test_a_round_asked_for_again_by_its_key_is_not_counted_again(client: TestClient) -> None:
    client.put(f"/v1/clusters/{CLUSTER}", json=CONFIG)
    for _ in range(3):
        answer = client.post(f"/v1/clusters/{CLUSTER}/rounds", json=ROUNDS[0], headers={"Idempotency-Key": "k"})
        assert answer.status_code == 200
    assert value(samples(client), "rounds_total", cluster=CLUSTER, status="optimal") == 1


def test_owed_and_received_stand_by_group_as_the_report_says(office: Office) -> None:
    from evenhand_api.access.grants import Scope

    token = office.token(Scope.READ)
    found = samples(office.client, **token)
    period = "from=2026-10-25T14:00:00Z&to=2026-11-01T14:00:00Z"
    report = office.client.get(f"/v1/clusters/{CLUSTER}/owed-received?{period}", headers=token).json()
    assert {group["group"] for group in report["groups"]} >= {"acorn", "birch"}
    for group in report["groups"]:
        labels = {"cluster": CLUSTER, "group": group["group"]}
        assert value(found, "owed_gpu_hours", **labels) == pytest.approx(group["owed_gpu_hours"])
        assert value(found, "received_gpu_hours", **labels) == pytest.approx(group["received_gpu_hours"])
    assert value(found, "ledger_up") == 1


def test_a_plan_that_fails_its_audit_is_counted_and_so_is_the_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    request = parse_request(TINY)
    real, asked = evenhand.rounds.Auditor.judge, []

    def doubting(auditor: Any, plan: Any) -> Any:
        report = real(auditor, plan)
        asked.append(plan)
        if len(asked) > 1:
            return report
        broken = plan.model_copy(update={"assignments": plan.assignments[1:]})
        return real(auditor, broken)

    monkeypatch.setattr(evenhand.rounds.Auditor, "judge", doubting)
    figures = figures_of(allocate(request.state, request.policy))
    assert (figures.status, figures.audit_failed) == ("fallback", True)


def test_metrics_are_there_while_the_ledger_is_away(tmp_path: Path) -> None:
    client = inline_client(Settings(database_url=f"postgresql+psycopg://nobody@/none?host={tmp_path}"))
    found = samples(client)
    assert value(found, "ledger_up") == 0
    assert value(found, "rounds_waiting") == 0


def test_paths_that_lead_nowhere_make_no_new_series(client: TestClient) -> None:
    for n in range(20):
        client.get(f"/nothing/{n}")
        client.request(f"ODD{n}", f"/nothing/{n}")
    found = samples(client)
    assert value(found, "requests_total", route="none", method="any", status="404") == 40
    assert len([key for key in found if key[0] == "evenhand_requests_total"]) == 1


def test_the_log_of_a_round_has_its_number_and_its_requests_id(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import logging

    from evenhand_api.logs import write_log
    from evenhand_api.rest.workers import _tell
    from evenhand_api.settings import LogFormat, LogLevel

    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        write_log(LogFormat.JSON, LogLevel.INFO)
        client = inline_client(Settings(data_dir=str(tmp_path)))
        answer = client.get("/v1/clusters", headers={"X-Request-Id": "abc-1"})
        forged = client.get("/v1/clusters", headers={"X-Request-Id": "a b\x7f"})
        request = parse_request(TINY)
        _tell(figures_of(allocate(request.state, request.policy)).of_round("sky", 7), 0.25, "abc-2")
        lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
    assert answer.headers["x-request-id"] == "abc-1"
    assert len(forged.headers["x-request-id"]) == 32
    by_id = {line.get("request_id"): line for line in lines}
    asked, decided = by_id["abc-1"], by_id["abc-2"]
    assert (asked["path"], asked["status"], asked["level"]) == ("/v1/clusters", 200, "info")
    assert (decided["cluster"], decided["round"], decided["status"], decided["ms"]) == ("sky", 7, "optimal", 250)


def test_a_line_of_text_cannot_be_forged_by_what_stands_in_it() -> None:
    import logging

    from evenhand_api.logs import TextLines

    record = logging.LogRecord("x", logging.INFO, "f", 1, "path %s", ("/a\n2026 ERROR forged",), None)
    assert len(TextLines().format(record).splitlines()) == 1
