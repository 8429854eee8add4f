"""Which debug runs are owed their start (rule O3), worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest
from entitlement.built import entitled, group, jobs, snapshot
from strategies.clock import NOW, stamp
from strategies.clusters import state_of

from evenhand.claims import claims, owed_weights
from evenhand.debug_runs import debug_runs
from evenhand.entitlement import entitle
from evenhand.owed_gangs import owed_gangs
from evenhand.snapshot import Snapshot, take_snapshot
from evenhand_models import Policy

AB = [group("a"), group("b")]


def runs(owner: str, count: int, gpus: int = 1, contract_s: int = 600, **more: Any) -> list[dict[str, Any]]:
    return jobs(owner, count, gpus, contract={"min_runtime_s": contract_s, "resumable": False}, **more)


def ids(s: Snapshot) -> list[str]:
    return [s.jobs[j].id for j in debug_runs(s)]


@pytest.mark.parametrize(
    ("changes", "owed"),
    [
        ({}, True),
        ({"contract": {"min_runtime_s": 600, "resumable": True}}, False),
        ({"contract": {"min_runtime_s": 601, "resumable": False}}, False),
        ({"contract": {"min_runtime_s": 0, "resumable": False}}, False),  # unallocated
        ({"gpus": 9}, False),  # larger than a node
        ({"gpus": 8}, True),
    ],
)
def test_short_not_resumable_and_on_one_node(changes: dict[str, Any], owed: bool) -> None:
    work = [{**runs("a", 1)[0], **changes}, *jobs("b", 100)]
    s = snapshot({"h100": 64}, AB, work, node=8)
    assert bool(ids(s)) == owed
    assert bool(owed_gangs(s, entitle(s))) == owed


def test_groups_take_turns_within_the_share() -> None:
    work = runs("a", 10) + runs("b", 2, gpus=2)
    s = snapshot({"h100": 64}, AB, work, node=8, debug_share=0.125)  # 8 GPUs
    found = ids(s)
    assert [j for j in found if j.startswith("b")] == ["b-h100-2-00000", "b-h100-2-00001"]
    assert len([j for j in found if j.startswith("a")]) == 4  # 1, 2, 2 + 2 of b, 3, 4, 4 of b


def test_what_does_not_fit_the_share_lets_smaller_ones_pass() -> None:
    work = runs("a", 1, gpus=8) + runs("b", 3, gpus=2)
    s = snapshot({"h100": 64}, AB, work, node=8, debug_share=0.1)  # 6.4 GPUs
    assert ids(s) == [f"b-h100-2-{i:05}" for i in range(3)]


@pytest.mark.parametrize(("ran", "owed"), [(0, True), (599, True), (600, False)])
def test_a_run_stays_among_them_until_its_contract_ends(ran: int, owed: bool) -> None:
    """So that nothing changes if the plan that starts it is applied and asked again."""
    running = {"state": "running", "started_at": stamp(NOW - ran), "placement": [{"node": "h100-000", "gpus": 1}]}
    s = snapshot({"h100": 8}, AB, runs("a", 1, **running) + runs("b", 1), debug_share=0.125)
    assert ids(s) == (["a-h100-1-00000"] if owed else ["b-h100-1-00000"])


def test_one_that_lost_its_node_is_owed_its_start_again_whatever_it_ran() -> None:
    """It is requeued: what it would be owed as it waits it is owed at once, so that the next round moves nothing."""
    lost = {"state": "running", "started_at": stamp(NOW - 9_000), "placement": [{"node": "gone", "gpus": 1}]}
    s = snapshot({"h100": 8}, AB, runs("a", 1, **lost), debug_share=0.125)
    assert ids(s) == ["a-h100-1-00000"]


def test_who_waits_for_a_type_whose_nodes_are_all_down_takes_nobodys_turn() -> None:
    elder = {"speedup": {"a100": 1.0}, "submitted_at": stamp(NOW - 9_000)}
    work = [{**one, **elder, "id": f"x{i}"} for i, one in enumerate(runs("a", 2))] + runs("a", 2)
    wire = {
        "now": stamp(NOW),
        "gpu_types": [{"name": "a100"}, {"name": "h100"}],
        "nodes": [
            {"name": "n0", "gpu_type": "a100", "gpus": 8, "status": "down"},
            {"name": "n1", "gpu_type": "h100", "gpus": 8},
        ],
        "groups": AB,
        "jobs": work,
    }
    assert ids(take_snapshot(state_of(wire), Policy(debug_share=0.25))) == ["a-h100-1-00000", "a-h100-1-00001"]


@pytest.mark.parametrize(
    "off",
    [
        {"debug_contract_s": 0},
        {"debug_share": 0.0},
        {"max_protection_s": 0},
        {"max_protection_s": 0, "debug_contract_s": 0},
    ],
)
def test_either_number_switches_them_off(off: dict[str, Any]) -> None:
    s = snapshot({"h100": 64}, AB, runs("a", 3), node=8, **off)
    assert ids(s) == []


def test_they_change_nothing_of_what_groups_are_owed() -> None:
    work = runs("a", 40) + jobs("b", 100)
    with_them, without = (snapshot({"h100": 64}, AB, work, node=8, debug_contract_s=c) for c in (600, 0))
    assert entitled(with_them) == entitled(without)


def test_a_gpu_of_one_weighs_three_at_least_and_more_where_its_group_is_further_behind() -> None:
    def weight(used: float) -> float:
        s = snapshot({"h100": 64}, AB, runs("a", 1) + jobs("b", 100), node=8, usage={"a": used, "b": 100.0})
        e = entitle(s)
        return owed_weights(s, e, claims(s, e), debug_runs(s))[s.job_index["a-h100-1-00000"]]

    assert weight(100.0) == 3.0
    assert weight(25.0) == pytest.approx((62.5 / 25) ** 4, abs=1e-3)
