"""Who is preempted, when, and for whom: cases 1 to 5."""

from __future__ import annotations

import json
from datetime import timedelta
from itertools import pairwise

import pytest
from strategies import apply_plan

from cases.states import (
    WEEK_H,
    actions,
    after,
    changed_node,
    cluster,
    codes,
    job,
    later,
    nodes,
    of,
    ones,
    ones_on,
    places,
    solve,
    standing,
    who,
    why,
)
from evenhand_models import (
    AllocateRequest,
    ClusterState,
    InvalidInput,
    Plan,
    Policy,
    check_state,
    parse_request,
)

EVEN = {"A": 50, "B": 50}


CHARGED = {"Q1": 6.0, "Q2": 1.5}
"""What j1 and j2 were charged for the 90 minutes they have run."""


def two_queues(used: dict[str, float] = CHARGED) -> ClusterState:
    """Case 1: both queues are past their contracts of an hour since half an hour."""
    jobs = [
        job("j1", "Q1", 4, on={"n0": 4}, ran=90),
        job("j2", "Q2", 1, on={"n0": 1}, ran=90),
        job("j3", "Q2", 4),
    ]
    return cluster("1x8 H100", {"Q1": 37.5, "Q2": 62.5}, jobs, used=used)


@pytest.mark.parametrize("used", [CHARGED, {}], ids=["charged for what they ran", "no usage known"])
def test_case_01_j1_is_preempted_once_and_j3_starts(used: dict[str, float]) -> None:
    plan = solve(two_queues(used))
    assert actions(plan) == {"j1": "preempt", "j2": "keep", "j3": "start"}
    assert of(plan, "j1").requeue is True
    assert standing(plan, "Q1").entitled_gpus == pytest.approx(3, abs=0.05)
    assert standing(plan, "Q2").entitled_gpus == pytest.approx(5, abs=0.05)


def test_case_01_fed_back_50_times_with_the_clock_stopped_nothing_moves() -> None:
    state = two_queues()
    state = apply_plan(state, solve(state))
    for _ in range(50):
        plan = solve(state)
        assert actions(plan) == {"j1": "wait", "j2": "keep", "j3": "keep"}
        state = apply_plan(state, plan)


@pytest.mark.parametrize("step_min", [10, 25])
def test_case_01_with_the_clock_running_at_most_one_switch_a_contract(step_min: float) -> None:
    state, switches = two_queues(), []
    for _ in range(50):
        plan = solve(state)
        if who(plan, "preempt"):
            switches.append(state.now)
        state = later(state, plan, 60 * step_min)
    assert switches[0] == after(0)
    gaps = [late - early for early, late in pairwise(switches)]
    assert all(gap >= timedelta(minutes=60) for gap in gaps), gaps


def full_of_ones(p_type: str) -> ClusterState:
    """Case 2: 11 nodes full of 1-GPU jobs of B, past their contracts; p of A wants one GPU."""
    on = nodes("11x8 H100")
    held = ones_on(on, "b", "B", 88, ran=90)
    return cluster(on, EVEN, [*held, job("p", "A", 1, speedup={p_type: 1.0})], used={"B": 132.0})


def test_case_02_nobody_is_preempted_for_a_type_that_exists_nowhere() -> None:
    plan = solve(full_of_ones("H200"))
    assert of(plan, "p").action == "infeasible"
    assert codes(plan, "p") == ["no_such_type"]
    assert len(who(plan, "keep")) == 88


def test_case_02_for_an_existing_type_exactly_one_is_preempted_and_p_stands_on_its_gpu() -> None:
    state = full_of_ones("H100")
    plan = solve(state)
    (victim,) = who(plan, "preempt")
    assert len(who(plan, "keep")) == 87
    assert of(plan, "p").action == "start"
    assert of(plan, "p").after == (victim,)
    (there,) = (j.placement[0].node for j in state.jobs if j.id == victim)
    assert places(plan, "p") == {there: 1}
    assert of(plan, victim).requeue is True


def starved(minutes: float, used: dict[str, float], **more: str) -> ClusterState:
    """Case 3: b of B holds all since 12:00 with a contract of an hour; so long after noon A's gang waits."""
    now = after(minutes)
    jobs = [
        job("b", "B", 8, on={"n0": 8}, ran=minutes, now=now),
        job("a", "A", 8, now=now, submitted_at=after(1)),
    ]
    return cluster(nodes("1x8 H100", **more), EVEN, jobs, used=used, now=now)


@pytest.mark.parametrize("minutes", [10, 59 + 59 / 60])
def test_case_03_inside_protection_it_is_kept(minutes: float) -> None:
    plan = solve(starved(minutes, {"B": 400.0}))
    assert actions(plan) == {"a": "wait", "b": "keep"}
    assert of(plan, "b").protected_until_at == after(60)
    assert codes(plan, "b") == ["protected"]
    assert of(plan, "a").earliest_start_at == after(60)
    assert why(plan, "a", "protected_work").refs == ("b", "B")


def test_case_03_at_its_end_it_is_preempted_if_the_other_still_ranks_first() -> None:
    plan = solve(starved(60, {"B": 400.0}))
    assert standing(plan, "A").standing == 1
    assert actions(plan) == {"a": "start", "b": "preempt"}
    assert of(plan, "a").after == ("b",)
    assert of(plan, "a").protected_until_at == after(120)


def test_case_03_at_its_end_it_is_kept_if_the_other_ranks_second_by_then() -> None:
    plan = solve(starved(60, {"A": 800.0, "B": 400.0}))
    assert standing(plan, "B").standing == 1
    assert actions(plan) == {"a": "wait", "b": "keep"}


@pytest.mark.parametrize(("minutes", "action"), [(59 + 59 / 60, "keep"), (60, "migrate")])
def test_case_03_inside_protection_nothing_migrates_either(minutes: float, action: str) -> None:
    now = after(minutes)
    jobs = [
        job("b", "B", 4, on={"n0": 4}, ran=minutes, now=now, checkpointed_at=now),
        job("c", "B", 4, on={"n1": 4}, ran=1, now=now),
        job("a", "A", 8, now=now),
    ]
    plan = solve(cluster("2x8 H100", EVEN, jobs, now=now))
    assert of(plan, "b").action == action
    assert of(plan, "c").action == "keep"
    assert of(plan, "a").action == ("start" if action == "migrate" else "wait")


def nine_hours() -> ClusterState:
    return cluster("1x8 H100", EVEN, [job("long", "A", 8, c=9 * 60)])


def test_case_03_a_contract_of_nine_hours_is_refused_naming_the_cap_of_eight() -> None:
    (error,) = check_state(nine_hours(), Policy())
    assert error.pointer == "/jobs/0/contract/min_runtime_s"
    for number in ("'long'", "32400 s", "28800 s"):
        assert number in error.message
    with pytest.raises(InvalidInput, match="28800 s"):
        AllocateRequest(state=nine_hours())
    body = json.dumps({"state": json.loads(nine_hours().model_dump_json())}).encode()
    with pytest.raises(InvalidInput, match="28800 s"):
        parse_request(body)


def test_case_03_eight_hours_are_taken() -> None:
    plan = solve(cluster("1x8 H100", EVEN, [job("long", "A", 8, c=8 * 60)]))
    assert of(plan, "long").protected_until_at == after(8 * 60)


def test_case_03_only_a_dead_node_ends_protection() -> None:
    cordoned = solve(starved(10, {"B": 400.0}, status="cordoned"))
    assert actions(cordoned) == {"a": "wait", "b": "keep"}
    dead = solve(starved(10, {"B": 400.0}, status="down"))
    assert actions(dead) == {"a": "wait", "b": "preempt"}
    assert of(dead, "b").requeue is True
    assert codes(dead, "b") == ["node_loss"]
    assert why(dead, "b", "node_loss").refs == ("n0",)


def test_case_03_a_dead_node_beside_an_idle_one_moves_the_job() -> None:
    on = changed_node(nodes("2x8 H100"), "n0", status="down")
    plan = solve(cluster(on, EVEN, [job("b", "B", 8, on={"n0": 8}, ran=10)]))
    assert actions(plan) == {"b": "migrate"}
    assert places(plan, "b") == {"n1": 8}
    assert codes(plan, "b") == ["node_loss"]
    assert of(plan, "b").protected_until_at == after(60)


def about_to_end() -> ClusterState:
    """Case 4: B holds all of 100 GPUs past its contracts; ten of its jobs end in two minutes. A wants ten."""
    on = nodes("10x10 H100")
    held = ones_on(on, "b", "B", 100, ran=90)
    held = [j.model_copy(update={"expected_end_at": after(2)}) if j.id < "b010" else j for j in held]
    return cluster(on, EVEN, [*held, *ones("a", "A", 10)], used={"B": 150.0})


def test_case_04_ten_that_end_in_two_minutes_are_waited_for() -> None:
    plan = solve(about_to_end(), Policy(restart_cost_s=300))
    assert len(who(plan, "keep")) == 100
    assert who(plan, "wait") == {f"a{i:03}" for i in range(10)}
    for i in range(10):
        assert of(plan, f"a{i:03}").earliest_start_at == after(2)
        assert "reserved_ending" in codes(plan, f"a{i:03}")
    assert why(plan, "a000", "reserved_ending").refs == tuple(f"b{i:03}" for i in range(10))


def test_case_04_where_a_restart_costs_nothing_ten_are_preempted_at_once() -> None:
    plan = solve(about_to_end(), Policy(restart_cost_s=0))
    assert len(who(plan, "preempt")) == 10
    assert len(who(plan, "keep")) == 90
    assert who(plan, "start") == {f"a{i:03}" for i in range(10)}


def newcomer(past: int) -> ClusterState:
    """Case 5: A ran 100 of 100 all week, `past` jobs past their contract of an hour; B comes with 60.

    a001 saved its work a minute ago, a002 two and so on up to an hour; those past that, and every third of
    the others, never saved. The protected ones started 50, 49 ... minutes ago and end from 12:10 on.
    """
    on = nodes("10x10 H100")
    held = ones_on(on, "a", "A", 100, ran=600)
    for i in range(past):
        if i < 60 and i % 3:
            held[i] = held[i].model_copy(update={"checkpointed_at": after(-i)})
    for i in range(past, 100):
        held[i] = held[i].model_copy(update={"started_at": after(i - past - 50)})
    return cluster(on, EVEN, [*held, *ones("b", "B", 60)], used={"A": 100 * WEEK_H, "B": 0.0})


def lost_minutes(state: ClusterState, name: str) -> float:
    """Work a job would lose: since its checkpoint, else its start, at most its contract."""
    (found,) = [j for j in state.jobs if j.id == name]
    last = found.checkpointed_at or found.started_at
    assert last is not None
    return min((state.now - last) / timedelta(minutes=1), found.contract.min_runtime_s / 60)


def test_case_05_the_newcomers_60_start_at_once_on_the_gpus_of_those_who_lose_least() -> None:
    state = newcomer(past=70)
    plan = solve(state)
    victims = who(plan, "preempt")
    assert who(plan, "start") == {f"b{i:03}" for i in range(60)}
    assert len(victims) == 60
    assert victims <= {f"a{i:03}" for i in range(70)}
    assert who(plan, "wait") == set()
    assert standing(plan, "A").entitled_gpus == pytest.approx(40)
    assert standing(plan, "B").entitled_gpus == pytest.approx(60)
    spared = {f"a{i:03}" for i in range(70)} - victims
    most = max(lost_minutes(state, name) for name in victims)
    assert all(lost_minutes(state, name) >= most for name in spared)


def test_case_05_not_reporting_checkpoints_is_no_shield() -> None:
    state = newcomer(past=70)
    victims = who(solve(state), "preempt")
    silent = {j.id for j in state.jobs if j.id < "a070" and j.checkpointed_at is None}
    assert len(silent) == 30
    assert len(victims & silent) == 20
    assert all(lost_minutes(state, name) == 60 for name in silent)


def test_case_05_with_50_past_their_contract_50_start_and_ten_wait_for_the_first_end() -> None:
    plan: Plan = solve(newcomer(past=50))
    assert who(plan, "preempt") == {f"a{i:03}" for i in range(50)}
    assert len(who(plan, "start")) == 50
    waiting = sorted(who(plan, "wait"))
    assert waiting == [f"b{i:03}" for i in range(50, 60)]
    for name in waiting:
        assert of(plan, name).earliest_start_at == after(10)
        found = why(plan, name, "protected_work")
        assert found.message.startswith("50 protected jobs hold 50 H100 on nodes it could use: a050, a051, a052")
        assert "the first until 2026-11-01T12:10:00Z" in found.message
        assert found.refs == tuple(f"a{i:03}" for i in range(50, 60))
