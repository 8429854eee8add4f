"""Gangs are whole or not at all, and stand where they should: cases 7 to 10 and 12."""

from __future__ import annotations

import pytest

from cases.states import (
    actions,
    after,
    changed_node,
    cluster,
    codes,
    job,
    nodes,
    of,
    ones,
    places,
    solve,
    standing,
    who,
    why,
)
from evenhand_models import ClusterState, Job

EVEN = {"A": 50, "B": 50}


def test_case_07_a_full_pool_does_not_hold_up_another() -> None:
    jobs = [
        job("x", "C", 8, on={"n0": 8}, ran=10),
        job("h", "A", 8, submitted_at=after(-30)),
        job("k", "B", 8, submitted_at=after(-20), speedup={"A100": 1.0}),
    ]
    plan = solve(cluster("1x8 H100, 1x8 A100", {**EVEN, "C": 50}, jobs, used={"B": 500.0, "C": 500.0}))
    assert standing(plan, "A").standing == 1
    assert actions(plan) == {"h": "wait", "k": "start", "x": "keep"}
    assert places(plan, "k") == {"n1": 8}
    assert of(plan, "h").gpus == 0
    assert standing(plan, "A").allocated == {}
    assert standing(plan, "A").throughput == 0
    assert codes(plan, "h")[:2] == ["capacity", "protected_work"]
    assert of(plan, "h").earliest_start_at == after(50)


@pytest.mark.parametrize(
    ("impossible", "code", "limit"),
    [
        (
            job("j", "A", 17),
            "gang_too_large",
            "Needs 17 GPUs; the largest size that H100 nodes could hold is 16.",
        ),
        (job("j", "A", 16, gpus_per_node=16), "gang_too_large", "Needs 16 GPUs on one node"),
        (job("j", "A", 16, worker_gpus=16), "gang_too_large", "Needs 16 GPUs on one node for a worker"),
        (
            job("j", "A", 8, speedup={"B200": 1.0}),
            "no_such_type",
            "It runs on B200 only, and the cluster has H100.",
        ),
    ],
    ids=["17", "16 on one node", "16 in one worker", "a type that is not there"],
)
def test_case_08_what_could_never_run_is_infeasible_and_says_what_would_do(
    impossible: Job, code: str, limit: str
) -> None:
    plan = solve(cluster("2x8 H100", EVEN, [impossible, job("other", "B", 8)]))
    assert of(plan, "j").action == "infeasible"
    assert codes(plan, "j") == [code]
    assert why(plan, "j", code).message.startswith(limit)
    assert of(plan, "other").action == "start"


@pytest.mark.parametrize("form", ["gpus_per_node", "worker_gpus"])
def test_case_08_16_on_one_node_names_8_as_the_largest_that_would_do(form: str) -> None:
    plan = solve(cluster("2x8 H100", EVEN, [job("j", "A", 16, **{form: 16})]))
    found = why(plan, "j", "gang_too_large")
    assert "the largest H100 node it could use has 8, the largest size of one that would do" in found.message
    assert found.cheapest_change == f"{form} of at most 8"


def test_case_08_a_gang_of_17_names_16_as_the_largest_that_would_do() -> None:
    plan = solve(cluster("2x8 H100", EVEN, [job("j", "A", 17)]))
    assert why(plan, "j", "gang_too_large").cheapest_change == "gpus of at most 16"


def test_case_08_while_all_nodes_are_down_a_job_waits() -> None:
    plan = solve(cluster(nodes("2x8 H100", status="down"), EVEN, [job("j", "A", 8)]))
    assert actions(plan) == {"j": "wait"}
    assert codes(plan, "j") == ["capacity", "node_down"]
    assert why(plan, "j", "node_down").refs == ("n0", "n1")


def test_case_09_of_two_gangs_that_each_need_all_exactly_one_starts() -> None:
    plan = solve(cluster("100x1 H100", EVEN, [job("g1", "A", 100), job("g2", "B", 100)]))
    (started,) = who(plan, "start")
    (waits,) = who(plan, "wait")
    assert {started, waits} == {"g1", "g2"}
    assert len(places(plan, started)) == 100
    assert of(plan, waits).gpus == 0


def half_wanted(**elastic: int) -> ClusterState:
    """Case 9: g1 holds all past its contract, charged for it; B needs ten, and C has work for any number."""
    on = nodes("100x1 H100")
    g1 = job("g1", "A", 100, on={n.name: 1 for n in on}, ran=90, **elastic)
    jobs = [g1, *ones("b", "B", 10), *ones("c", "C", 90)]
    return cluster(on, {"A": 1, "B": 1, "C": 1}, jobs, used={"A": 150.0})


def test_case_09_a_rigid_gang_is_preempted_whole_and_the_rest_is_given_out_in_the_same_round() -> None:
    plan = solve(half_wanted())
    assert who(plan, "preempt") == {"g1"}
    assert of(plan, "g1").requeue is True
    assert of(plan, "g1").placement == ()
    assert who(plan, "start") == {f"b{i:03}" for i in range(10)} | {f"c{i:03}" for i in range(90)}


def test_case_09_the_rest_goes_to_smaller_jobs_of_its_own_group_as_well() -> None:
    state = half_wanted()
    jobs = [j for j in state.jobs if j.group != "C"]
    plan = solve(state.model_copy(update={"jobs": (*jobs, *ones("a", "A", 90))}))
    assert who(plan, "preempt") == {"g1"}
    assert who(plan, "start") == {f"b{i:03}" for i in range(10)} | {f"a{i:03}" for i in range(90)}


def test_case_09_an_elastic_gang_is_shrunk_by_what_is_needed() -> None:
    state = half_wanted(min_gpus=10)
    jobs = [j for j in state.jobs if j.group != "C"]
    plan = solve(state.model_copy(update={"jobs": tuple(jobs)}))
    assert of(plan, "g1").action == "resize"
    assert of(plan, "g1").gpus == 90
    assert who(plan, "start") == {f"b{i:03}" for i in range(10)}
    assert who(plan, "preempt") == set()


def fragments(lost_min: dict[str, float], **fours: float) -> ClusterState:
    """Case 10: three nodes of 8 used 4+2+1, 4+2 and 4+2+1; the fours are protected.

    `lost_min` says how long ago each 2 and 1 saved its work (an hour at most counts).
    """
    pieces = {"n0": (4, 2, 1), "n1": (4, 2), "n2": (4, 2, 1)}
    jobs = [job("p", "A", 4)]
    for node, sizes in pieces.items():
        for size in sizes:
            name = f"{node}x{size}"
            more = {"ran": 10 * size} if size == 4 else {"ran": 300, "checkpointed_at": after(-lost_min[name])}
            jobs.append(job(name, "A", size, on={node: size}, **(more | fours)))
    return cluster("3x8 H100", {"A": 1}, jobs)


# Four GPUs on one node: n0 gives its 2 to n1 and its 1 to n2; or n2 likewise to n1 and n0; or n1 gives its 2
# to n0 or n2, which has given its 1 to the other first. All are two moves, of 2 and 1: lost work decides.
WAYS = {
    frozenset({"n0x2", "n0x1"}): "n0",
    frozenset({"n2x2", "n2x1"}): "n2",
    frozenset({"n1x2", "n0x1"}): "n1",
    frozenset({"n1x2", "n2x1"}): "n1",
}


@pytest.mark.parametrize(
    "lost",
    [
        {"n0x2": 10, "n0x1": 5, "n1x2": 20, "n2x2": 30, "n2x1": 40},
        {"n0x2": 40, "n0x1": 30, "n1x2": 20, "n2x2": 10, "n2x1": 10},
        {"n0x2": 40, "n0x1": 5, "n1x2": 10, "n2x2": 40, "n2x1": 20},
        {"n0x2": 40, "n0x1": 20, "n1x2": 10, "n2x2": 40, "n2x1": 5},
    ],
    ids=["out of n0", "out of n2", "out of n1 by n0", "out of n1 by n2"],
)
def test_case_10_the_cheapest_migrations_make_room_on_one_node(lost: dict[str, float]) -> None:
    def cost(way: frozenset[str]) -> float:
        return sum(lost[name] * int(name[-1]) for name in way)

    cheapest = min(WAYS, key=cost)
    plan = solve(fragments(lost))
    assert who(plan, "migrate") == set(cheapest)
    assert who(plan, "preempt") == set()
    assert of(plan, "p").action == "start"
    assert places(plan, "p") == {WAYS[cheapest]: 4}
    for name in cheapest:
        assert codes(plan, name) == ["defragment"]


def test_case_10_where_all_are_protected_it_waits_and_names_the_first_unlock() -> None:
    started = {"n0x2": 0, "n0x1": 0, "n1x2": 0, "n2x2": 0, "n2x1": 0}
    plan = solve(fragments(started, ran=20, c=480))
    assert who(plan, "keep") == {f"n{n}x{k}" for n in range(3) for k in (4, 2, 1)} - {"n1x1"}
    assert of(plan, "p").action == "wait"
    assert of(plan, "p").earliest_start_at == after(460)
    assert codes(plan, "p")[:2] == ["fragmentation", "protected_work"]
    assert "the first until 2026-11-01T19:40:00Z" in why(plan, "p", "protected_work").message


def test_case_10_a_small_job_takes_the_smaller_gap() -> None:
    held = [job("x", "A", 6, on={"n0": 6}, ran=10), job("y", "A", 4, on={"n1": 4}, ran=10)]
    plan = solve(cluster("2x8 H100", {"A": 1}, [*held, job("p", "A", 2)]))
    assert places(plan, "p") == {"n0": 2}
    mirrored = [job("x", "A", 4, on={"n0": 4}, ran=10), job("y", "A", 6, on={"n1": 6}, ran=10)]
    plan = solve(cluster("2x8 H100", {"A": 1}, [*mirrored, job("p", "A", 2)]))
    assert places(plan, "p") == {"n1": 2}


def one_of_nine_lost(hardware: str, *others: Job) -> ClusterState:
    """Case 12: a gang of 64 on n0 to n7, an hour into its four; n3 has been down for two minutes."""
    on = changed_node(nodes(hardware), "n3", status="down", down_since_at=after(-2))
    g = job("g", "A", 64, c=240, on={f"n{i}": 8 for i in range(8)}, ran=60)
    return cluster(on, EVEN, [g, *others])


def test_case_12_a_spare_replaces_the_dead_node_and_the_other_seven_stay() -> None:
    plan = solve(one_of_nine_lost("9x8 H100"))
    assert actions(plan) == {"g": "migrate"}
    assert places(plan, "g") == {f"n{i}": 8 for i in (0, 1, 2, 4, 5, 6, 7, 8)}
    assert codes(plan, "g") == ["node_loss"]
    assert set(why(plan, "g", "node_loss").refs) >= {"n3", "n8"}
    assert standing(plan, "A").allocated == {"H100": 64}
    assert of(plan, "g").protected_until_at == after(240)


def test_case_12_without_a_spare_it_is_requeued_whole_and_its_56_good_gpus_are_used_at_once() -> None:
    small = [job(f"b{i}", "B", 8) for i in range(10)]
    plan = solve(one_of_nine_lost("8x8 H100", *small))
    assert of(plan, "g").action == "preempt"
    assert of(plan, "g").requeue is True
    assert codes(plan, "g") == ["node_loss"]
    assert len(who(plan, "start")) == 7
    used = {node for name in who(plan, "start") for node in places(plan, name)}
    assert used == {f"n{i}" for i in (0, 1, 2, 4, 5, 6, 7)}
    assert standing(plan, "A").allocated == {}
    assert standing(plan, "B").allocated == {"H100": 56}


def test_case_12_a_spare_that_others_want_still_repairs_the_protected_gang() -> None:
    small = [job(f"b{i}", "B", 8) for i in range(2)]
    plan = solve(one_of_nine_lost("9x8 H100", *small))
    assert actions(plan) == {"b0": "wait", "b1": "wait", "g": "migrate"}
