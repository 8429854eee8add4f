"""Changes of a state that docs/model.md says nothing may follow from: two rounds, compared."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from strategies import changed, comparable, policies, policy_with, states, without_sentences
from strategies.sweeps import Law, Unfit, hold, sweep

from evenhand import allocate
from evenhand_models import ClusterState, Policy

Wire = dict[str, Any]
DAYS = timedelta(days=40)


def _plan(state: ClusterState, policy: Policy) -> Wire:
    """Decide and return the plan without sentences, warnings and what is reported about the input."""
    plan = allocate(state, policy_with(policy, time_limit_s=30.0))
    if plan.certificate.cut_by_time:
        raise Unfit("cut by time")
    said = without_sentences(comparable(plan))
    del said["warnings"]
    return _rounded(said)


def _rounded(value: Any) -> Any:
    """Round numbers to nine places: a zero more in a sum may move its last bit."""
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return round(value, 9) + 0.0 if isinstance(value, float) else value


def _same(state: ClusterState, policy: Policy, change: Callable[[Wire], object], *but: str) -> tuple[Wire, Wire]:
    """Assert that a change of the state leaves everything but some parts of the plan as it was."""
    before, after = _plan(state, policy), _plan(changed(state, change), policy)
    kept = [part for part in before if part not in but]
    assert {part: after[part] for part in kept} == {part: before[part] for part in kept}
    return before, after


def scaled_speedups(state: ClusterState, policy: Policy) -> None:
    """Only ratios inside a job count (S6): powers of two, as they round nothing."""

    def scale(wire: Wire) -> None:
        for i, job in enumerate(wire["jobs"]):
            job["speedup"] = {t: x * (4.0, 0.5, 1024.0)[i % 3] for t, x in job["speedup"].items()}

    _same(state, policy, scale)


def a_group_without_jobs(state: ClusterState, policy: Policy) -> None:
    """It demands nothing, so it is given nothing (D4); only ranks among its siblings make room for it."""
    if all(group.share == 0 for group in state.groups if group.parent is None):
        raise Unfit("all shares at the top are 0: one more would take their claim (S7)")
    new = {"id": "~new", "share": 3.0, "guaranteed_gpus": 2}
    before, after = _same(state, policy, lambda wire: wire["groups"].append(new), "groups", "assignments")
    mine = [row for row in after["groups"] if row["group"] == "~new"]
    rest = [row for row in after["groups"] if row["group"] != "~new"]
    assert [row["entitled_gpus"] for row in mine] == [0.0]
    for row in (*before["groups"], *rest):
        del row["standing"]
    assert rest == before["groups"]
    assert [_decision(a) for a in after["assignments"]] == [_decision(a) for a in before["assignments"]]


def _decision(answer: Wire) -> Wire:
    """What is decided about a job, without the words about it."""
    return {key: answer.get(key) for key in ("job", "action", "gpus", "gpu_type", "placement", "after", "requeue")}


def a_type_without_nodes(state: ClusterState, policy: Policy) -> None:
    """It has no capacity (S3) and no job fits it (S5)."""
    new = {"name": "~new", "charge_rate": 7.0}
    before, after = _same(state, policy, lambda wire: wire["gpu_types"].append(new), "groups", "assignments")
    assert [_decision(a) for a in after["assignments"]] == [_decision(a) for a in before["assignments"]]
    keys = ("group", "demand_gpus", "entitled_gpus", "floor", "throughput", "standing")
    assert [[row[key] for key in keys] for row in after["groups"]] == [
        [row[key] for key in keys] for row in before["groups"]
    ]


def all_clocks_moved(state: ClusterState, policy: Policy) -> None:
    """Only times before and after now count (S1, S2, S10, O)."""

    def move(value: Any, by: timedelta) -> Any:
        if isinstance(value, dict):
            return {key: move(one, by) for key, one in value.items()}
        if isinstance(value, list):
            return [move(one, by) for one in value]
        if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", value):
            moved = datetime.fromisoformat(value).astimezone(UTC) + by
            return moved.isoformat().replace("+00:00", "Z")
        return value

    def later(wire: Wire) -> None:
        wire |= move(dict(wire), DAYS)

    assert move(_plan(changed(state, later), policy), -DAYS) == move(_plan(state, policy), timedelta())


def what_is_only_reported(state: ClusterState, policy: Policy) -> None:
    """Utilization, users and memory are no ground for a decision."""

    def report(wire: Wire) -> None:
        for i, job in enumerate(wire["jobs"]):
            job["user"] = f"user{i % 3}"
            if job.get("state", "pending") != "pending":
                job["utilization"] = (i % 5) / 4
        for one in wire["gpu_types"]:
            one["memory_gib"] = 80.0

    before, after = _same(state, policy, report, "groups")
    for row in (*before["groups"], *after["groups"]):
        row.pop("utilization", None)
    assert after["groups"] == before["groups"]


def a_limit_of_everything(state: ClusterState, policy: Policy) -> None:
    """A limit of all GPUs binds nothing (D1, L1), nor a guarantee of 0 a group without children."""
    total = sum(node.gpus for node in state.nodes)
    parents = {group.parent for group in state.groups}

    def limit(wire: Wire) -> None:
        for group in wire["groups"]:
            group.setdefault("max_gpus", total)
            if group["id"] not in parents:
                group.setdefault("guaranteed_gpus", 0)

    before, after = _same(state, policy, limit, "assignments")
    # where all is taken such a limit is reached too, so reasons may name it; equal placements may be told apart
    what = ("job", "action", "gpus", "gpu_type", "requeue")
    said = [[[answer.get(key) for key in what] for answer in plan["assignments"]] for plan in (before, after)]
    assert said[0] == said[1]


def jobs_that_can_never_run(state: ClusterState, policy: Policy) -> None:
    """An infeasible job is not live (S8): without it the others fare the same."""
    plan = _plan(state, policy)
    never = {answer["job"] for answer in plan["assignments"] if answer["action"] == "infeasible"}

    def forget(wire: Wire) -> None:
        wire["jobs"] = [job for job in wire["jobs"] if job["id"] not in never]

    before, after = _same(state, policy, forget, "assignments")
    assert after["assignments"] == [a for a in before["assignments"] if a["job"] not in never]


def a_cordoned_node_that_goes_down_empty(state: ClusterState, policy: Policy) -> None:
    """A node that takes nothing and holds nothing offers nothing, up or down (S3)."""
    held = {part.node for job in state.jobs for part in job.placement}
    idle = {node.name for node in state.nodes if node.status != "up" and node.name not in held}

    def swap(wire: Wire) -> None:
        for node in wire["nodes"]:
            if node["name"] in idle:
                node.pop("down_since_at", None)
                node["status"] = "down" if node["status"] == "cordoned" else "cordoned"

    before, after = _same(state, policy, swap, "assignments", "certificate")  # upper_bound counts what is cordoned
    assert after["certificate"]["objective"] == before["certificate"]["objective"]
    assert [_decision(a) for a in after["assignments"]] == [_decision(a) for a in before["assignments"]]


def usage_of_a_group_that_is_gone(state: ClusterState, policy: Policy) -> None:
    """It counts for the nearest ancestor that its id names (S4)."""

    def rename(wire: Wire) -> None:
        for used in wire.get("usage") or ():
            used["group"] += "/gone/before"

    if any("/" in used.group and used.group not in _ids(state) for used in state.usage or ()):
        raise Unfit("usage of a group that is gone already")
    _same(state, policy, rename)


def _ids(state: ClusterState) -> set[str]:
    return {group.id for group in state.groups}


LAWS = (
    scaled_speedups,
    a_group_without_jobs,
    a_type_without_nodes,
    all_clocks_moved,
    what_is_only_reported,
    a_limit_of_everything,
    jobs_that_can_never_run,
    a_cordoned_node_that_goes_down_empty,
    usage_of_a_group_that_is_gone,
)


@pytest.mark.parametrize("law", LAWS)
def test_nothing_changes(law: Law) -> None:
    @settings(max_examples=10, deadline=None, derandomize=True, database=None)
    @given(states("small"), policies())
    def holds(state: ClusterState, policy: Policy) -> None:
        hold(law, state, policy)

    holds()


@pytest.mark.heavy
@pytest.mark.parametrize("law", LAWS)
def test_nothing_changes_on_300_clusters(law: Law) -> None:
    sweep(law, 300, "small", most_unfit=0.2)
