"""CASE 37: a token of one department learns nothing of another by name: not in lists, gets or explanations, nor by asking."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evenhand_api.access.grants import Scope
from evenhand_api.access.veil import HIDDEN
from service.conftest import Office
from service.departments import CLUSTER, CONFIG, OWN, ROUNDS, STRANGERS

SKY = f"/v1/clusters/{CLUSTER}"
PERIOD = "?from=2026-11-01T11:00:00Z&to=2026-11-01T15:00:00Z"
READS = [
    "/v1/clusters",
    SKY,
    f"{SKY}/rounds",
    *(f"{SKY}/rounds/{n}" for n in (1, 2, 3)),
    *(f"{SKY}/jobs/{job}/explanation" for job in ("seed-1", "seed-2", "seed-3")),
    f"{SKY}/groups",
    f"{SKY}/owed-received{PERIOD}",
    f"{SKY}/occupancy{PERIOD}",
    f"{SKY}/usage{PERIOD}",
]


def named(document: object, names: frozenset[str]) -> set[str]:
    """Names that occur anywhere in a document, as values, as keys, or within sentences."""
    text = json.dumps(document)
    return {name for name in names if name in text}


def test_the_other_departments_names_stand_nowhere_in_what_a_token_of_one_may_read(office: Office) -> None:
    mine = office.token(Scope.READ, cluster=CLUSTER, groups=["acorn"])
    seen: set[str] = set()
    for path in READS:
        answer = office.client.get(path, headers=mine)
        assert answer.status_code == 200, (path, answer.text)
        assert named(answer.json(), STRANGERS) == set(), path
        assert answer.headers["evenhand-view"] == "part"
        seen |= named(answer.json(), OWN)
    assert seen == OWN


def test_the_same_answers_name_them_to_a_token_of_the_whole_tree(office: Office) -> None:
    everything = office.token(Scope.READ)
    seen: set[str] = set()
    for path in [*READS, f"{SKY}/jobs/quartz-1/explanation"]:
        seen |= named(office.client.get(path, headers=everything).json(), STRANGERS | OWN)
    assert seen == STRANGERS | OWN


def test_reasons_keep_their_numbers_where_names_are_taken_out(office: Office) -> None:
    path = f"{SKY}/jobs/seed-1/explanation"
    whole = office.client.get(path, headers=office.token(Scope.READ)).json()
    part = office.client.get(path, headers=office.token(Scope.READ, groups=["acorn"])).json()
    reasons = [d["latest"]["assignment"]["reasons"] for d in (whole, part)]
    assert [reason["code"] for reason in reasons[0]] == [reason["code"] for reason in reasons[1]]
    told = " ".join(reason["message"] for reason in reasons[1])
    assert HIDDEN in told
    assert "h100" in told


@pytest.mark.parametrize("job", ["quartz-1", "quartz-2", "quartz two, late", "jasper-9", "no-such-job"])
def test_a_strangers_job_and_one_that_is_not_there_are_refused_in_the_same_words(office: Office, job: str) -> None:
    mine = office.token(Scope.READ, groups=["acorn"])
    answer = office.client.get(f"{SKY}/jobs/{job}/explanation", headers=mine)
    assert answer.status_code == 403
    nothing = office.client.get(f"{SKY}/jobs/nothing/explanation", headers=mine)
    assert answer.json() == nothing.json()


@pytest.mark.parametrize("path", ["", "/rounds", "/rounds/1", "/groups", "/usage", "/owed-received", "/occupancy"])
def test_another_cluster_and_one_that_is_not_there_are_refused_in_the_same_words(office: Office, path: str) -> None:
    for limits in ({"groups": ["acorn"]}, {"cluster": CLUSTER}, {"cluster": CLUSTER, "groups": ["acorn"]}):
        mine = office.token(Scope.READ, **limits)
        there = office.client.get(f"/v1/clusters/elsewhere{path}", headers=mine)
        nowhere = office.client.get(f"/v1/clusters/nowhere{path}", headers=mine)
        assert (there.status_code, nowhere.status_code) == (403, 403)
        assert there.json() == nowhere.json()


def test_the_list_of_clusters_holds_those_the_token_covers_a_part_of(office: Office) -> None:
    def listed(**limits: Any) -> list[str]:
        answer = office.client.get("/v1/clusters", headers=office.token(Scope.READ, **limits))
        clusters: list[str] = answer.json()["clusters"]
        return clusters

    assert listed() == ["elsewhere", CLUSTER]
    assert listed(groups=["acorn"]) == [CLUSTER]
    assert listed(cluster="elsewhere") == ["elsewhere"]
    assert listed(groups=["cedar"]) == ["elsewhere"]
    assert listed(cluster="elsewhere", groups=["acorn"]) == []


def test_a_subgroup_does_not_see_its_parent_or_siblings(office: Office) -> None:
    mine = office.token(Scope.READ, groups=["acorn/vision"])
    siblings = frozenset({"acorn/text", "seed-2", "seed-3", "kai.z"})
    for path in [*READS[:6], f"{SKY}/jobs/seed-1/explanation", *READS[9:]]:
        answer = office.client.get(path, headers=mine)
        assert answer.status_code == 200
        assert named(answer.json(), STRANGERS | siblings) == set(), path
        assert '"acorn"' not in answer.text
    assert office.client.get(f"{SKY}/jobs/seed-2/explanation", headers=mine).status_code == 403


def test_it_cannot_submit_a_round_configure_or_adjust(office: Office) -> None:
    mine = office.token(Scope.READ, Scope.SUBMIT, groups=["acorn"])
    for method, path, body in [
        ("POST", f"{SKY}/rounds", ROUNDS[2]),
        ("POST", "/v1/allocate", {"state": {}}),
        ("PUT", SKY, CONFIG),
        ("POST", "/v1/audit/speedups", {"state": {}, "observations": []}),
        ("POST", f"{SKY}/observations", {"observations": []}),
        ("GET", f"{SKY}/speedups", None),
        (
            "POST",
            f"{SKY}/adjustments",
            {"group": "acorn", "charged_gpu_hours": -5, "reason": "mine", "author": "uma.z"},
        ),
    ]:
        assert office.client.request(method, path, json=body, headers=mine).status_code == 403, path


AT = "2026-11-01T14:05:00Z"
PLACED = [{"node": "n1", "gpus": 1}]


@pytest.mark.parametrize(
    "event",
    [
        {"kind": "ended", "at": AT, "job": "quartz-1"},
        {"kind": "started", "at": AT, "job": "quartz two, late", "placement": PLACED},
        {"kind": "started", "at": AT, "job": "quartz two, late", "group": "acorn", "placement": PLACED},
        {"kind": "started", "at": AT, "job": "fresh", "group": "birch/deep", "placement": PLACED},
        {"kind": "started", "at": AT, "job": "seed-3", "group": "birch", "placement": PLACED},
        {"kind": "ended", "at": AT, "job": "nobody-knows"},
        {"kind": "node_down", "at": AT, "node": "n1"},
    ],
)
def test_it_cannot_report_events_of_others_or_of_nodes(office: Office, event: dict[str, Any]) -> None:
    mine = office.token(Scope.SUBMIT, groups=["acorn"])
    own = {"kind": "ended", "at": AT, "job": "seed-2"}
    before = office.client.get(f"{SKY}/usage{PERIOD}", headers=office.token(Scope.READ)).json()
    answer = office.client.post(f"{SKY}/events", json={"events": [own, event]}, headers=mine)
    assert answer.status_code == 403
    assert office.client.get(f"{SKY}/usage{PERIOD}", headers=office.token(Scope.READ)).json() == before


def test_it_can_report_events_of_its_own_jobs_gzip_too(office: Office) -> None:
    import gzip

    mine = office.token(Scope.SUBMIT, groups=["acorn"])
    events = [
        {"kind": "started", "at": AT, "job": "seed-3", "placement": PLACED},
        {"kind": "started", "at": AT, "job": "seed-4", "group": "acorn/text", "placement": PLACED},
    ]
    body = gzip.compress(json.dumps({"events": events}).encode())
    headers = mine | {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    answer = office.client.post(f"{SKY}/events", content=body, headers=headers)
    assert (answer.status_code, answer.json()) == (200, {"cluster": CLUSTER, "recorded": 2})


@pytest.mark.parametrize("body", [b"[]", b"{", b'{"events": 1}', b'{"events": [1]}', b'{"events": [{"job": 1}]}'])
def test_a_body_that_is_no_list_of_events_is_refused_like_anybodys(office: Office, body: bytes) -> None:
    headers = office.token(Scope.SUBMIT, groups=["acorn"]) | {"Content-Type": "application/json"}
    assert office.client.post(f"{SKY}/events", content=body, headers=headers).status_code in {400, 403, 422}
