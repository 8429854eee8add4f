"""Odd, broken and enormous input: cases 32 to 35."""

from __future__ import annotations

import json
from itertools import product, repeat
from time import perf_counter
from typing import Any

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
    solve,
    standing,
    warned,
    who,
    why,
)
from evenhand import allocate, audit
from evenhand.entitlement import entitle
from evenhand.snapshot import take_snapshot
from evenhand_models import (
    ClusterState,
    FieldError,
    Group,
    InvalidInput,
    Node,
    Policy,
    check_tree,
    parse_request,
)

EVEN = {"A": 50, "B": 50}


def refusals(state: ClusterState | None = None, **parts: Any) -> tuple[FieldError, ...]:
    """What is said against a request whose state has some parts replaced."""
    wire = json.loads((state or cluster("2x8 H100", EVEN, [job("j1", "A", 8)])).model_dump_json())
    with pytest.raises(InvalidInput) as refused:
        parse_request(json.dumps({"state": wire | parts}).encode())
    return refused.value.errors


def test_case_32_a_group_that_is_its_own_parent_is_refused_with_the_path() -> None:
    (error,) = refusals(groups=[{"id": "A", "parent": "A", "share": 1}])
    assert error == FieldError("/state/groups/0/parent", "groups form a cycle: A > A.")


def test_case_32_a_ring_of_two_is_refused_with_the_path() -> None:
    ring = [{"id": "A", "parent": "B", "share": 1}, {"id": "B", "parent": "A", "share": 1}]
    (error,) = refusals(groups=ring)
    assert error.message == "groups form a cycle: A > B > A."
    with pytest.raises(InvalidInput, match="A > B > A"):
        cluster("2x8 H100", [Group(id="A", parent="B", share=1), Group(id="B", parent="A", share=1)])


def deep_tree() -> ClusterState:
    """2,000 leaves, 10 deep, a job in each, twice as many as there are GPUs."""
    widths = (2, 2, 1, 2, 1, 2, 1, 5, 5, 5)
    groups, leaves = [], []
    for depth in range(1, 11):
        for digits in product(*(range(w) for w in widths[:depth])):
            path = "/".join(map(str, digits))
            parent = path.rpartition("/")[0] or None
            groups.append(Group(id=path, parent=parent, share=1 + digits[-1]))
            leaves += [path] if depth == 10 else []
    assert len(leaves) == 2_000
    jobs = [job(f"j{i:04}", leaf, 1 + i % 2) for i, leaf in enumerate(leaves)]
    return cluster("125x8 H100", groups, jobs)


def test_case_32_two_thousand_leaves_ten_deep_are_served_within_the_limit() -> None:
    state, policy = deep_tree(), Policy()
    began = perf_counter()
    plan = allocate(state, policy)
    took = perf_counter() - began
    assert audit(state, plan, policy).ok
    assert len(plan.assignments) == 2_000
    assert sum(a.gpus for a in plan.assignments) == 1_000
    assert took <= policy.time_limit_s * 1.1


def vanished(group: str) -> ClusterState:
    """A job runs whose group is gone; another of the same waits, and one of a known group."""
    groups = [
        Group(id="org", share=1),
        Group(id="org/team", parent="org", share=1),
        Group(id="other", share=1),
    ]
    jobs = [
        job("runs", group, 8, on={"n0": 8}, ran=10),
        job("waits", group, 8),
        job("served", "other", 8),
    ]
    return cluster("2x8 H100", groups, jobs)


def test_case_32_a_job_whose_group_has_gone_is_kept_and_charged_to_the_nearest_ancestor() -> None:
    plan = solve(vanished("org/team/gone"))
    assert actions(plan) == {"runs": "keep", "served": "start", "waits": "infeasible"}
    assert standing(plan, "org/team").allocated == {"H100": 8}
    assert of(plan, "runs").unallocated is False
    assert of(plan, "runs").protected_until_at == after(50)
    assert warned(plan, "unknown_group")
    assert {ref for w in plan.warnings if w.code == "unknown_group" for ref in w.refs} == {"runs", "waits"}
    assert codes(plan, "waits") == ["unknown_group"]
    assert "org/team/gone" in why(plan, "waits", "unknown_group").message


def test_case_32_where_no_ancestor_is_known_it_is_kept_all_the_same() -> None:
    plan = solve(vanished("nobody"))
    assert actions(plan) == {"runs": "keep", "served": "start", "waits": "infeasible"}
    assert warned(plan, "unknown_group")
    assert sum(sum(g.allocated.values()) for g in plan.groups if "/" not in g.group) == 8


@pytest.mark.parametrize("gpus", ["-1", "0", "0.5", str(2**63), "1e308"])
def test_case_33_a_size_that_is_none_is_refused_with_its_pointer_and_nothing_else_is_affected(
    gpus: str,
) -> None:
    state = cluster("2x8 H100", EVEN, [job("j0", "A", 8), job("j1", "A", 7), job("j2", "B", 8)])
    body = '{"state": ' + state.model_dump_json().replace('"gpus":7', f'"gpus":{gpus}') + "}"
    with pytest.raises(InvalidInput) as refused:
        parse_request(body.encode())
    assert [error.pointer for error in refused.value.errors] == ["/state/jobs/1/gpus"]


@pytest.mark.parametrize("field", ["gpus", "unavailable_gpus", "foreign_gpus"])
@pytest.mark.parametrize("count", [-1, 0.5, 2**63, 1e308])
def test_case_33_so_is_one_of_a_node(field: str, count: float) -> None:
    state = cluster("2x8 H100", EVEN, [job("j1", "A", 8)])
    wire = json.loads(state.model_dump_json())["nodes"]
    wire[1][field] = count
    assert [error.pointer for error in refusals(state, nodes=wire)] == [f"/state/nodes/1/{field}"]


MILLION = 10**6


def test_case_33_installed_gpus_of_a_million_nodes_sum_exactly() -> None:
    node = Node(name="n", gpu_type="H100", gpus=999_983)
    total = 999_983 * MILLION
    assert check_tree([Group(id="A", share=1, guaranteed_gpus=total)], repeat(node, MILLION)) == ()
    (error,) = check_tree([Group(id="A", share=1, guaranteed_gpus=total + 1)], repeat(node, MILLION))
    assert f"guaranteed {total + 1} GPUs, above the {total} installed" in error.message


@pytest.mark.parametrize(
    ("gpus", "count", "rate", "kinds"),
    [(80_000, 100, 1.0, 1), (79_999, 100, 7.001, 3), (999_983, 1_000, 1.0, 1), (999_983, 30, 1e6, 3)],
)
def test_case_33_capacity_and_entitlement_of_as_many_gpus_sum_exactly(
    gpus: int, count: int, rate: float, kinds: int
) -> None:
    # What a million nodes of 8 hold, and more, in fewer and larger nodes; a job for each of them.
    types = [f"t{k}" for k in range(kinds)]
    hardware = [
        Node(name=f"n{i:04}", gpu_type=types[i % kinds], gpus=gpus, labels={"at": str(i)}) for i in range(count)
    ]
    jobs = [
        job(f"j{i:04}", "AB"[i % 2], gpus, speedup=dict.fromkeys(types, 1.0), requires={"at": str(i)})
        for i in range(count)
    ]
    state = cluster(hardware, EVEN, jobs, rates=dict.fromkeys(types, rate))
    entitled = entitle(take_snapshot(state, Policy()))
    milli = gpus * count * round(1000 * rate)
    assert entitled.available == milli / 1000
    assert entitled.entitled.tolist() == [milli / 2000, milli / 2000]


OVERLAPPING = [
    Group(id="org", share=1, guaranteed_gpus=100),
    Group(id="x", parent="org", share=1, guaranteed_gpus=70),
    Group(id="y", parent="org", share=1, guaranteed_gpus=50),
]


@pytest.mark.parametrize(
    ("groups", "installed", "said"),
    [
        (
            OVERLAPPING,
            "10x16 H100",
            "group 'org' is guaranteed 100 GPUs, but its children 120: 'x' 70, 'y' 50.",
        ),
        (
            [Group(id="org", share=1), Group(id="x", parent="org", share=1, guaranteed_gpus=100)],
            "8x8 H100",
            "group 'org' > 'x' is guaranteed 100 GPUs, above the 64 installed.",
        ),
        (
            [
                Group(id="org", share=1),
                Group(id="x", parent="org", share=1, guaranteed_gpus=70, max_gpus=60),
            ],
            "10x16 H100",
            "group 'org' > 'x' has max_gpus 60, below its guaranteed_gpus 70.",
        ),
    ],
    ids=["children above parent", "above what is installed", "limit below guarantee"],
)
def test_case_34_where_a_configuration_is_written_it_is_refused_with_path_and_numbers(
    groups: list[Group], installed: str, said: str
) -> None:
    assert [error.message for error in check_tree(groups, nodes(installed))] == [said]


def test_case_34_a_configuration_that_can_hold_is_not_refused() -> None:
    groups = [OVERLAPPING[0], OVERLAPPING[1], Group(id="y", parent="org", share=1, guaranteed_gpus=30)]
    assert check_tree(groups, nodes("10x16 H100")) == ()


def test_case_34_in_a_round_childrens_guarantees_are_cut_in_proportion_with_a_warning() -> None:
    jobs = [*ones("x", "x", 100), *ones("y", "y", 100)]
    plan = solve(cluster("10x10 H100", OVERLAPPING, jobs))
    assert standing(plan, "x").entitled_gpus == pytest.approx(100 * 70 / 120)
    assert standing(plan, "y").entitled_gpus == pytest.approx(100 * 50 / 120)
    assert warned(plan, "guarantees_cut")
    assert len(who(plan, "start")) == 100
    assert standing(plan, "x").allocated["H100"] in (58, 59)


def guaranteed(x: int, y: int, down: int) -> ClusterState:
    """Ten nodes of ten, some down; two groups with guarantees that both want everything."""
    groups = [Group(id="x", share=1, guaranteed_gpus=x), Group(id="y", share=1, guaranteed_gpus=y)]
    on = nodes("10x10 H100")
    for i in range(down):
        on = changed_node(on, f"n{i}", status="down")
    return cluster(on, groups, [*ones("x", "x", 100), *ones("y", "y", 100)])


def test_case_34_guarantees_that_hold_are_given_without_a_warning() -> None:
    plan = solve(guaranteed(70, 30, down=0))
    assert (standing(plan, "x").entitled_gpus, standing(plan, "y").entitled_gpus) == (70, 30)
    assert not warned(plan, "guarantees_cut")


@pytest.mark.parametrize(
    ("x", "y", "parts"),
    [(60, 30, (40, 20)), (70, 30, (40, 20))],
    ids=["each would fit alone", "one is larger than all that is up, and counts as that much"],
)
def test_case_34_nodes_that_are_down_cut_guarantees_in_proportion_and_decisions_go_on(
    x: int, y: int, parts: tuple[int, int]
) -> None:
    # D2: a guarantee counts at most as what its jobs could hold on what is up
    plan = solve(guaranteed(x, y, down=4))
    assert warned(plan, "guarantees_cut")
    assert (standing(plan, "x").entitled_gpus, standing(plan, "y").entitled_gpus) == pytest.approx(parts)
    assert standing(plan, "x").allocated == {"H100": parts[0]}
    assert standing(plan, "y").allocated == {"H100": parts[1]}


def test_case_34_a_guarantee_of_100_on_64_installed_is_cut_to_what_is_there() -> None:
    groups = [Group(id="x", share=1, guaranteed_gpus=100), Group(id="y", share=1)]
    plan = solve(cluster("8x8 H100", groups, [*ones("x", "x", 100), *ones("y", "y", 100)]))
    assert standing(plan, "x").entitled_gpus == 64
    assert warned(plan, "guarantees_cut")
    assert standing(plan, "x").allocated == {"H100": 64}


def test_case_34_a_limit_below_the_guarantee_cuts_it_with_a_warning() -> None:
    groups = [Group(id="x", share=1, guaranteed_gpus=70, max_gpus=60), Group(id="y", share=1)]
    plan = solve(cluster("10x10 H100", groups, [*ones("x", "x", 100), *ones("y", "y", 100)]))
    assert standing(plan, "x").entitled_gpus == 60
    assert warned(plan, "limit_below_guarantee")
    assert standing(plan, "x").allocated == {"H100": 60}
    assert standing(plan, "y").allocated == {"H100": 40}


def test_case_35_two_jobs_of_one_name_are_refused_naming_it() -> None:
    (error,) = refusals(cluster("2x8 H100", EVEN), jobs=[json.loads(job("j1", g, 8).model_dump_json()) for g in "AB"])
    assert error.pointer == "/state/jobs/1/id"
    assert "'j1'" in error.message
    with pytest.raises(InvalidInput, match="'j1'"):
        cluster("2x8 H100", EVEN, [job("j1", "A", 8), job("j1", "B", 8)])
