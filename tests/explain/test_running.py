"""Why a job starts, stays, moves, grows or is stopped: cases 1, 2, 3, 12, 20, 27, 29."""

from __future__ import annotations

import pytest
from explain.noon import PREEMPT, Told, ago, cluster, job, moved, nodes, start

from evenhand.outcome import Move
from evenhand_models import Group, Node


def case_1() -> Told:
    jobs = [
        job("j1", "Q1", 4, on={"n1": 4}, ran=75, checkpointed_at=ago(15)),
        job("j2", "Q2", 1, on={"n1": 1}, ran=75),
        job("j3", "Q2", 4),
    ]
    state = cluster(nodes(1), {"Q1": 37.5, "Q2": 62.5}, jobs, used={"Q1": 40, "Q2": 10})
    return Told(state, {"j1": PREEMPT, "j3": start(n1=4)})


def test_case_27_a_preemption_names_the_guest_the_rule_both_groups_and_the_loss() -> None:
    told = case_1()
    assert told.codes("j1") == ["preempted_for"]
    found = told.of("j1").reasons[0]
    assert found.refs == ("j3", "Q2", "Q1")
    assert found.message == (
        "Job j3 gets its 4 h100 GPUs (rule R1): group Q2 has 5 of its entitled 5 charged GPUs after this "
        "round, used 10 "
        "charged GPU-hours in the window and stands 1 of 2; its group Q1 had 4 of its entitled 3 charged "
        "GPUs before this "
        "round, used 40 charged GPU-hours in the window and stands 2 of 2; its contract ended at "
        "2026-11-01T12:45:00Z, "
        "1 GPU-hours of work are lost and it is requeued."
    )


def test_case_1_the_start_names_whom_it_waits_for() -> None:
    told = case_1()
    assert told.codes("j3") == ["entitled"]
    assert told.of("j3").reasons[0].message == (
        "Starts on 4 h100 GPUs: group Q2 holds 5 of its entitled 5 charged GPUs (fair target 5 h100) "
        "after this round; "
        "it starts when job j1 has left."
    )
    assert told.of("j3").reasons[0].refs == ("Q2", "j1")
    assert told.codes("j2") == ["best_use"]


def test_a_start_on_gpus_of_leavers_waits_for_them() -> None:
    jobs = [job("x", "B", 8, on={"n1": 8}, ran=90), job("p", "A", 8)]
    told = Told(cluster(nodes(1), {"A": 1, "B": 1}, jobs, used={"B": 900}), {"x": PREEMPT, "p": start(n1=8)})
    found = told.of("p").reasons[0]
    assert found.message.endswith("; it starts when job x has left.")
    assert found.refs[-1] == "x"


def test_case_2_exactly_one_is_preempted_for_the_one_that_comes() -> None:
    held = [job(f"x{i}", "B", 1, on={"n1": 1}, ran=90) for i in range(8)]
    state = cluster(nodes(1), {"A": 1, "B": 1}, [*held, job("p", "A", 1)], used={"B": 9})
    told = Told(state, {"x3": PREEMPT, "p": start(n1=1)})
    assert told.codes("x3") == ["preempted_for"]
    assert told.of("x3").reasons[0].refs == ("p", "A", "B")
    assert "1 GPU-hours of work are lost" in told.of("x3").reasons[0].message


@pytest.mark.parametrize(("ran", "code"), [(10, "protected"), (59.99, "protected"), (60, "best_use")])
def test_case_3_protection_is_half_open(ran: float, code: str) -> None:
    told = Told(cluster(nodes(1), {"A": 1, "B": 1}, [job("j", "B", 8, on={"n1": 8}, ran=ran)]))
    assert told.codes("j") == [code]


def test_case_12_only_the_dead_node_is_replaced() -> None:
    on = [*nodes(8), *nodes(1, first=9)]
    on[2] = Node(name="n3", gpu_type="h100", gpus=8, status="down")
    g = job("g", "A", 64, c=240, on={f"n{i}": 8 for i in range(1, 9)}, ran=60)
    after = {f"n{i}": 8 for i in range(1, 10) if i != 3}
    told = Told(cluster(on, {"A": 1}, [g]), {"g": moved(Move.REPAIR, **after)})
    assert told.codes("g") == ["node_loss"]
    assert told.of("g").reasons[0].message == (
        "Node n3 is down: 8 of its 64 GPUs are replaced on node n9, the other 56 stay."
    )
    assert told.of("g").reasons[0].refs == ("n3", "n9")


def test_case_12_without_a_spare_it_is_requeued_whole() -> None:
    on = nodes(8)
    on[2] = Node(name="n3", gpu_type="h100", gpus=8, status="down")
    g = job("g", "A", 64, c=240, on={f"n{i}": 8 for i in range(1, 9)}, ran=60)
    told = Told(cluster(on, {"A": 1}, [g]))
    assert told.codes("g") == ["node_loss"]
    assert (
        told.of("g").reasons[0].message == "Node n3 is down, and there is no place for its 64 GPUs now: it is requeued."
    )


def test_case_29_all_start_in_one_round_on_their_entitlement() -> None:
    jobs = [job(f"p{i:03}", "A", 1) for i in range(536)]
    told = Told(cluster(nodes(67), {"A": 1}, jobs))
    assert {told.codes(j.id)[0] for j in jobs} == {"entitled"}
    assert told.of("p000").reasons[0].message == (
        "Starts on 1 h100 GPU: group A holds 536 of its entitled 536 charged GPUs (fair target 536 h100) "
        "after this round."
    )


def test_spare_and_guaranteed_starts_say_the_numbers() -> None:
    groups = [Group(id="A", share=1), Group(id="B", share=3, guaranteed_gpus=4)]
    jobs = [job("a", "A", 8), job("b", "B", 4), job("c", "B", 4), job("d", "B", 4, speedup={"t4": 1.0})]
    told = Told(cluster([*nodes(2), *nodes(1, gpu_type="t4", first=3)], groups, jobs))
    assert told.codes("b") == ["guaranteed"]
    assert (
        "the guarantee of group B covers 4 charged GPUs, of which 4 are held with it" in told.of("b").reasons[0].message
    )
    assert told.codes("c") == ["entitled"]
    over = Told(cluster(nodes(2), {"A": 1, "B": 1}, [job("a", "A", 8), job("x", "A", 4), job("b", "B", 12)]))
    assert "spare" in over.codes("x") + over.codes("a")


def test_unallocated_work_fills_what_is_left() -> None:
    told = Told(cluster(nodes(1), {"A": 1}, [job("u", "A", 4, c=0)]))
    assert told.codes("u") == ["unallocated_fill"]
    assert told.of("u").reasons[0].message == (
        "Starts on 4 h100 GPUs that no allocated work takes, as unallocated use (min_runtime_s 0)."
    )


def test_a_move_to_a_better_type_says_both_speeds() -> None:
    on = [*nodes(1), *nodes(1, gpu_type="t4", first=2)]
    mover = job("m", "A", 4, on={"n2": 4}, ran=90, speedup={"h100": 1.0, "t4": 0.25})
    told = Told(cluster(on, {"A": 1}, [mover]), {"m": moved(Move.MIGRATE, n1=4)})
    assert told.codes("m") == ["better_type"]
    assert told.of("m").reasons[0].message == (
        "Moves from t4 to 4 h100 GPUs on node n1, where a GPU brings it the throughput of 1 instead of 0.25."
    )


def test_a_move_within_a_type_names_who_gets_the_place() -> None:
    held = [job("m", "A", 1, on={"n1": 1}, ran=90), job("x", "A", 4, on={"n2": 4}, ran=90)]
    told = Told(
        cluster(nodes(2), {"A": 1}, [*held, job("p", "A", 8)]),
        {"m": moved(Move.MIGRATE, n2=1), "p": start(n1=8)},
    )
    assert told.codes("m") == ["defragment"]
    assert told.of("m").reasons[0].message == "Moves from node n1 to 1 h100 GPU on node n2 so that job p fits there."


def test_elastic_jobs_say_from_to_and_for_whom() -> None:
    elastic = job("e", "A", 8, min_gpus=4, on={"n1": 8}, ran=90)
    shrunk = Told(
        cluster(nodes(1), {"A": 1, "B": 1}, [elastic, job("p", "B", 4)]),
        {"e": moved(Move.RESIZE, n1=4), "p": start(n1=4)},
    )
    assert shrunk.codes("e") == ["shrunk"]
    assert shrunk.of("e").reasons[0].message.startswith("Shrinks from 8 to 4 h100 GPUs so that job p gets the rest")
    small = job("e", "A", 8, min_gpus=4, on={"n1": 4}, ran=10)
    grown = Told(cluster(nodes(1), {"A": 1}, [small]), {"e": moved(Move.RESIZE, n1=8)})
    assert grown.codes("e") == ["grown"]
    assert grown.of("e").reasons[0].message.startswith("Grows from 4 to 8 h100 GPUs of the 8 it wants; group A holds 8")


def test_a_lowered_limit_is_named() -> None:
    groups = [Group(id="A", share=1, max_gpus=4)]
    told = Told(cluster(nodes(1), groups, [job("x", "A", 8, on={"n1": 8}, ran=90)]))
    assert told.codes("x") == ["limit_lowered"]
    assert told.of("x").reasons[0].message == (
        "Group A held 8 GPUs, more than its max_gpus 4: 8 GPU-hours of work are lost and it is requeued."
    )


def test_what_cannot_resume_ends_and_a_priority_of_the_own_group_is_said() -> None:
    jobs = [job("x", "A", 8, on={"n1": 8}, ran=90, resumable=False), job("p", "A", 8, priority=7)]
    told = Told(cluster(nodes(1), {"A": 1}, jobs), {"x": PREEMPT, "p": start(n1=8)})
    message = told.of("x").reasons[0].message
    assert "its own group gives priority 7 before its 0" in message
    assert message.endswith("12 GPU-hours of work are lost and it ends, as it cannot resume.")


def test_terminating_jobs_say_who_waits_for_their_gpus() -> None:
    jobs = [job("t", "A", 8, on={"n1": 8}, ran=90, state="terminating"), job("p", "A", 8)]
    told = Told(cluster(nodes(1), {"A": 1}, jobs))
    assert told.codes("t") == ["terminating"]
    assert told.of("t").reasons[0].message == (
        "On its way out: its 8 GPUs come free when it has left and job p waits for them."
    )
    assert told.of("p").reasons[0].message.endswith("it starts when job t has left.")


def test_an_orphan_is_kept_and_counted_nowhere() -> None:
    told = Told(cluster(nodes(1), {"A": 1}, [job("o", "gone", 8, on={"n1": 8}, ran=90)]))
    assert told.codes("o") == ["protected"]
    assert "Its group gone is not in the tree" in told.of("o").reasons[0].message
    assert told.of("o").reasons[0].refs == ()


def test_the_level_where_two_groups_part_is_told_in_a_deep_tree() -> None:
    groups = [
        Group(id="A", share=1), Group(id="A/a", parent="A", share=1),
        Group(id="B", share=1), Group(id="B/b", parent="B", share=1),
    ]  # fmt: skip
    jobs = [job("x", "B/b", 8, on={"n1": 8}, ran=90), job("p", "A/a", 8)]
    told = Told(cluster(nodes(1), groups, jobs, used={"B/b": 900}), {"x": PREEMPT, "p": start(n1=8)})
    assert "; where the two part, group A holds 8 of its entitled 6.68" in told.of("x").reasons[0].message
    assert told.of("x").reasons[0].refs == ("p", "A/a", "B/b", "A", "B")
