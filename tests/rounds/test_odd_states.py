"""States at the edges of what may be said: always a plan, audited, never a crash (rules S6, D4, G1, O2)."""

from __future__ import annotations

from typing import Any

import pytest

from evenhand import ClusterState, Plan, Policy, allocate, audit
from evenhand_models import ReasonCode

Wire = dict[str, Any]
NOW, BEFORE = "2026-11-01T00:00:00Z", "2026-10-31T00:00:00Z"


def node(name: str, gpus: int = 8, kind: str = "h") -> Wire:
    return {"name": name, "gpu_type": kind, "gpus": gpus}


def group(name: str, share: float = 1, parent: str | None = None) -> Wire:
    return {"id": name, "share": share, "parent": parent}


def job(name: str, owner: str, gpus: int, **more: Any) -> Wire:
    contract = {"min_runtime_s": 3600, "resumable": True}
    return {
        "id": name,
        "group": owner,
        "gpus": gpus,
        "speedup": {"h": 1.0},
        "submitted_at": BEFORE,
        "contract": contract,
        **more,
    }


def state(nodes: list[Wire], groups: list[Wire], jobs: list[Wire], **more: Any) -> ClusterState:
    kinds = sorted({n["gpu_type"] for n in nodes})
    wire = {"now": NOW, "gpu_types": [{"name": k} for k in kinds], "nodes": nodes, "groups": groups, "jobs": jobs}
    return ClusterState.model_validate(wire | more)


def solved(given: ClusterState, **policy: Any) -> Plan:
    rules = Policy(**policy)
    plan = allocate(given, rules)
    report = audit(given, plan, rules)
    assert report.ok, report.findings[:3]
    return plan


TWO = [group("a"), group("b")]
THREE_WAIT = [job("j", "a", 8), job("k", "b", 8), job("l", "b", 9)]


@pytest.mark.parametrize("used", [0.0, 1e15])
@pytest.mark.parametrize("share", [1e-9, 1e-11, 1e-300, 5e-324])
def test_a_share_next_to_nothing_is_as_good_as_none(share: float, used: float) -> None:
    usage = [{"group": "a", "charged_gpu_hours": used}]
    plan = solved(state([node("n"), node("m")], [group("a", share), group("b", 1)], THREE_WAIT, usage=usage))
    assert plan.certificate.status == "optimal"


def test_an_entitlement_next_to_nothing_by_usage_is_as_good_as_none() -> None:
    usage = [{"group": "a", "charged_gpu_hours": 16 * 168 - 1e-9}]
    solved(state([node("n"), node("m")], TWO, THREE_WAIT, usage=usage))


def test_a_job_on_nodes_and_types_that_are_gone_is_requeued() -> None:
    lost = job("r", "a", 4, state="running", started_at=BEFORE, placement=[{"node": "gone", "gpus": 4}])
    (answer,) = solved(state([], TWO, [lost])).assignments
    assert (answer.action, answer.requeue) == ("preempt", True)


@pytest.mark.parametrize("unit", ["best", "slowest"])
def test_speedups_thirty_powers_of_ten_apart(unit: str) -> None:
    given = state([node("n"), node("m", kind="g")], TWO, [job("j", "a", 4, speedup={"h": 1e30, "g": 5e-324})])
    assert solved(given, throughput_unit=unit).assignments[0].gpu_type == "h"


def test_a_tree_of_three_hundred_levels() -> None:
    chain = [group("g0"), *(group(f"g{i}", 1, f"g{i - 1}") for i in range(1, 300)), group("s")]
    plan = solved(state([node("n")], chain, [job("j", "g299", 4), job("k", "s", 4)]))
    assert plan.certificate.status == "optimal"
    assert {a.action for a in plan.assignments} == {"start"}


def test_an_elastic_gang_of_many_sizes_is_offered_some_of_them() -> None:
    given = state([node("n", 100_000)], TWO, [job("j", "a", 100_000, worker_gpus=1, min_gpus=1)])
    assert solved(given).assignments[0].gpus == 100_000


@pytest.mark.parametrize(
    ("nodes", "shape", "each"), [(1, {"min_gpus": 1}, 4), (4, {"min_gpus": 8, "gpus_per_node": 8}, 16)]
)
def test_elastic_gangs_of_two_groups_share_what_each_could_take_alone(nodes: int, shape: Wire, each: int) -> None:
    jobs = [job("ja", "a", 8 * nodes, **shape), job("jb", "b", 8 * nodes, **shape)]
    plan = solved(state([node(f"n{i}") for i in range(nodes)], TWO, jobs))
    assert [a.gpus for a in plan.assignments] == [each, each]


def test_a_proven_round_never_blames_the_time() -> None:
    jobs = [job(f"j{i}", "ab"[i % 2], 1 + i % 5) for i in range(12)]
    plan = solved(state([node("n"), node("m")], TWO, jobs))
    assert plan.certificate.status == "optimal"
    said = {reason.code for answer in plan.assignments for reason in answer.reasons}
    assert ReasonCode.TIME_LIMIT not in said
