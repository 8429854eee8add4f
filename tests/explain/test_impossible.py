"""Case 8: what could never run says the binding limit and the largest size that would do."""

from __future__ import annotations

import pytest
from explain.noon import Told, cluster, job, nodes

TWO = nodes(2, labels={"rack": "r1"})


@pytest.mark.parametrize(
    ("asked", "code", "message", "change"),
    [
        (
            job("p", "A", 17),
            "gang_too_large",
            "Needs 17 GPUs; the largest size that h100 nodes could hold is 16.",
            "gpus of at most 16",
        ),
        (
            job("p", "A", 16, gpus_per_node=16),
            "gang_too_large",
            "Needs 16 GPUs on one node for each node; the largest h100 node it could use has 8, the "
            "largest size of one that would do.",
            "gpus_per_node of at most 8",
        ),
        (
            job("p", "A", 12, gpus_per_node=4),
            "gang_too_large",
            "Needs 12 GPUs, 4 on each node; the largest size that h100 nodes could hold is 8.",
            "gpus of at most 8",
        ),
        (
            job("p", "A", 8, speedup={"b200": 1.0}),
            "no_such_type",
            "It runs on b200 only, and the cluster has h100.",
            "a speedup above 0 for h100",
        ),
        (
            job("p", "A", 8, speedup={"h100": 0.0}),
            "zero_speedup",
            "It has a speedup above 0 on no type; the cluster has h100.",
            "a speedup above 0 for h100",
        ),
        (
            job("p", "A", 8, requires={"nic": "ib"}),
            "requires_unmatched",
            "None of the 2 h100 nodes carries nic=ib.",
            "label nodes with nic=ib",
        ),
        (
            job("p", "A", 8, same="pod"),
            "same_unmatched",
            "No h100 node carries the label pod that its nodes must share.",
            "label nodes with pod",
        ),
    ],
)
def test_one_cause_with_the_largest_that_would_do(asked, code: str, message: str, change: str) -> None:
    told = Told(cluster(TWO, {"A": 1}, [asked]))
    assert told.codes("p") == [code]
    found = told.of("p").reasons[0]
    assert (found.message, found.cheapest_change) == (message, change)


def test_a_rack_too_small_says_what_one_rack_holds() -> None:
    on = [*nodes(1, labels={"rack": "r1"}), *nodes(1, first=2, labels={"rack": "r2"})]
    told = Told(cluster(on, {"A": 1}, [job("p", "A", 16, same="rack")]))
    assert told.codes("p") == ["same_unmatched"]
    assert told.of("p").reasons[0].message.endswith("share one value of rack; the largest size that would do is 8.")


def test_an_unknown_group_is_no_id_to_refer_to() -> None:
    told = Told(cluster(TWO, {"A": 1}, [job("p", "ghost", 17), job("q", "ghost", 8)]))
    assert told.codes("q") == ["unknown_group"]
    assert told.codes("p") == ["unknown_group", "gang_too_large"]
    assert told.of("q").reasons[0].message == "Group ghost is not in the tree."
    assert told.of("q").reasons[0].refs == ()


def test_case_2_a_type_that_is_nowhere_preempts_nobody_and_says_so() -> None:
    held = [job(f"x{i}", "B", 1, on={"n1": 1}, ran=90) for i in range(8)]
    told = Told(cluster(nodes(1), {"A": 1, "B": 1}, [*held, job("p", "A", 1, speedup={"t4": 1.0})], used={"B": 9}))
    assert told.codes("p") == ["no_such_type"]
    assert {c for x in held for c in told.codes(x.id)} == {"best_use"}
