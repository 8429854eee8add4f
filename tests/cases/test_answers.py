"""Answers people can use: cases 26, 27, 29 and 30."""

from __future__ import annotations

from random import Random

import pytest
from instances import instance
from strategies import Renaming, comparable, random_state, shuffled, without_sentences

from cases.states import (
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
from evenhand_models import ClusterState, Group, Job, Plan, Policy, canonical_bytes

EVEN = {"A": 50, "B": 50}


def drained_and_protected() -> ClusterState:
    """Case 26: one node drained, one held by j1 of B until 13:40; p of A, over its entitlement, waits."""
    on = changed_node(nodes("2x8 H100"), "n1", status="cordoned")
    jobs = [job("j1", "B", 8, on={"n0": 8}, ran=20, c=120), job("p", "A", 8)]
    return cluster(on, EVEN, jobs, used={"A": 5_000.0, "B": 0.0})


def test_case_26_all_three_causes_are_said_with_names_and_numbers() -> None:
    plan = solve(drained_and_protected())
    assert of(plan, "p").action == "wait"
    assert set(codes(plan, "p")) == {"capacity", "protected_work", "group_over_entitlement", "node_drained"}
    held = why(plan, "p", "protected_work")
    assert held.refs == ("j1", "B")
    assert "8 H100" in held.message
    assert "until 2026-11-01T13:40:00Z" in held.message
    drained = why(plan, "p", "node_drained")
    assert drained.refs == ("n1",)
    assert drained.message == "Node n1 is cordoned and would bring 8 H100."
    over = why(plan, "p", "group_over_entitlement")
    assert over.refs[0] == "A"
    assert "holds 0 of the 0 charged GPUs that it is entitled to, and 8 more would make 8" in over.message
    assert of(plan, "p").earliest_start_at == after(100)
    assert codes(plan, "j1") == ["protected"]


def test_case_26_identical_rounds_give_identical_reasons() -> None:
    first, second = solve(drained_and_protected()), solve(drained_and_protected())
    assert of(first, "p").reasons == of(second, "p").reasons
    assert canonical_bytes(first) == canonical_bytes(second)


PHYSICAL = {
    "capacity",
    "fragmentation",
    "protected_work",
    "node_drained",
    "node_down",
    "foreign_gpus",
    "broken_gpus",
}


def idle_room(state: ClusterState, plan: Plan, waiting: Job) -> bool:
    """Whether GPUs on one open node that the job could use stay free and would hold it."""
    free = {n.name: n.usable_gpus for n in state.nodes if n.status == "up" and n.available_until_at is None}
    leaving = {j.id: j.placement for j in state.jobs if j.state == "terminating"}
    for a in plan.assignments:
        for part in (*a.placement, *(leaving.get(a.job, ()) if not a.placement else ())):
            if part.node in free:
                free[part.node] -= part.gpus
    for node in state.nodes:
        fits = waiting.speedup.get(node.gpu_type, 0) > 0 and waiting.requires.items() <= node.labels.items()
        if fits and waiting.same is None and free.get(node.name, 0) >= waiting.gpus:
            return True
    return False


def test_case_26_no_wait_goes_unexplained_least_of_all_beside_idle_gpus_that_would_do() -> None:
    beside_idle = waits = 0
    for seed in range(30, 60):
        state = random_state(Random(seed), "small")
        plan = solve(state)
        for waiting in state.jobs:
            if of(plan, waiting.id).action != "wait":
                continue
            waits += 1
            assert codes(plan, waiting.id), waiting.id
            assert all(r.message for r in of(plan, waiting.id).reasons)
            if waiting.gpus_per_node is None and idle_room(state, plan, waiting):
                beside_idle += 1
                assert set(codes(plan, waiting.id)) - PHYSICAL, (seed, waiting.id, codes(plan, waiting.id))
    assert waits > 25
    assert beside_idle > 0


def test_case_26_a_limit_or_coming_maintenance_is_named_beside_the_idle_gpus() -> None:
    runs = job("runs", "A", 8, on={"n0": 8}, ran=20)
    limited = [Group(id="A", share=1, max_gpus=8), Group(id="B", share=1)]
    plan = solve(cluster("2x8 H100", limited, [runs, job("p", "A", 8)]))
    assert codes(plan, "p") == ["group_limit"]
    assert why(plan, "p", "group_limit").refs == ("A",)
    closing = changed_node(nodes("2x8 H100"), "n1", available_until_at=after(59))
    plan = solve(cluster(closing, EVEN, [runs, job("p", "A", 8)]))
    assert of(plan, "p").action == "wait"
    assert why(plan, "p", "maintenance").refs == ("n1",)
    assert of(plan, "p").earliest_start_at == after(40)


def two_queues(**j1: object) -> ClusterState:
    """Case 1: both past their contracts of an hour since half an hour, and charged for what they ran."""
    jobs = [
        job("j1", "Q1", 4, on={"n0": 4}, ran=90, **j1),
        job("j2", "Q2", 1, on={"n0": 1}, ran=90),
        job("j3", "Q2", 4),
    ]
    return cluster("1x8 H100", {"Q1": 37.5, "Q2": 62.5}, jobs, used={"Q1": 6.0, "Q2": 1.5})


def test_case_27_the_record_of_a_preemption_names_for_whom_by_which_rule_and_what_it_costs() -> None:
    plan = solve(two_queues())
    assert codes(plan, "j1") == ["preempted_for"]
    found = why(plan, "j1", "preempted_for")
    assert found.refs[0] == "j3"
    assert set(found.refs) == {"j3", "Q1", "Q2"}
    for part in (
        "Job j3 gets its 4 H100 GPUs (rule R1)",
        "group Q2 has 5 of its entitled 5 charged GPUs after this round",
        "used 1.5 charged GPU-hours in the window and stands 1 of 2",
        "its group Q1 had 4 of its entitled 3 charged GPUs before this round",
        "used 6 charged GPU-hours in the window and stands 2 of 2",
        "its contract ended at 2026-11-01T11:30:00Z",
        "4 GPU-hours of work are lost",
        "it is requeued",
    ):
        assert part in found.message
    assert of(plan, "j1").requeue is True


def test_case_27_lost_work_counts_from_the_last_checkpoint() -> None:
    found = why(solve(two_queues(checkpointed_at=after(-15))), "j1", "preempted_for")
    assert "1 GPU-hours of work are lost" in found.message


def test_case_27_what_cannot_resume_is_said_to_end() -> None:
    plan = solve(two_queues(resumable=False))
    assert of(plan, "j1").action == "preempt"
    assert of(plan, "j1").requeue is False
    assert "it ends, as it cannot resume" in why(plan, "j1", "preempted_for").message
    assert "requeued" not in why(plan, "j1", "preempted_for").message


def test_case_29_all_536_that_fit_start_in_one_round() -> None:
    plan = solve(cluster("67x8 H100", {"A": 1}, ones("a", "A", 536)))
    assert len(who(plan, "start")) == 536
    assert standing(plan, "A").allocated == {"H100": 536}
    assert plan.certificate.status == "optimal"


TIED = {
    "same instant": (after(-10), after(-10), "p1"),
    "the second came first": (after(-10), after(-20), "p2"),
}


@pytest.mark.parametrize("case", TIED)
def test_case_30_ties_are_broken_by_submit_time_then_id(case: str) -> None:
    first, second, winner = TIED[case]
    jobs = [job("p1", "A", 8, submitted_at=first), job("p2", "A", 8, submitted_at=second)]
    plan = solve(cluster("1x8 H100", {"A": 1}, jobs))
    assert who(plan, "start") == {winner}


def crowded() -> ClusterState:
    """Many equal jobs and nodes, so that almost everything is a tie."""
    on = nodes("6x8 H100, 4x8 A100")
    both = {"H100": 2.0, "A100": 1.0}
    jobs = [job(f"r{i}", "A", 8, on={f"n{i}": 8}, ran=90, speedup=both) for i in range(6)]
    jobs += [job(f"{g}{i}", g.upper(), 4, speedup=both) for g in "bcd" for i in range(8)]
    jobs += [job(f"u{i}", "A", 2, c=0, speedup=both) for i in range(4)]
    return cluster(on, {"A": 1, "B": 1, "C": 1, "D": 1}, jobs, used={"A": 300.0})


STATES = {
    "crowded": crowded,
    "small": lambda: instance("small"),
    "drawn": lambda: random_state(Random(11), "small"),
}


@pytest.mark.parametrize(("name", "shuffles"), [("crowded", 20), ("drawn", 20), ("small", 4)])
def test_case_30_twenty_shuffles_and_the_number_of_workers_change_no_byte(name: str, shuffles: int) -> None:
    state = STATES[name]()
    plan = solve(state)
    for seed in range(shuffles):
        workers = 8 if seed % 2 else 1
        other = solve(shuffled(state, Random(seed)), Policy(workers=workers))
        assert other.policy.workers == workers
        assert canonical_bytes(other.model_copy(update={"policy": plan.policy})) == canonical_bytes(plan)
        assert other.solver.state_hash == plan.solver.state_hash


@pytest.mark.parametrize("name", STATES)
def test_case_30_new_names_in_the_same_order_change_nothing_but_names(name: str) -> None:
    state = STATES[name]()
    names = Renaming(state)
    assert names.keeps_order()
    assert names.plan(solve(names.state(state))) == without_sentences(comparable(solve(state)))


def test_case_30_the_placement_is_the_same_too() -> None:
    plan = solve(crowded())
    for seed in (1, 2):
        mixed = solve(shuffled(crowded(), Random(seed)))
        assert all(places(mixed, a.job) == places(plan, a.job) for a in plan.assignments)
