"""A debug run starts at once though its group holds more than it is owed, and only at little loss to others (rule O3)."""

from __future__ import annotations

import pytest
from cases.states import actions, after, cluster, job, of, solve
from strategies import apply_plan

from evenhand_models import ClusterState, Job, Policy


def crowded(*waiting: Job, resumable: bool = True) -> ClusterState:
    """Sixteen nodes: A and B hold what they are owed; nothing can be stopped but half of B's work."""
    saved = {"checkpointed_at": after(-5)} if resumable else {}
    held = [job(f"a{i}", "A", 8, c=240, on={f"n{i:02}": 8}, ran=30) for i in range(8)]
    held += [job(f"b{i}", "B", 8, c=240, on={f"n{8 + i:02}": 8}, ran=30) for i in range(4)]
    held += [job(f"c{i}", "B", 8, c=60, resumable=resumable, on={f"n{12 + i}": 8}, ran=300, **saved) for i in range(4)]
    return cluster("16x8 H100", {"A": 1, "B": 1}, [*held, *waiting], used={"A": 1_000, "B": 1_000})


def debug(name: str, group: str = "A", gpus: int = 8, **more: object) -> Job:
    return job(name, group, gpus, **{"c": 10, "resumable": False, **more})


def test_it_starts_at_once_in_the_place_of_what_loses_little() -> None:
    plan = solve(crowded(debug("d")))
    said = actions(plan)
    assert said["d"] == "start"
    assert sum(action == "preempt" for action in said.values()) == 1
    assert [r.code for r in of(plan, "d").reasons] == ["debug_run"]
    stopped = next(a for a in plan.assignments if a.action == "preempt")
    assert stopped.requeue is True
    assert "job d is a debug run and owed its start at once" in stopped.reasons[0].message


@pytest.mark.parametrize("other", [{"c": 11}, {"resumable": True}])
def test_what_is_no_debug_run_waits_for_its_group_to_be_owed_more(other: dict[str, object]) -> None:
    assert actions(solve(crowded(debug("d", **other))))["d"] == "wait"
    assert actions(solve(crowded(debug("d")), Policy(debug_contract_s=599)))["d"] == "wait"


def test_nobody_loses_hours_for_it() -> None:
    """Five hours that cannot be resumed are worth more than ten minutes' start."""
    assert actions(solve(crowded(debug("d"), resumable=False)))["d"] == "wait"


def test_not_more_than_the_share_at_once() -> None:
    said = actions(solve(crowded(*(debug(f"d{i}") for i in range(4)))))  # an eighth of 128: two
    assert [said[f"d{i}"] for i in range(4)] == ["start", "start", "wait", "wait"]


@pytest.mark.parametrize("more", [{"priority": 1}, {"group": "AA"}])
def test_nobody_has_more_than_the_share_by_sending_others_that_go_before(more: dict[str, object]) -> None:
    """Runs of a higher priority, or of a group that has asked for less: those inside their contract count first."""
    state = crowded(*(debug(f"d{i}") for i in range(2)))
    state = apply_plan(state, solve(state))
    assert sum(j.id[0] == "d" and j.state == "running" for j in state.jobs) == 2
    late = [debug(f"e{i}", **{"gpus": 4, **more}) for i in range(4)]
    groups = {g.id: g.share for g in state.groups} | ({"AA": 0.01} if "group" in more else {})
    wire = cluster("16x8 H100", groups, [*state.jobs, *late], used={"A": 1_000, "B": 1_000, "AA": 12})
    assert [actions(solve(wire))[f"e{i}"] for i in range(4)] == ["wait"] * 4


def test_fed_back_nothing_moves() -> None:
    state = crowded(*(debug(f"d{i}") for i in range(4)))
    state = apply_plan(state, solve(state))
    for _ in range(5):
        plan = solve(state)
        assert set(actions(plan).values()) <= {"keep", "wait"}
        state = apply_plan(state, plan)


@pytest.mark.parametrize("debug_contract_s", [0, 600])
def test_where_nothing_is_protected_nothing_is_a_debug_run(debug_contract_s: int) -> None:
    """Else all that cannot resume would be one, and the next owed its start as soon as one has it."""
    rules = Policy(max_protection_s=0, debug_contract_s=debug_contract_s)
    assert set(actions(solve(crowded(*(debug(f"d{i}", c=240) for i in range(6))), rules)).values()) == {"keep", "wait"}


def test_its_own_group_makes_way_too() -> None:
    """The same group's work that can resume is as good a place as another's."""
    mine = [job(f"a{i:02}", "A", 8, c=60, on={f"n{i}": 8}, ran=300, checkpointed_at=after(-5)) for i in range(8)]
    plan = solve(cluster("8x8 H100", {"A": 1}, [*mine, debug("d")]))
    assert actions(plan)["d"] == "start"
    stopped = next(a for a in plan.assignments if a.action == "preempt")
    assert "job d is a debug run and owed its start at once" in stopped.reasons[0].message
