"""What a job says about types: case 24; and what it gains by saying wrong: case 25."""

from __future__ import annotations

import pytest

from cases.states import actions, cluster, codes, job, nodes, of, ones, places, solve, standing, warned
from evenhand import audit_speedups, state_in_use
from evenhand.speedups import found_wrong, misreport_gain, with_gains
from evenhand_models import (
    ClusterState,
    InvalidInput,
    Job,
    Objective,
    Observation,
    Policy,
    SpeedupAuditRequest,
    SpeedupPolicy,
    SpeedupReport,
    parse_state,
)

ONE = {"A": 1}


def test_case_24_a_type_with_speedup_0_is_never_used() -> None:
    j = job("j", "A", 4, speedup={"K80": 0, "V100": 1})
    assert places(solve(cluster("2x8 K80, 1x4 V100", ONE, [j])), "j") == {"n2": 4}
    busy = job("x", "A", 4, on={"n2": 4}, ran=10, speedup={"V100": 1})
    plan = solve(cluster("2x8 K80, 1x4 V100", ONE, [j, busy]))
    assert actions(plan) == {"j": "wait", "x": "keep"}
    plan = solve(cluster("2x8 K80", ONE, [j]))
    assert actions(plan) == {"j": "infeasible"}
    assert codes(plan, "j") == ["no_such_type"]


def test_case_24_a_slow_type_keeps_its_number() -> None:
    k = job("k", "A", 4, speedup={"K80": 1, "V100": 4})
    plan = solve(cluster("1x4 K80, 1x4 V100", ONE, [k]))
    assert places(plan, "k") == {"n1": 4}
    assert standing(plan, "A").throughput == pytest.approx(4)
    two = [k, k.model_copy(update={"id": "k2"})]
    plan = solve(cluster("1x4 K80, 1x4 V100", ONE, two))
    assert actions(plan) == {"k": "start", "k2": "start"}
    assert standing(plan, "A").allocated == {"K80": 4, "V100": 4}
    assert standing(plan, "A").throughput == pytest.approx(4 * 1 + 4 * 0.25)


def test_case_24_j_never_stands_on_k80_though_k_could_make_room_for_it() -> None:
    jobs = [
        job("j", "A", 4, speedup={"K80": 0, "V100": 1}),
        job("k", "A", 4, speedup={"K80": 1, "V100": 4}, submitted_at=job("x", "A", 1).submitted_at),
    ]
    plan = solve(cluster("1x4 K80, 1x4 V100", ONE, jobs))
    assert of(plan, "j").gpu_type == "V100"
    assert of(plan, "k").gpu_type == "K80"


def test_case_24_a_missing_type_cannot_be_run_on_and_one_the_cluster_lacks_is_no_matter() -> None:
    plan = solve(cluster("1x8 K80, 1x8 V100", ONE, [job("m", "A", 8, speedup={"V100": 2, "B200": 9})]))
    assert places(plan, "m") == {"n1": 8}
    assert warned(plan, "unknown_gpu_type")
    plan = solve(cluster(nodes("1x8 K80"), ONE, [job("m", "A", 8, speedup={})]))
    assert codes(plan, "m") == ["zero_speedup"]


@pytest.mark.parametrize("factor", ["-1", "-0.5", "NaN", "Infinity", "-Infinity", '"2"', "null", "1e400"])
def test_case_24_a_speedup_that_is_no_number_of_0_or_more_is_refused(factor: str) -> None:
    body = cluster("1x8 V100", ONE, [job("j", "A", 4, speedup={"V100": 7.5})]).model_dump_json()
    assert body.count("7.5") == 1
    with pytest.raises(InvalidInput) as refused:
        parse_state(body.replace("7.5", factor).encode())
    assert refused.value.errors[0].pointer in ("/jobs/0/speedup/V100", "")
    assert len(refused.value.errors) == 1


@pytest.mark.parametrize("factor", [-1.0, float("nan"), float("inf")])
def test_case_24_from_python_too(factor: float) -> None:
    with pytest.raises(ValueError, match="V100"):
        Job.model_validate(job("j", "A", 4).model_dump() | {"speedup": {"V100": factor}})


A, B = {"slow": 1.0, "fast": 2.0}, {"slow": 1.0, "fast": 4.0}


def two_groups(of_b: float = 1.0) -> ClusterState:
    """A and B, each with more work than the 16 slow and 16 fast GPUs can hold; B multiplies its fast type."""
    told = B | {"fast": of_b * B["fast"]}
    work = ones("a", "A", 40, speedup=A) + ones("b", "B", 40, speedup=told)
    return cluster("2x8 slow, 2x8 fast", {"A": 1, "B": 1}, work)


def seen(times: int) -> list[Observation]:
    """So many observations of two jobs of each group on each type, as fast as the truth is."""
    return [
        Observation(job=name, gpu_type=t, gpus=1, work_done=x * (1 + 0.05 * (-1) ** i), seconds=600)
        for name, truth in (("a000", A), ("a001", A), ("b000", B), ("b001", B))
        for t, x in truth.items()
        for i in range(times)
    ]


def reported(state: ClusterState, times: int = 6, **policy: object) -> SpeedupReport:
    request = SpeedupAuditRequest(state=state, observations=tuple(seen(times)), policy=SpeedupPolicy(**policy))
    return with_gains(state, audit_speedups(request), Policy(throughput_unit="slowest"))


@pytest.mark.parametrize("factor", [10.0, 0.1])
def test_case_25_the_audit_flags_b_once_there_are_observations_and_states_what_it_gains(factor: float) -> None:
    assert not found_wrong(reported(two_groups(factor), times=0))
    report = reported(two_groups(factor))
    flagged = {(g.group, g.gpu_type, g.flag.value) for g in report.groups if g.flag != "none"}
    assert flagged == {("B", "fast", "overdeclared" if factor > 1 else "underdeclared")}
    gains = {g.objective: g for g in report.gains}
    assert set(gains) == set(Objective)
    assert {g.group for g in report.gains} == {"B"}
    for gain in gains.values():
        assert gain.honest > 0
        assert gain.gain == pytest.approx(gain.declared / gain.honest - 1)
    assert gains[Objective.FAIR_SHARE].gain == 0
    assert not found_wrong(reported(two_groups()))


@pytest.mark.parametrize("factor", [1.05, 1.5, 2.0, 4.0, 10.0, 100.0])
@pytest.mark.parametrize("group", ["A", "B"])
def test_case_25_under_equal_throughput_declaring_too_much_gains_nothing(group: str, factor: float) -> None:
    policy = Policy(objective=Objective.EQUAL_THROUGHPUT, throughput_unit="slowest")
    found = misreport_gain(two_groups(), policy, group, factors={"fast": factor})
    assert found.gain is not None
    assert found.gain <= 1e-6


def test_case_25_under_equal_throughput_declaring_too_little_can_pay() -> None:
    policy = Policy(objective=Objective.EQUAL_THROUGHPUT, throughput_unit="slowest")
    found = misreport_gain(two_groups(), policy, "B", factors={"fast": 3 / 4})
    assert (found.honest, found.declared) == (pytest.approx(32), pytest.approx(38.4))  # 2 and 2.4 a GPU of each type


def test_case_25_in_the_unit_best_equal_throughput_rewards_declaring_too_much_a_little() -> None:
    policy = Policy(objective=Objective.EQUAL_THROUGHPUT, throughput_unit="best")
    found = misreport_gain(two_groups(), policy, "A", factors={"fast": 1.9})
    assert found.gain == pytest.approx(0.158, abs=1e-3)


def test_case_25_by_what_was_observed_the_next_round_is_that_of_the_truth() -> None:
    lie = two_groups(10.0)
    used = state_in_use(lie, reported(lie, use="observed"))
    for j in used.jobs:
        assert j.speedup == pytest.approx(A if j.group == "A" else B, rel=0.02)
