"""Budgets, usage and time: cases 13, 14, 16, 17, 18, 20, 22 and 23."""

from __future__ import annotations

import json
import math
from collections import deque
from datetime import timedelta

import pytest

from cases.states import (
    NOW,
    actions,
    after,
    cluster,
    codes,
    job,
    nodes,
    of,
    ones,
    ones_on,
    solve,
    standing,
    warned,
    who,
)
from evenhand.entitlement import entitle
from evenhand.snapshot import take_snapshot
from evenhand_models import (
    ClusterState,
    InvalidInput,
    Policy,
    Usage,
    canonical_bytes,
    parse_policy,
    parse_request,
    parse_state,
)

EVEN = {"A": 50, "B": 50}
WEEK_S = 604_800


def after_a_week() -> ClusterState:
    """Case 13: B alone has used 14,400 GPU-hours in the window; both want all of 100 GPUs."""
    jobs = [*ones("a", "A", 100), *ones("b", "B", 100)]
    return cluster("10x10 H100", EVEN, jobs, used={"A": 0.0, "B": 14_400.0})


@pytest.mark.parametrize(
    ("policy", "entitled", "most"),
    [(Policy(), (92.857, 7.143), (93, 8)), (Policy(horizon_s=86_400), (100, 0), (100, 0))],
    ids=["the week", "a day"],
)
def test_case_13_the_idle_group_is_entitled_to_what_it_is_behind(
    policy: Policy, entitled: tuple[float, float], most: tuple[int, int]
) -> None:
    plan = solve(after_a_week(), policy)
    a, b = standing(plan, "A"), standing(plan, "B")
    assert (a.entitled_gpus, b.entitled_gpus) == pytest.approx(entitled, abs=5e-4)
    assert (a.usage_gpu_hours, b.usage_gpu_hours) == (0.0, 14_400.0)
    assert (a.standing, b.standing) == (1, 2)
    started = (
        sum(n.startswith("a") for n in who(plan, "start")),
        sum(n.startswith("b") for n in who(plan, "start")),
    )
    assert sum(started) == 100
    assert all(got <= limit for got, limit in zip(started, most, strict=True))


def lasting_split(state: ClusterState, weeks: int, step_h: int) -> list[float]:
    """A's share of the GPUs, step by step, where both get exactly what they are entitled to.

    Usage is what the last 168 hours hold; B's 14,400 lie evenly over the six days before now.
    """
    steps = 168 // step_h
    past = deque([(0.0, 0.0)] * (24 // step_h) + [(0.0, 100.0 * step_h)] * (144 // step_h))
    shares = []
    for _ in range(weeks * steps):
        used = [math.fsum(hours) for hours in zip(*past, strict=True)]
        usage = tuple(Usage(group=g, charged_gpu_hours=h) for g, h in zip("AB", used, strict=True))
        entitled = entitle(take_snapshot(state.model_copy(update={"usage": usage}), Policy())).entitled
        assert sum(entitled) == pytest.approx(100)
        shares.append(float(entitled[0]))
        past.popleft()
        past.append((float(entitled[0]) * step_h, float(entitled[1]) * step_h))
    return shares


def test_case_13_under_lasting_demand_the_split_crosses_and_settles_without_swinging() -> None:
    jobs = [job("a", "A", 100, min_gpus=1), job("b", "B", 100, min_gpus=1)]
    state = cluster("10x10 H100", EVEN, jobs)
    shares = lasting_split(state, weeks=12, step_h=2)
    assert shares[0] == pytest.approx(92.857, abs=5e-4)
    crossed = next(i for i, share in enumerate(shares) if share <= 50)
    assert crossed < 84  # within the first week
    assert min(shares[crossed:]) >= 35
    assert max(shares[crossed:]) <= 65
    assert all(share == pytest.approx(50, abs=1) for share in shares[-84:])


def test_case_14_a_window_left_out_is_a_week_and_is_echoed() -> None:
    body = json.dumps({"state": json.loads(after_a_week().model_dump_json()), "policy": {}}).encode()
    request = parse_request(body)
    plan = solve(request.state, request.policy)
    assert plan.policy.window_s == WEEK_S
    assert json.loads(plan.to_json_bytes())["policy"]["window_s"] == WEEK_S
    assert solve(request.state).policy.window_s == WEEK_S


@pytest.mark.parametrize("value", [0, -1, -604_800, "604800", "1w", None, 0.5, True])
def test_case_14_a_window_that_is_no_length_is_refused_naming_the_field(value: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_policy(json.dumps({"window_s": value}).encode())
    assert [error.pointer for error in refused.value.errors] == ["/window_s"]


@pytest.mark.parametrize("value", [0, -1, "604800"])
def test_case_14_in_a_request_too(value: object) -> None:
    body = {"state": json.loads(after_a_week().model_dump_json()), "policy": {"window_s": value}}
    with pytest.raises(InvalidInput) as refused:
        parse_request(json.dumps(body).encode())
    assert [error.pointer for error in refused.value.errors] == ["/policy/window_s"]


def test_case_16_a_group_with_no_share_gets_what_nobody_entitled_wants_as_unallocated_use() -> None:
    jobs = [*ones("a", "A", 8, submitted_at=after(-60)), *ones("b", "B", 5)]
    plan = solve(cluster("1x8 H100", {"A": 0, "B": 100}, jobs))
    assert who(plan, "start") == {f"b{i:03}" for i in range(5)} | {f"a{i:03}" for i in range(3)}
    for i in range(3):
        assert of(plan, f"a{i:03}").unallocated is True
        assert of(plan, f"a{i:03}").protected_until_at is None
    assert not any(of(plan, f"b{i:03}").unallocated for i in range(5))
    assert standing(plan, "A").entitled_gpus == 0
    assert standing(plan, "A").allocated == {}
    assert standing(plan, "A").unallocated_use == {"H100": 3}
    assert standing(plan, "B").allocated == {"H100": 5}


def test_case_16_what_it_got_is_given_back_at_once_and_never_displaces_anybody() -> None:
    on = nodes("1x8 H100")
    held = ones_on(on, "a", "A", 8, ran=1)
    plan = solve(cluster(on, {"A": 0, "B": 100}, [*held, *ones("b", "B", 5)]))
    assert len(who(plan, "preempt")) == 5
    assert who(plan, "start") == {f"b{i:03}" for i in range(5)}
    old = ones_on(on, "b", "B", 8, ran=600)
    plan = solve(cluster(on, {"A": 0, "B": 100}, [*old, *ones("a", "A", 5)], used={"B": 5_000.0}))
    assert len(who(plan, "keep")) == 8
    assert codes(plan, "a000") == ["capacity", "lower_rank"]


def test_case_16_shares_that_are_all_0_are_split_equally_with_a_warning() -> None:
    jobs = [*ones("a", "A", 8), *ones("b", "B", 8)]
    plan = solve(cluster("1x8 H100", {"A": 0, "B": 0}, jobs))
    assert sorted(n[0] for n in who(plan, "start")) == ["a"] * 4 + ["b"] * 4
    assert (standing(plan, "A").entitled_gpus, standing(plan, "B").entitled_gpus) == (4, 4)
    assert not any(a.unallocated for a in plan.assignments)
    (warning,) = [w for w in plan.warnings if w.code == "zero_shares"]
    assert warning.refs == ("A", "B")


@pytest.mark.parametrize("shares", [{"A": 0, "B": 100}, {"A": 0, "B": 0}, {"A": 0}])
@pytest.mark.parametrize("idle", [True, False])
def test_case_16_no_number_is_ever_nan(shares: dict[str, float], idle: bool) -> None:
    jobs = [] if idle else [j for g in shares for j in ones(g, g, 8)]
    plan = solve(cluster("1x8 H100", shares, jobs))

    def refuse(name: str) -> None:
        raise AssertionError(name)

    json.loads(plan.to_json_bytes(), parse_constant=refuse)
    for group in plan.groups:
        numbers = (group.share, group.usage_gpu_hours, group.demand_gpus, group.entitled_gpus, group.floor)
        assert all(math.isfinite(x) for x in (*numbers, group.throughput, *group.target.values()))


def test_case_17_a_start_5_s_ahead_is_read_as_now_with_a_warning() -> None:
    ahead = job("j", "A", 8, on={"n0": 8}).model_copy(update={"started_at": NOW + timedelta(seconds=5)})
    plan = solve(cluster("1x8 H100", EVEN, [ahead, job("b", "B", 8)], used={"A": 400.0}))
    assert actions(plan) == {"b": "wait", "j": "keep"}
    assert warned(plan, "started_at_clamped")
    assert of(plan, "j").protected_until_at == after(60)
    assert all(g.usage_gpu_hours >= 0 for g in plan.groups)


def test_case_17_a_start_10_min_ahead_is_refused() -> None:
    ahead = job("j", "A", 8, on={"n0": 8}).model_dump() | {"started_at": after(10)}
    with pytest.raises(InvalidInput) as refused:
        ClusterState.model_validate(cluster("1x8 H100", EVEN).model_dump() | {"jobs": [ahead]})
    (error,) = refused.value.errors
    assert error.pointer == "/jobs/0/started_at"
    assert "'j'" in error.message
    assert "600 s after now" in error.message


def test_case_17_protection_is_never_longer_than_the_contract() -> None:
    ahead = job("j", "A", 8, on={"n0": 8}).model_copy(update={"started_at": NOW + timedelta(seconds=5)})
    state = cluster("1x8 H100", EVEN, [ahead, job("b", "B", 8)], used={"A": 400.0})
    assert actions(solve(state.model_copy(update={"now": after(59)})))["j"] == "keep"
    after_clamp = state.model_copy(update={"now": after(60) + timedelta(seconds=5)})
    assert actions(solve(after_clamp)) == {"b": "start", "j": "preempt"}


def test_case_17_negative_usage_is_refused() -> None:
    body = json.loads(cluster("1x8 H100", EVEN, used={"A": 1.0}).model_dump_json())
    body["usage"][0]["charged_gpu_hours"] = -1.0
    with pytest.raises(InvalidInput) as refused:
        parse_state(json.dumps(body).encode())
    assert [error.pointer for error in refused.value.errors] == ["/usage/0/charged_gpu_hours"]


def in_zone(state: ClusterState, hours: int) -> bytes:
    """The state as JSON, every instant written with the offset of a zone."""
    offset = f"{hours:+03d}:00" if hours else "Z"

    def write(value: object) -> object:
        if isinstance(value, dict):
            return {k: moved(v) if k == "now" or k.endswith("_at") else write(v) for k, v in value.items()}
        return [write(one) for one in value] if isinstance(value, list) else value

    def moved(value: object) -> object:
        if not isinstance(value, str):
            return value
        local = parse_instant(value) + timedelta(hours=hours)
        return local.strftime("%Y-%m-%dT%H:%M:%S") + offset

    return json.dumps({"state": write(json.loads(state.model_dump_json()))}).encode()


def parse_instant(text: str):
    return type(NOW).fromisoformat(text)


def test_case_18_the_zone_an_instant_is_written_in_changes_no_byte() -> None:
    on = nodes("2x8 H100", available_until_at=after(600))
    jobs = [
        job("r", "A", 8, on={"n0": 8}, ran=90, checkpointed_at=after(-7), expected_end_at=after(45)),
        job("s", "A", 8, on={"n1": 8}, ran=30),
        job("p", "B", 8, submitted_at=after(-55)),
    ]
    state = cluster(on, EVEN, jobs, used={"A": 400.0})
    bodies = [in_zone(state, hours) for hours in (0, 9, -7)]
    assert b"T21:00:00+09:00" in bodies[1]
    assert b"T05:00:00-07:00" in bodies[2]
    answers = {canonical_bytes(solve(parse_request(body).state).model_copy(update={"solver": None})) for body in bodies}
    assert len(answers) == 1
    hashes = {(plan.solver.state_hash, plan.solver.plan_hash) for plan in (solve(parse_state(b)) for b in bodies)}
    assert len(hashes) == 1


def test_case_18_an_hour_is_3600_s_where_the_clocks_go_back_in_between() -> None:
    # California leaves summer time at 02:00 on 1 November 2026: 01:30 comes twice, an hour apart.
    running = {"started_at": "2026-11-01T01:30:00-07:00", "submitted_at": "2026-11-01T01:00:00-07:00"}
    ends = "2026-11-01T01:30:00-08:00"

    def at(now: str) -> ClusterState:
        body = json.loads(
            cluster("1x8 H100", EVEN, [job("j", "A", 8, on={"n0": 8}), job("b", "B", 8)]).model_dump_json()
        )
        body |= {"now": now, "usage": [{"group": "A", "charged_gpu_hours": 400.0}]}
        body["jobs"][0] |= running
        body["jobs"][1] |= {"submitted_at": running["submitted_at"]}
        return parse_state(json.dumps(body).encode())

    inside = solve(at("2026-11-01T01:29:59-08:00"))
    assert actions(inside)["j"] == "keep"
    assert of(inside, "j").protected_until_at == at(ends).now
    assert actions(solve(at(ends)))["j"] == "preempt"


RATES = {"T4": 1.0, "A100": 8.0}
BOTH = {"T4": 1.0, "A100": 8.0}


def two_types() -> ClusterState:
    """Case 20: A holds 20 T4 and B 16 of 20 A100, all protected; both want more of either."""
    on = nodes("5x4 T4, 5x4 A100")
    held = ones_on(on[:5], "a", "A", 20, ran=10, speedup=BOTH) + ones_on(on[5:], "b", "B", 16, ran=10, speedup=BOTH)
    more = ones("x", "A", 10, speedup=BOTH) + ones("y", "B", 10, speedup=BOTH, submitted_at=after(-20))
    return cluster(on, EVEN, held + more, rates=RATES)


def test_case_20_both_are_charged_one_to_eight() -> None:
    on = nodes("5x4 T4, 5x4 A100")
    held = ones_on(on[:5], "a", "A", 20, ran=10, speedup={"T4": 1.0})
    held += ones_on(on[5:], "b", "B", 16, ran=10, speedup={"A100": 1.0})
    plan = solve(cluster(on, EVEN, held, rates=RATES))
    assert (standing(plan, "A").demand_gpus, standing(plan, "B").demand_gpus) == (20 * 1, 16 * 8)
    assert (standing(plan, "A").entitled_gpus, standing(plan, "B").entitled_gpus) == (20 * 1, 16 * 8)


@pytest.mark.parametrize("used", [{}, {"A": 20.0 / 6, "B": 128.0 / 6}], ids=["no usage", "ten minutes"])
def test_case_20_the_idle_a100s_go_to_the_group_that_holds_the_cheap_ones(used: dict[str, float]) -> None:
    state = two_types()
    usage = tuple(Usage(group=g, charged_gpu_hours=h) for g, h in used.items())
    plan = solve(state.model_copy(update={"usage": usage}))
    assert standing(plan, "A").allocated == {"A100": 4, "T4": 20}
    assert standing(plan, "B").allocated == {"A100": 16}
    assert len(who(plan, "start")) == 4
    assert all(name.startswith("x") for name in who(plan, "start"))
    total = standing(plan, "A").entitled_gpus + standing(plan, "B").entitled_gpus
    assert total == pytest.approx(20 * 1 + 20 * 8)
    assert standing(plan, "A").entitled_gpus == pytest.approx(90, abs=1)


def test_case_22_a_flood_that_came_first_takes_no_more_than_its_half() -> None:
    jobs = [*ones("b", "B", 100, submitted_at=after(-30)), *ones("a", "A", 100, submitted_at=after(-1))]
    plan = solve(cluster("5x10 H100", EVEN, jobs))
    started = sorted(name[0] for name in who(plan, "start"))
    assert (started.count("a"), started.count("b")) == (25, 25)
    assert who(plan, "start") == {f"{g}{i:03}" for g in "ab" for i in range(25)}


@pytest.mark.parametrize("hardware", ["2x8 H100, 2x8 A100", "4x8 H100, 2x8 A100", "1x8 H100, 4x8 A100"])
def test_case_23_only_those_who_can_use_a_type_share_it(hardware: str) -> None:
    on = nodes(hardware)
    h100, a100 = ([n for n in on if n.gpu_type == t] for t in ("H100", "A100"))
    count = sum(n.gpus for n in a100)
    jobs = [
        *ones_on(h100, "a", "A", sum(n.gpus for n in h100), ran=90),
        *ones_on(a100, "b", "B", count, ran=90, speedup={"A100": 1.0}),
        *ones("c", "C", count, speedup={"A100": 1.0}),
    ]
    plan = solve(cluster(on, {"A": 1, "B": 1, "C": 1}, jobs))
    assert standing(plan, "C").target == pytest.approx({"A100": count / 2})
    assert standing(plan, "C").allocated == {"A100": count // 2}
    assert standing(plan, "B").allocated == {"A100": count // 2}
    assert all(name.startswith("b") for name in who(plan, "preempt"))
    assert len(who(plan, "preempt")) == count // 2


def test_case_23_the_same_without_anything_running() -> None:
    alone = {"A100": 1.0}
    jobs = [*ones("a", "A", 30), *ones("b", "B", 30, speedup=alone), *ones("c", "C", 30, speedup=alone)]
    plan = solve(cluster("2x8 H100, 2x8 A100", {"A": 1, "B": 1, "C": 1}, jobs))
    got = {g: standing(plan, g).allocated for g in "ABC"}
    assert got == {"A": {"H100": 16}, "B": {"A100": 8}, "C": {"A100": 8}}
