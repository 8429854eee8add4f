"""The numbered cases that need memory, through the service, on both databases."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from cases.states import NOW, after, job, nodes, ones

from evenhand_models import Group
from ledger.clusters import JSON, Cluster, actions, ended, entitled, started, usage, wire

HALVES = {"A": 1.0, "B": 1.0}


def test_case_11_a_state_version_serves_one_round(cluster: Cluster) -> None:
    cluster.configure("1x8 H100", HALVES)
    bodies = [
        {"now": NOW.isoformat(), "state_version": 0, "jobs": [wire(job(name, "A", 8))]} for name in ("one", "two")
    ]

    def post(body: object) -> Any:
        return cluster.client.post(cluster.path + "/rounds", content=json.dumps(body).encode(), headers=JSON)

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(post, bodies))
    assert sorted(a.status_code for a in answers) == [200, 409]
    assert cluster.get()["last_round"] == 1
    late = next(a for a in answers if a.status_code == 409).json()
    assert late["type"].endswith("stale-state")


def test_case_11_an_idempotency_key_gives_one_answer_for_good(cluster: Cluster) -> None:
    cluster.configure("1x8 H100", HALVES)
    first = cluster.round(NOW, [job("one", "A", 8)], key="k-1")
    assert cluster.round(NOW, [job("one", "A", 8)], key="k-1") == first
    assert cluster.round(after(1), [job("two", "A", 8)], key="k-1", status=422)["type"].endswith("key-reused")
    cluster.round(after(1), [job("one", "A", 8, on={"n0": 8}, ran=1, now=after(1))])
    assert cluster.round(NOW, [job("one", "A", 8)], key="k-1") == first
    assert cluster.get()["last_round"] == 2


def test_case_11_foreign_gpus_and_two_jobs_on_one_gpu(cluster: Cluster) -> None:
    cluster.configure(nodes("1x8 H100", foreign_gpus=4), HALVES)
    assert actions(cluster.round(NOW, [job("j", "A", 8)])) == {"j": "wait"}
    refused = cluster.round(NOW, [job("x", "A", 5, on={"n0": 5}), job("y", "B", 4, on={"n0": 4})], status=422)
    assert "'x'" in refused["errors"][0]["message"]
    assert "'y'" in refused["errors"][0]["message"]


def test_case_15_a_gpu_second_counts(cluster: Cluster) -> None:
    cluster.configure("10x1000 H100", {"A": 1, "B": 99})
    cluster.events(
        started("tiny", NOW, {"n0": 1}, group="A", min_runtime_s=60), ended("tiny", NOW + timedelta(seconds=1))
    )
    plan = cluster.round(after(1), [job("a", "A", 1), job("b", "B", 1)])["plan"]
    standing = {g["group"]: (g["usage_gpu_hours"], g["standing"]) for g in plan["groups"]}
    assert standing["A"] == (pytest.approx(1 / 3600, rel=1e-12), 2)
    assert standing["B"] == (0.0, 1)


def test_case_17_the_clock_does_not_go_back(cluster: Cluster) -> None:
    cluster.configure("1x8 H100", HALVES)
    ahead = job("j", "A", 4, on={"n0": 4}).model_copy(update={"started_at": NOW + timedelta(seconds=5)})
    plan = cluster.round(NOW, [ahead])["plan"]
    assert [w["code"] for w in plan["warnings"]] == ["started_at_clamped"]
    assert usage({"plan": plan})["A"] == 0.0
    far = ahead.model_copy(update={"started_at": after(10)})
    assert cluster.round(NOW, [far], status=422)["errors"][0]["pointer"] == "/jobs/0/started_at"
    assert cluster.round(after(-1), [], status=409)["type"].endswith("clock-went-back")
    later = cluster.round(after(60), [ahead.model_copy(update={"gpus": 4})])
    assert usage(later)["A"] == pytest.approx(4 * 3595 / 3600, rel=1e-12)


def test_case_18_zones_and_a_week_across_a_change_of_clocks(cluster: Cluster) -> None:
    cluster.configure("1x8 H100", HALVES)
    # 8 GPUs for exactly one window, told in zones that changed their clocks meanwhile: 2026-10-25 in Berlin.
    cluster.events(
        started("j", NOW, {"n0": 8}, group="A", min_runtime_s=60) | {"at": "2026-10-21T14:00:00+02:00"},
        ended("j", NOW) | {"at": "2026-10-29T13:00:00+01:00"},
    )
    plan = cluster.round(NOW, [])
    inside = cluster.get("/usage", to="2026-10-29T04:00:00-08:00")["groups"]
    assert inside == [{"group": "A", "charged_gpu_hours": 8 * 168.0}]
    assert usage(plan)["A"] == 8 * (168.0 - 72.0)


def test_case_19_an_hour_without_the_service_is_charged_once(cluster: Cluster) -> None:
    cluster.configure("1x8 H100", HALVES)
    running = {"on": {"n0": 4}}
    cluster.round(NOW, [job("j", "A", 4, **running)])
    late = cluster.round(after(60), [job("j", "A", 4, ran=60, now=after(60), **running)])
    assert usage(late)["A"] == 4.0
    again = cluster.round(after(60), [job("j", "A", 4, ran=60, now=after(60), **running)])
    assert usage(again)["A"] == 4.0
    cluster.events(started("j", NOW, {"n0": 4}), ended("j", after(75)), ended("j", after(75)))
    assert cluster.charged() == {"A": 5.0}


def test_case_20_types_are_charged_at_their_rates(cluster: Cluster) -> None:
    cluster.configure("5x4 T4, 5x4 A100", HALVES, rates={"T4": 1, "A100": 8})
    both = {"speedup": {"T4": 1.0, "A100": 8.0}}
    a = [job(f"a{i}", "A", 4, on={f"n{i}": 4}, ran=60, now=after(60), **both) for i in range(5)]
    b = [job(f"b{i}", "B", 4, on={f"n{i + 5}": 4}, ran=60, now=after(60), **both) for i in range(4)]
    waiting = [job("a-more", "A", 4, now=after(60), **both), job("b-more", "B", 4, now=after(60), **both)]
    answer = cluster.round(after(60), [*a, *b, *waiting])
    assert usage(answer) == {"A": 20.0, "B": 128.0}
    assert {g["group"]: g["standing"] for g in answer["plan"]["groups"]} == {"A": 1, "B": 2}
    assert actions(answer)["a-more"] == "start"
    assert actions(answer)["b-more"] == "wait"
    start = next(x for x in answer["plan"]["assignments"] if x["job"] == "a-more")
    assert start["gpu_type"] == "A100"
    later = [x.model_copy(update={"started_at": NOW}) for x in (*a, *b)]
    assert usage(cluster.round(after(120), later)) == {"A": 40.0, "B": 256.0}


def test_case_21_exact_charges(cluster: Cluster) -> None:
    cluster.configure("3x8 H100", HALVES)
    cluster.events(
        started("j", NOW, {"n0": 8}, group="A", min_runtime_s=3600),
        ended("j", after(60)),
        started("j", after(90), {"n1": 8}, group="A", min_runtime_s=3600),
        ended("j", after(120)),
        started("u", NOW, {"n2": 8}, group="A", min_runtime_s=0),
        ended("u", after(180)),
    )
    assert cluster.charged() == {"A": 12.0}
    cluster.events(started("k", NOW, {"n1": 8}, group="B", min_runtime_s=14_400), ended("k", after(2)))
    assert cluster.charged() == {"A": 12.0, "B": 8 * 2 / 60}
    cluster.round(after(180), [])
    held = cluster.get("/occupancy", **{"from": NOW.isoformat(), "to": after(180).isoformat()})["held"]
    total = sum(h["gpu_hours"] for h in held)
    unallocated = sum(h["gpu_hours"] for h in held if not h["charged"])
    assert (total, unallocated) == (pytest.approx(36 + 16 / 60, rel=1e-12), 24.0)
    assert total - unallocated == pytest.approx(sum(cluster.charged().values()), rel=1e-12)


def test_case_12_nothing_of_a_dead_node_is_charged(cluster: Cluster) -> None:
    cluster.configure("8x8 H100", HALVES)
    whole = {f"n{i}": 8 for i in range(8)}
    gang = job("g", "A", 64, c=240, on=whole, ran=0)
    cluster.round(NOW, [gang])
    down = {"name": "n3", "gpu_type": "H100", "gpus": 8, "status": "down", "down_since_at": after(20).isoformat()}
    answer = cluster.round(after(30), [gang], nodes=[down])
    assert usage(answer)["A"] == pytest.approx(64 * 20 / 60 + 56 * 10 / 60, rel=1e-12)
    # Told late and again: it was down earlier than that. The events correct what was charged, once.
    for _ in range(2):
        cluster.events({"kind": "node_down", "node": "n3", "at": after(15).isoformat()})
    assert cluster.charged(end=after(30)) == {"A": pytest.approx(64 * 15 / 60 + 56 * 15 / 60, rel=1e-12)}


def test_case_16_work_without_a_claim_is_never_charged(cluster: Cluster) -> None:
    cluster.configure("2x8 H100", {"A": 0.0, "B": 1.0})
    answer = cluster.round(after(60), [job("a", "A", 8, on={"n0": 8}, ran=60, now=after(60))])
    assert usage(answer) == {"A": 0.0, "B": 0.0}
    assert cluster.charged() == {}


def test_case_27_why_a_job_was_preempted_is_kept(cluster: Cluster) -> None:
    cluster.configure("1x8 H100", {"Q1": 37.5, "Q2": 62.5})
    j1 = job("j1", "Q1", 4, on={"n0": 4}, ran=90)
    j2 = job("j2", "Q2", 1, on={"n0": 1}, ran=90)
    first = cluster.round(NOW, [j1, j2, job("j3", "Q2", 4)])
    assert actions(first) == {"j1": "preempt", "j2": "keep", "j3": "start"}
    now = after(1)
    cluster.round(now, [job("j1", "Q1", 4, now=now), job("j3", "Q2", 4, on={"n0": 4}, ran=1, now=now)])
    cluster.round(after(2), [])
    said = cluster.get("/jobs/j1/explanation")
    assert (said["listed"], said["group"]) == (False, "Q1")
    (preempted,) = [c for c in said["changes"] if c["assignment"]["action"] == "preempt"]
    reason = preempted["assignment"]["reasons"][0]
    assert reason["code"] == "preempted_for"
    assert "j3" in reason["refs"]
    assert "Q1" in reason["message"]
    assert "Q2" in reason["message"]
    stored = next(a for a in first["plan"]["assignments"] if a["job"] == "j1")
    assert preempted["assignment"]["reasons"][0]["message"] == stored["reasons"][0]["message"]
    assert said["latest"]["round"] == 2
    assert cluster.get("/rounds/1") == first
    cluster.get("/jobs/nobody/explanation", status=404)


@pytest.mark.parametrize("gpus", [-1, 0, 0.5, 2**63, 1e308])
def test_case_33_odd_numbers_are_refused_with_their_pointer(cluster: Cluster, gpus: float) -> None:
    cluster.configure("1x8 H100", HALVES)
    odd = wire(job("j", "A", 1)) | {"gpus": gpus}
    body = {"now": NOW.isoformat(), "jobs": [wire(job("i", "A", 1)), odd]}
    answer = cluster.client.post(cluster.path + "/rounds", content=json.dumps(body).encode(), headers=JSON)
    assert (answer.status_code, [e["pointer"] for e in answer.json()["errors"]]) == (422, ["/jobs/1/gpus"])
    assert cluster.get()["last_round"] == 0


def test_case_34_a_configuration_that_cannot_hold_is_refused_and_the_last_stays(cluster: Cluster) -> None:
    good = [Group(id="P", share=1, guaranteed_gpus=8), Group(id="C", parent="P", share=1)]
    cluster.configure("1x8 H100", good)
    before = cluster.get()
    for bad in (
        [{"id": "P", "share": 1, "guaranteed_gpus": 8}, {"id": "C", "parent": "P", "share": 1, "guaranteed_gpus": 9}],
        [{"id": "P", "share": 1, "guaranteed_gpus": 9}],
        [{"id": "P", "share": 1, "guaranteed_gpus": 8, "max_gpus": 4}],
        [{"id": "P", "share": 1, "parent": "P"}],
    ):
        document = {"gpu_types": [{"name": "H100"}], "groups": bad}
        document["nodes"] = [{"name": "n0", "gpu_type": "H100", "gpus": 8}]
        refused = cluster.put(document, status=422)
        assert refused["errors"][0]["pointer"].startswith("/groups/")
    assert cluster.get() == before
    # In a round a node may be lost all the same: cut in proportion, with a warning, and decided.
    down = {"name": "n0", "gpu_type": "H100", "gpus": 8, "status": "down"}
    answer = cluster.round(NOW, [job("j", "C", 8)], nodes=[down])
    assert "guarantees_cut" in [w["code"] for w in answer["plan"]["warnings"]] or entitled(answer)["P"] == 0.0


def test_case_35_two_jobs_of_one_id_are_refused_naming_it(cluster: Cluster) -> None:
    cluster.configure("1x8 H100", HALVES)
    refused = cluster.round(NOW, [job("j1", "A", 1), job("j1", "B", 2)], status=422)
    assert [e["pointer"] for e in refused["errors"]] == ["/jobs/1/id"]
    assert "'j1'" in refused["errors"][0]["message"]


def test_case_13_the_usage_that_decides_is_the_ledgers(cluster: Cluster) -> None:
    cluster.configure("1x100 H100", HALVES)
    begin = NOW - timedelta(hours=144)
    cluster.events(started("b", begin, {"n0": 100}, group="B", min_runtime_s=60), ended("b", NOW))
    answer = cluster.round(NOW, [*ones("a", "A", 100), *ones("b", "B", 100)])
    assert usage(answer) == {"A": 0.0, "B": 14_400.0}
    assert entitled(answer) == {"A": pytest.approx(92.857, abs=1e-3), "B": pytest.approx(7.143, abs=1e-3)}
