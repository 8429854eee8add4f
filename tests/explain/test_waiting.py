"""Why a job waits: cases 4, 5, 7, 9, 10, 16, 26, and each single cause."""

from __future__ import annotations

from datetime import timedelta

import pytest
from explain.noon import NOW, WAIT, Told, ago, cluster, job, nodes, reserved, start

from evenhand_models import Group, Node, Policy


def case_26() -> Told:
    on = [*nodes(1), Node(name="n2", gpu_type="h100", gpus=8, status="cordoned")]
    jobs = [job("j1", "B", 8, on={"n1": 8}, ran=20), job("p", "A", 8)]
    return Told(cluster(on, {"A": 1, "B": 1}, jobs, used={"A": 5_000, "B": 0}))


def test_case_26_names_all_three_causes_with_numbers() -> None:
    told = case_26()
    assert told.codes("p") == ["capacity", "protected_work", "group_over_entitlement", "node_drained"]
    assert told.reason("p", "protected_work").message == (
        "Protected job j1 of group B holds 8 h100 on nodes it could use until 2026-11-01T13:40:00Z."
    )
    assert told.reason("p", "protected_work").refs == ("j1", "B")
    assert told.reason("p", "group_over_entitlement").message == (
        "Group A holds 0 of the 0 charged GPUs that it is entitled to, and 8 more would make 8."
    )
    assert told.reason("p", "node_drained").message == "Node n2 is cordoned and would bring 8 h100."
    assert told.reason("p", "node_drained").refs == ("n2",)


def test_case_26_says_from_when_and_what_would_help() -> None:
    told = case_26()
    assert told.of("p").earliest_start_at == NOW + timedelta(minutes=40)
    assert told.reason("p", "protected_work").earliest_start_at == NOW + timedelta(minutes=40)
    assert told.of("p").cheapest_change == "uncordon node n2"
    assert told.codes("j1") == ["protected"]
    assert told.of("j1").reasons[0].message == (
        "Protected until 2026-11-01T13:40:00Z by its contract of 3600 s on 8 h100 GPUs."
    )


def test_case_26_again_says_the_same() -> None:
    assert case_26().bytes() == case_26().bytes()


def test_case_4_a_reserved_gang_names_the_jobs_that_end() -> None:
    soon = NOW + timedelta(minutes=2)
    old = [job(f"b{i}", "B", 1, on={"n1": 1}, ran=90, expected_end_at=soon) for i in range(8)]
    new = [job(f"a{i}", "A", 1) for i in range(4)]
    told = Told(cluster(nodes(1), {"A": 1, "B": 1}, old + new), {f"a{i}": reserved() for i in range(4)})
    assert told.codes("a0")[0] == "reserved_ending"
    found = told.reason("a0", "reserved_ending")
    assert found.refs == tuple(f"b{i}" for i in range(8))
    assert "8 h100 GPUs" in found.message
    assert "restart cost of 300 s" in found.message
    assert "b0 at 2026-11-01T13:02:00Z" in found.message
    assert told.of("a0").earliest_start_at == soon
    assert (told.of("a0").cheapest_change or "").startswith("wait until 2026-11-01T13:02:00Z, when jobs b0, b1")


def test_case_5_those_left_over_name_the_protected_jobs_and_the_first_end() -> None:
    held = [job(f"a{i:02}", "A", 1, on={f"n{1 + i // 10}": 1}, ran=i, c=60) for i in range(50)]
    new = [job(f"b{i:02}", "B", 1) for i in range(60)]
    on = nodes(10, gpus=10)
    told = Told(cluster(on, {"A": 1, "B": 1}, held + new, used={"A": 16_800}))
    started = [n for n in (f"b{i:02}" for i in range(60)) if told.codes(n)[0] == "entitled"]
    assert len(started) == 50
    waiting = told.of("b59")
    found = told.reason("b59", "protected_work")
    assert found.message.startswith("50 protected jobs hold 50 h100 on nodes it could use: a49, a48, a47")
    assert "and 40 more, the first until 2026-11-01T13:11:00Z" in found.message
    assert found.refs == tuple(f"a{i}" for i in range(49, 39, -1))
    assert waiting.earliest_start_at == NOW + timedelta(minutes=11)
    assert waiting.cheapest_change == (
        "wait for the protection of a49 to end at 2026-11-01T13:11:00Z, unless a job ahead of it takes the GPUs"
    )
    ahead = told.reason("b59", "priority")
    assert ahead.message.startswith("59 jobs of group B come first by priority, then age (50 running, 9 waiting): b00")
    assert ahead.refs == (*(f"b{i:02}" for i in range(10)), "B")


def test_case_7_another_type_that_stays_idle_is_offered() -> None:
    on = [*nodes(1), *nodes(2, gpu_type="a100", first=2)]
    jobs = [job("x", "B", 8, on={"n1": 8}, ran=10), job("h", "A", 8), job("k", "B", 8, speedup={"a100": 1.0})]
    told = Told(cluster(on, {"A": 1, "B": 1}, jobs))
    assert told.codes("k") == ["entitled"]
    assert told.codes("h")[:2] == ["capacity", "protected_work"]
    assert told.of("h").reasons[0].message == "Needs 8 GPUs on one node; free on nodes it could use: 0 h100."
    assert told.of("h").cheapest_change == "let it run on a100 (a speedup above 0), where 8 GPUs stay free"


def test_case_9_the_second_gang_names_the_group_that_came_first() -> None:
    on = nodes(10, gpus=1)
    shape = {"worker_gpus": 1}
    jobs = [job("g1", "A", 10, **shape), job("g2", "B", 10, **shape)]
    told = Told(cluster(on, {"A": 1, "B": 1}, jobs))
    assert told.codes("g2") == ["capacity", "lower_rank", "group_over_entitlement"]
    assert told.reason("g2", "lower_rank").refs == ("A", "B")
    assert (
        "has 10 h100 on nodes it could use (group A holds 10 of its entitled 5"
        in told.reason("g2", "lower_rank").message
    )
    assert told.of("g2").earliest_start_at == NOW + timedelta(minutes=60)


def test_case_10_fragments_under_protection_say_the_largest_piece_and_the_first_unlock() -> None:
    pieces = {"n1": (4, 2, 1), "n2": (4, 2), "n3": (4, 2, 1)}
    held = [job(f"{n}x{g}", "A", g, on={n: g}, ran=10 * g) for n, sizes in pieces.items() for g in sizes]
    told = Told(cluster(nodes(3), {"A": 1, "B": 1}, [*held, job("p", "B", 4)]))
    assert told.codes("p") == ["fragmentation", "protected_work"]
    assert told.of("p").reasons[0].message == (
        "Needs 4 GPUs on one node; 4 h100 are free, but scattered over 3 nodes: the largest piece on one "
        "node is "
        "2 GPUs on n2."
    )
    assert "the first until 2026-11-01T13:20:00Z" in told.reason("p", "protected_work").message
    assert told.of("p").earliest_start_at == NOW + timedelta(minutes=20)


def test_case_10_movable_pieces_are_not_worth_moving_or_were_not_tried() -> None:
    held = [job(f"a{n}", "A", 6, on={n: 6}, ran=90) for n in ("n1", "n2")]
    state = cluster(nodes(2), {"A": 1, "B": 1}, [*held, job("p", "B", 4)], used={"B": 1})
    assert told_codes(state, optimal=True)[0] == "fragmentation"
    assert told_codes(state, optimal=True)[-1] == "not_worth_moving"
    assert told_codes(state, optimal=False)[-1] == "time_limit"


def told_codes(state, *, optimal: bool) -> list[str]:
    return Told(state, optimal=optimal).codes("p")


def test_case_16_a_group_without_claim_waits_for_what_no_allocated_work_wants() -> None:
    jobs = [job("a", "A", 8), job("b", "B", 8, on={"n1": 8}, ran=90)]
    told = Told(cluster(nodes(1), {"A": 0, "B": 100}, jobs))
    assert told.codes("a") == ["capacity", "lower_rank"]
    assert told.reason("a", "lower_rank").message == (
        "Work of group A, which has no claim beside siblings with a share, comes after allocated work: "
        "group B has 8 h100 on nodes it could use."
    )
    assert told.reason("a", "lower_rank").refs == ("B", "A")
    assert told.of("a").earliest_start_at is None


def test_unallocated_work_may_hope_for_an_expected_end() -> None:
    end = NOW + timedelta(minutes=15)
    jobs = [job("a", "A", 8, c=0), job("b", "A", 8, on={"n1": 8}, ran=90, expected_end_at=end)]
    told = Told(cluster(nodes(1), {"A": 1}, jobs))
    assert told.reason("a", "lower_rank").message.startswith("Unallocated work (min_runtime_s 0) comes after allocated")
    assert told.of("a").earliest_start_at == end


def test_a_limit_says_what_is_held_and_what_it_would_have_to_be() -> None:
    groups = [Group(id="A", share=1, max_gpus=8), Group(id="B", share=1)]
    jobs = [job("r", "A", 8, on={"n1": 8}, ran=20), job("p", "A", 8)]
    told = Told(cluster(nodes(2), groups, jobs))
    assert told.codes("p") == ["group_limit"]
    found = told.reason("p", "group_limit")
    assert found.message == "Group A holds 8 of at most 8 GPUs (max_gpus), and this job needs 8 more."
    assert found.refs == ("A",)
    assert told.of("p").cheapest_change == "raise max_gpus of A from 8 to 16"
    assert told.of("p").earliest_start_at == NOW + timedelta(minutes=40)


def test_a_limit_too_small_for_the_gang_is_a_wait_that_never_ends() -> None:
    groups = [Group(id="A", share=1, max_gpus=4), Group(id="A/x", parent="A", share=1)]
    told = Told(cluster(nodes(1), groups, [job("p", "A/x", 8)]))
    assert told.codes("p") == ["limit_never"]
    assert told.of("p").reasons[0].message == "Needs 8 GPUs, more than max_gpus 4 of group A ever allows."
    assert told.of("p").earliest_start_at is None
    assert told.of("p").cheapest_change == "raise max_gpus of A from 4 to 8"


def test_nodes_down_are_a_wait_not_infeasible() -> None:
    told = Told(cluster(nodes(2, status="down"), {"A": 1}, [job("p", "A", 8)]))
    assert told.codes("p") == ["capacity", "node_down"]
    assert told.reason("p", "node_down").message == "Nodes n1 and n2 are down and would bring 16 h100."
    assert told.of("p").cheapest_change == "bring up node n1"
    assert told.of("p").earliest_start_at is None


def test_broken_foreign_and_closing_nodes_are_named_with_numbers() -> None:
    on = [
        Node(name="n1", gpu_type="h100", gpus=8, unavailable_gpus=3),
        Node(name="n2", gpu_type="h100", gpus=8, foreign_gpus=2),
        Node(name="n3", gpu_type="h100", gpus=8, available_until_at=NOW + timedelta(minutes=30)),
    ]
    told = Told(cluster(on, {"A": 1}, [job("p", "A", 8)]))
    assert told.codes("p") == ["fragmentation", "maintenance", "foreign_gpus", "broken_gpus"]
    assert told.reason("p", "maintenance").message == (
        "Node n3 is open only until maintenance (at 2026-11-01T13:30:00Z), sooner than its contract of "
        "3600 s would end."
    )
    assert told.reason("p", "foreign_gpus").message == "2 GPUs on node n2 are held by work that is not ours."
    assert told.reason("p", "broken_gpus").message == "3 GPUs on node n1 are broken."


def test_the_end_of_protection_counts_no_node_that_closes_before_the_contract_would_end() -> None:
    on = [
        Node(name="n1", gpu_type="h100", gpus=8, available_until_at=NOW + timedelta(minutes=70)),
        Node(name="n2", gpu_type="h100", gpus=8),
    ]
    held = [job("x", "B", 8, on={"n1": 8}, ran=40), job("y", "B", 8, on={"n2": 8}, ran=10)]
    told = Told(cluster(on, {"A": 1, "B": 1}, [*held, job("p", "A", 8)]))
    assert told.of("p").earliest_start_at == NOW + timedelta(minutes=50)


def test_more_free_gpus_are_counted_on_the_node_that_lacks_least() -> None:
    held = [job("x", "B", 3, on={"n1": 3}, ran=90), job("y", "B", 5, on={"n2": 5}, ran=90)]
    told = Told(cluster(nodes(2), {"A": 1, "B": 9}, [*held, job("p", "A", 8)]))
    assert told.of("p").cheapest_change == "3 more free h100 GPUs on node n1"


def test_idle_gpus_beside_a_wait_are_explained() -> None:
    told = Told(cluster(nodes(1), {"A": 1}, [job("p", "A", 8)]), {"p": WAIT}, optimal=False)
    assert told.codes("p") == ["time_limit"]
    assert told.of("p").reasons[0].message == (
        "8 h100 GPUs that would hold it stay free on node n1: the search of this round ended before a "
        "plan that starts "
        "it was found."
    )
    assert told.of("p").cheapest_change == "a time_limit_s above 5"


def test_work_that_could_stop_is_not_worth_it() -> None:
    held = [job("x", "B", 8, on={"n1": 8}, ran=120, checkpointed_at=ago(30))]
    state = cluster(nodes(1), {"A": 1, "B": 1}, [*held, job("p", "A", 2)], used={"B": 900, "A": 1})
    told = Told(state, policy=Policy(horizon_s=3600))
    assert told.reason("p", "not_worth_moving").message == (
        "Stopping job x (8 GPUs, 4 GPU-hours of work at stake) would make room for it, but costs more "
        "than its start "
        "brings."
    )
    assert told.of("p").earliest_start_at == NOW


@pytest.mark.parametrize(
    ("shape", "form"),
    [
        ({"worker_gpus": 4}, "in workers of 4, each on one node"),
        ({"gpus_per_node": 4}, "4 on each of 2 nodes"),
        ({"same": "rack"}, "on one node"),
    ],
)
def test_the_shape_is_said(shape: dict, form: str) -> None:
    on = nodes(2, labels={"rack": "r1"})
    held = [job("x", "B", 6, on={"n1": 6}, ran=5), job("y", "B", 6, on={"n2": 6}, ran=5)]
    told = Told(cluster(on, {"A": 1, "B": 1}, [*held, job("p", "A", 8, **shape)]))
    assert form in told.of("p").reasons[0].message


def test_an_elastic_job_says_its_range() -> None:
    held = [job("x", "B", 8, on={"n1": 8}, ran=5)]
    told = Told(cluster(nodes(1), {"A": 1, "B": 1}, [*held, job("p", "A", 8, min_gpus=4, worker_gpus=2)]))
    assert told.of("p").reasons[0].message.startswith("Needs 4 to 8 GPUs in workers of 2")


def test_a_higher_priority_of_the_own_group_comes_first() -> None:
    jobs = [job("a", "A", 8, priority=5), job("b", "A", 8, priority=1), job("c", "A", 8)]
    told = Told(cluster(nodes(1), {"A": 1}, jobs))
    assert told.codes("a") == ["entitled"]
    assert told.reason("b", "priority").message == (
        "1 job of group A comes first by priority, then age (1 running, 0 waiting): a."
    )
    assert told.reason("c", "priority").refs == ("a", "b", "A")


def test_a_started_gang_is_no_protected_work_but_sets_the_earliest_start() -> None:
    jobs = [job("a", "A", 8), job("b", "A", 8)]
    told = Told(cluster(nodes(1), {"A": 1}, jobs), {"a": start(n1=8), "b": WAIT})
    assert "protected_work" not in told.codes("b")
    assert told.of("b").earliest_start_at == NOW + timedelta(minutes=60)
