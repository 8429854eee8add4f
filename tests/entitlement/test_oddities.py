"""What is said about odd input: once a kind, with few ids and the count."""

from __future__ import annotations

from typing import Any

from entitlement.built import group, jobs, snapshot
from strategies.clock import NOW, stamp
from strategies.clusters import state_of

from evenhand.entitlement import entitle
from evenhand.oddities import MOST_REFS, warnings_of
from evenhand.snapshot import Snapshot, take_snapshot
from evenhand_models import PlanWarning, Policy, WarningCode


def said(taken: Snapshot) -> dict[WarningCode, PlanWarning]:
    found = warnings_of(taken, entitle(taken))
    assert len({w.code for w in found}) == len(found)
    return {w.code: w for w in found}


def running(name: str, node: str, gpus: int, **more: Any) -> dict[str, Any]:
    """A running job of group a."""
    (job,) = jobs("a", 1, gpus)
    placed = [{"node": node, "gpus": gpus}]
    return job | {"id": name, "state": "running", "started_at": stamp(NOW - 60), "placement": placed} | more


def test_nothing_odd_nothing_said():
    assert said(snapshot({"h100": 8}, [group("a")], jobs("a", 4))) == {}


def test_a_thousand_jobs_of_lost_groups_are_one_warning():
    warning = said(snapshot({"h100": 8}, [group("a")], jobs("nobody", 1_000)))[WarningCode.UNKNOWN_GROUP]
    assert len(warning.refs) == MOST_REFS
    assert "1000 pending job(s)" in warning.message
    assert "{" not in warning.message


def test_clocks_ahead_are_named():
    work = [running("s", "h100-000", 1, started_at=stamp(NOW + 5), submitted_at=stamp(NOW + 3))]
    found = said(snapshot({"h100": 8}, [group("a")], work))
    assert found[WarningCode.STARTED_AT_CLAMPED].refs == ("s",)
    assert found[WarningCode.INSTANT_CLAMPED].refs == ("s",)


def test_contracts_above_the_cap_are_cut():
    work = [running("long", "h100-000", 1, contract={"min_runtime_s": 9_000})]
    found = said(snapshot({"h100": 8}, [group("a")], work, max_protection_s=3_600))
    assert found[WarningCode.CONTRACT_CUT].refs == ("long",)
    assert "3600 s" in found[WarningCode.CONTRACT_CUT].message


def test_lost_groups_nodes_types_and_usages():
    work = [
        running("kept", "h100-000", 1, group="a/gone"),
        running("lost", "elsewhere", 1),
        *jobs("a", 1, types=("h100", "abacus")),
    ]
    found = said(snapshot({"h100": 8}, [group("a")], work, usage={"a/gone": 1.0}))
    assert found[WarningCode.UNKNOWN_GROUP].refs == ("kept",)
    assert "nearest group above" in found[WarningCode.UNKNOWN_GROUP].message
    assert found[WarningCode.NODE_GONE].refs == ("lost",)
    assert "'abacus'" in found[WarningCode.UNKNOWN_GPU_TYPE].message
    assert found[WarningCode.UNKNOWN_USAGE_GROUP].refs == ("a/gone",)


def test_jobs_that_can_never_run():
    found = said(snapshot({"h100": 8}, [group("a")], jobs("a", 2, 99)))
    assert "2 job(s)" in found[WarningCode.INFEASIBLE_JOB].message


def test_nodes_that_hold_more_than_is_usable():
    wire = {
        "now": stamp(NOW),
        "gpu_types": [{"name": "h100"}],
        "nodes": [{"name": "n", "gpu_type": "h100", "gpus": 8, "unavailable_gpus": 2}],
        "groups": [group("a")],
        "jobs": [running("j", "n", 8)],
    }
    assert said(take_snapshot(state_of(wire), Policy()))[WarningCode.OVER_USABLE].refs == ("n",)


def test_charges_far_off_what_types_are_worth():
    work = jobs("a", 4) + [
        job | {"id": f"x{i}", "speedup": {"t4": 1.0, "h100": 8.0}} for i, job in enumerate(jobs("a", 4))
    ]
    groups = [group("a")]
    gpus = {"t4": 8, "h100": 8}
    assert said(snapshot(gpus, groups, work, rates={"t4": 1.0, "h100": 4.0})) == {}
    found = said(snapshot(gpus, groups, work, rates={"t4": 1.0, "h100": 3.9}))
    assert found[WarningCode.CHARGE_RATE_OFF].refs == ("h100", "t4")
