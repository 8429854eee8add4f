"""What the ledger tells: owed against received, held against used, memory that fades, explanations of odd names."""

from __future__ import annotations

import math
from datetime import timedelta
from random import Random

import pytest
from cases.states import NOW, WEEK_H, after, job
from strategies import random_state

from evenhand.tree import build_tree
from evenhand_api.ledger.explanations import assignment_in
from evenhand_api.ledger.terms import Terms
from evenhand_models import Action, Assignment, Group, parse_plan
from ledger.clusters import Cluster, ended, started, usage


def test_owed_against_received_by_hour(cluster: Cluster) -> None:
    tree = [Group(id="P", share=1), Group(id="P/x", parent="P", share=1), Group(id="Q", share=3)]
    cluster.configure("1x8 H100", tree)
    # P/x is due 2 of 8 and wants 4; Q is due 6 and wants 4. P/x holds all 8 in the first hour, nothing in the second.
    wishes = [job("x", "P/x", 4), job("q", "Q", 4)]
    cluster.round(NOW, wishes)
    cluster.events(
        started("hog", NOW, {"n0": 8}, group="P/x", min_runtime_s=60),
        ended("hog", after(60)),
        started("late", after(60), {"n0": 8}, group="Q", min_runtime_s=60),
        ended("late", after(120)),
    )
    cluster.round(after(60), wishes)
    cluster.round(after(120), [])
    said = cluster.get("/owed-received", **{"from": NOW.isoformat(), "to": after(120).isoformat()})
    hours = {(h["hour_at"][11:13], h["group"]): (h["owed_gpu_hours"], h["received_gpu_hours"]) for h in said["hours"]}
    assert hours == {
        **{("12", g): (2.0, 8.0) for g in ("P", "P/x")},
        **{("13", g): (2.0, 0.0) for g in ("P", "P/x")},
        ("12", "Q"): (4.0, 0.0),
        ("13", "Q"): (4.0, 8.0),
    }
    figures = {g["group"]: (g["delivered_over_the_period"], g["delivered_in_the_hour"]) for g in said["groups"]}
    assert figures == {"P": (1.0, 0.5), "P/x": (1.0, 0.5), "Q": (1.0, 0.5)}
    assert said["all_leaves"]["owed_gpu_hours"] == 12.0


def test_held_against_used_lists_who_holds_gpus_idle_and_stops_nobody(cluster: Cluster) -> None:
    cluster.configure("2x8 H100", {"A": 1.0, "B": 1.0})
    busy = job("busy", "A", 4, on={"n0": 4}, ran=30, utilization=0.9)
    idle = job("idle", "A", 4, on={"n0": 4}, ran=30, utilization=0.01, user="ann")
    silent = job("silent", "B", 8, on={"n1": 8}, ran=30)
    plan = cluster.round(NOW, [busy, idle, silent])["plan"]
    assert {a["action"] for a in plan["assignments"]} == {"keep"}
    said = cluster.get("/occupancy")
    by_group = {g["group"]: (g["held_gpus"], g["reported_gpus"], g["utilization"]) for g in said["groups"]}
    assert by_group == {"A": (8, 8, pytest.approx(0.455)), "B": (8, 0, None)}
    assert [(j["job"], j["user"], j["gpus"], j["utilization"]) for j in said["idle"]] == [("idle", "ann", 4, 0.01)]
    held = {h["group"]: h["gpu_hours"] for h in said["held"]}
    assert held == {"A": 4.0, "B": 4.0}


def test_with_a_half_life_use_fades_by_the_exact_integral(cluster: Cluster) -> None:
    half_h = 24
    cluster.configure("1x8 H100", {"A": 1.0, "B": 1.0}, half_life_s=half_h * 3600)
    begin = NOW - timedelta(hours=72)
    cluster.events(
        started("a", begin, {"n0": 8}, group="A", min_runtime_s=60),
        ended("a", begin + timedelta(hours=24)),
        started("b", NOW - timedelta(minutes=1), {"n0": 8}, group="B", min_runtime_s=60),
    )
    found = usage(cluster.round(NOW, [job("b", "B", 8, on={"n0": 8}, ran=1)]))
    k = half_h / math.log(2)
    assert found["A"] == pytest.approx(8 * k * (2**-2 - 2**-3), rel=1e-12)
    assert found["B"] == pytest.approx(8 * k * -math.expm1(-math.log(2) / 60 / half_h), rel=1e-12)


def test_what_left_the_window_counts_no_more(cluster: Cluster) -> None:
    cluster.configure("1x8 H100", {"A": 1.0, "B": 1.0})
    begin = NOW - timedelta(hours=WEEK_H + 1, minutes=7, seconds=3)
    cluster.events(started("a", begin, {"n0": 8}, group="A", min_runtime_s=60), ended("a", begin + timedelta(hours=2)))
    assert usage(cluster.round(NOW, []))["A"] == pytest.approx(8 * (1 - 7 / 60 - 3 / 3600), rel=1e-12)


@pytest.mark.parametrize("name", ['quo"te', "back\\slash", "ünï/cødé", 'a","action":"start', "a b", "j"])
def test_an_explanation_finds_jobs_of_any_name(cluster: Cluster, name: str) -> None:
    cluster.configure("1x8 H100", {"A": 1.0, "B": 1.0})
    answer = cluster.round(NOW, [job(name, "A", 4), job("other", "A", 4), job("j2", "B", 4)])
    stored = next(a for a in answer["plan"]["assignments"] if a["job"] == name)
    raw = cluster.client.get(f"{cluster.path}/rounds/1").content
    assert assignment_in(raw, name) == stored
    path = f"{cluster.path}/jobs/{name.replace(chr(92), '%5C').replace('/', '%2F').replace(' ', '%20')}/explanation"
    assert cluster.client.get(path).json()["latest"]["assignment"] == stored
    assert Assignment.model_validate(stored).action in (Action.START, Action.WAIT)
    assert parse_plan(raw[raw.index(b'"plan":') + 7 : -1]).assignments


def test_the_ledger_reads_claims_and_names_of_groups_as_the_library_does() -> None:
    for seed in range(60):
        state = random_state(Random(seed), "small")
        terms, tree = Terms(state.groups, state.gpu_types), build_tree(state.groups)
        for i, group in enumerate(tree.ids):
            assert terms.is_charged(group, 1) == tree.claim[i]
            assert terms.weights[group] == tree.weight[i]
        for one in state.jobs:
            at = tree.nearest_named(one.group)
            assert terms.charged_to(one.group) == (None if at is None else tree.ids[at])
        tops = [g.id for g in state.groups if g.parent is None]
        assert not tops or sum(terms.shares[g] for g in tops) == pytest.approx(1.0)


def test_declared_speedups_are_held_against_what_was_reported(cluster: Cluster) -> None:
    cluster.configure("1x8 A100, 1x8 H100", {"A": 1.0, "B": 1.0})
    liar = job("liar", "A", 4, speedup={"A100": 1.0, "H100": 6.0})
    cluster.get("/speedups", status=404)
    cluster.round(NOW, [liar, job("other", "B", 4)])
    pace = {"A100": 4.0, "H100": 8.0}
    seen = [
        {"job": "liar", "gpu_type": t, "gpus": 4, "work_done": w * (1_000 + i), "seconds": 1_000 + i}
        for t, w in pace.items()
        for i in range(5)
    ]
    for batch in (seen, seen[:1]):
        answer = cluster.client.post(f"{cluster.path}/observations", json={"observations": batch})
        assert answer.json()["recorded"] == len(batch)
    unknown = [seen[0] | {"job": "nobody"}]
    refused = cluster.client.post(f"{cluster.path}/observations", json={"observations": unknown})
    assert refused.json()["errors"][0]["pointer"] == "/observations/0/job"
    said = cluster.get("/speedups")["groups"]
    assert [(g["group"], g["gpu_type"], g["flag"]) for g in said] == [("A", "H100", "overdeclared")]
    cluster.round(after(10), [])  # the job is gone, what it had declared is not
    assert cluster.get("/speedups")["groups"] == said
