"""What a job says about types: case 24."""

from __future__ import annotations

import pytest

from cases.states import actions, cluster, codes, job, nodes, of, places, solve, standing, warned
from evenhand_models import InvalidInput, Job, parse_state

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
