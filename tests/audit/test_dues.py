"""Rules D and the owed gang by hand."""

from fractions import Fraction
from random import Random

import pytest

from audit.build import at, group, job, node, running, state
from evenhand.audit.dues import dues
from evenhand.audit.reading import read
from evenhand.audit.split import Claim, split
from evenhand_models import Policy

HALVES = [group("A"), group("B")]


def ones(owner, count, **more):
    return [job(f"{owner}{i:03d}", owner, 1, **more) for i in range(count)]


def owed(given, **policy):
    return dues(read(given, Policy(**policy)))


def test_case_13_the_week():
    given = state([node("n", 100)], HALVES, ones("A", 100) + ones("B", 100), usage={"B": 14_400})
    week = owed(given).entitled
    assert week["A"] == pytest.approx(650 / 7, abs=1e-9)  # 92.857...
    assert week["B"] == pytest.approx(50 / 7, abs=1e-9)
    assert owed(given, horizon_s=86_400).entitled == {"A": 100, "B": 0}
    assert owed(given).standing == {"A": 1, "B": 2}


def test_case_16_zero_share():
    given = state([node("n", 8)], [group("A", 0), group("B", 100)], ones("A", 8) + ones("B", 3))
    due = owed(given)
    assert due.entitled == {"A": 0, "B": 3}
    assert due.demand == {"A": 0, "B": 3000}
    assert due.standing == {"B": 1, "A": 2}


def test_case_16_all_shares_zero_split_equally():
    given = state([node("n", 8)], [group("A", 0), group("B", 0)], ones("A", 8) + ones("B", 8))
    assert owed(given).entitled == {"A": 4, "B": 4}


def test_case_20_types_are_charged_by_rate():
    """A holds 20 T4 (charge 1), B 16 of 20 A100 (charge 8): both want more, each is owed half of 180."""
    nodes = [node("t", 20, kind="t4"), node("a", 20, kind="a100")]
    either = {"t4": 1.0, "a100": 8.0}
    jobs = [
        running("A-t4", "A", {"t": 20}, speedup=either),
        running("B-a100", "B", {"a": 16}, speedup=either),
        *ones("A", 20, speedup=either),
        *ones("B", 20, speedup=either),
    ]
    due = owed(state(nodes, HALVES, jobs, usage={"A": 20, "B": 128}, charges={"t4": 1, "a100": 8}))
    assert due.demand == {"A": 180_000, "B": 180_000}
    assert due.entitled["A"] == pytest.approx(90 + 54 / 168)
    assert due.entitled["B"] == pytest.approx(90 - 54 / 168)
    assert due.standing["A"] == 1


def test_case_23_only_who_can_use_a_type_shares_it():
    nodes = [node("h", 8), node("a", 8, kind="a100")]
    groups = [group("A"), group("B"), group("C")]
    jobs = ones("A", 8) + ones("B", 8, speedup={"a100": 1.0}) + ones("C", 8, speedup={"a100": 1.0})
    due = owed(state(nodes, groups, jobs))
    assert due.demand == {"A": 8000, "B": 8000, "C": 8000}
    assert sum(due.entitled.values()) == pytest.approx(16)


def test_case_15_small_usage_ranks():
    given = state([node("n", 8)], [group("A", 1), group("B", 99)], ones("A", 8) + ones("B", 8), {"A": 1 / 3600})
    due = owed(given)
    assert due.usage["A"] > 0
    assert due.standing == {"B": 1, "A": 2}


def test_three_levels_and_an_own_jobs_child():
    """Org of 12 GPUs: x (share 3) has own jobs and children x/p (1) and x/q (3); y (share 1).

    x gets 9, y 3. In x the own jobs weigh 2 (the mean of 1 and 3): p 1.5, q 4.5, own 3. All of q is x/q/r's.
    """
    groups = [
        group("org"),
        group("x", 3, "org"),
        group("y", 1, "org"),
        group("x/p", 1, "x"),
        group("x/q", 3, "x"),
        group("x/q/r", 5, "x/q"),
    ]
    jobs = [one for owner in ("x", "y", "x/p", "x/q/r") for one in ones(owner, 12)]
    due = owed(state([node("n", 12)], groups, jobs))
    expected = {"org": 12, "x": 9, "y": 3, "x/p": 1.5, "x/q": 4.5, "x/q/r": 4.5}
    assert due.entitled == pytest.approx(expected)
    assert due.leaf == pytest.approx({"org": 0, "x": 3, "y": 3, "x/p": 1.5, "x/q": 0, "x/q/r": 4.5})
    assert due.within == {"org": 12 * 16, "x": 9 * 16, "x/q": 4 * 16}


def test_an_idle_share_goes_to_siblings_first():
    groups = [group("x"), group("y"), group("x/p", 1, "x"), group("x/q", 1, "x")]
    due = owed(state([node("n", 12)], groups, ones("x/p", 12) + ones("y", 12)))
    assert due.entitled == {"x": 6, "x/p": 6, "x/q": 0, "y": 6}


def test_usage_in_a_group_of_own_jobs_counts_against_them_only():
    """u = 168 over a week is one GPU: own jobs start one below their sibling."""
    groups = [group("x"), group("x/p", 1, "x")]
    due = owed(state([node("n", 12)], groups, ones("x", 12) + ones("x/p", 12), {"x": 168}))
    assert due.leaf["x"] == pytest.approx(5.5)
    assert due.leaf["x/p"] == pytest.approx(6.5)
    assert due.usage == {"x": 168, "x/p": 0}


def test_guarantees_hold_and_are_summed_up_the_tree():
    groups = [group("x", 1), group("y", 9), group("x/p", 1, "x", guaranteed_gpus=4), group("x/q", 1, "x")]
    due = owed(state([node("n", 10)], groups, ones("x/p", 10) + ones("x/q", 10) + ones("y", 10)))
    assert due.guarantee == {"x": 4, "y": 0, "x/p": 4, "x/q": 0}
    assert due.entitled == pytest.approx({"x": 4, "y": 6, "x/p": 4, "x/q": 0})
    assert due.within_guarantee == {"x/p": 4 * 16}


def test_guarantees_beyond_what_there_is_are_scaled():
    groups = [group("x", guaranteed_gpus=9), group("y", guaranteed_gpus=6), group("z")]
    due = owed(state([node("n", 10)], groups, ones("x", 10) + ones("y", 10) + ones("z", 10)))
    assert due.entitled == pytest.approx({"x": 6, "y": 4, "z": 0})
    assert due.guarantee == pytest.approx({"x": 6, "y": 4, "z": 0})


def test_guarantees_are_cut_to_demand_and_charged_at_the_lowest_rate():
    nodes = [node("h", 8), node("a", 8, kind="a100")]
    both = {"h100": 1.0, "a100": 1.0}
    groups = [group("x", guaranteed_gpus=6), group("y", guaranteed_gpus=5)]
    given = state(nodes, groups, ones("x", 2, speedup=both) + ones("y", 9, speedup=both), charges={"h100": 3})
    due = owed(given)
    assert due.guarantee == {"x": 6, "y": 5}  # x: least of 6 x 1 and its demand of 2 x 3; y: 5 x 1


def test_limits_cap_entitlement_at_the_highest_rate():
    nodes = [node("h", 8), node("a", 8, kind="a100")]
    both = {"h100": 1.0, "a100": 1.0}
    groups = [group("x", max_gpus=2), group("y")]
    given = state(nodes, groups, ones("x", 9, speedup=both) + ones("y", 9, speedup=both), charges={"h100": 2})
    due = owed(given)
    assert due.limit == {"x": 4000, "y": None}
    assert due.entitled == pytest.approx({"x": 4, "y": 18})


def test_demand_is_what_the_jobs_could_hold_together():
    """Three gangs of 4 on one type of 8: 8; below a parent limits of children count too."""
    groups = [group("x"), group("x/p", 1, "x", max_gpus=3), group("x/q", 1, "x")]
    jobs = [job(f"p{i}", "x/p", 4) for i in range(3)] + [job("q", "x/q", 2), job("own", "x", 1)]
    due = owed(state([node("n", 8)], groups, jobs))
    assert due.demand == {"x/p": 8000, "x/q": 2000, "x": 6000}
    assert due.own_demand["x"] == 1000


def test_splits_at_corners():
    def wanted(weight, past=0.0, floor=0.0, cap=100.0):
        return Claim(weight, past, floor, cap)

    assert split(10, [wanted(1), wanted(3)]) == pytest.approx([2.5, 7.5])
    assert split(10, [wanted(1), wanted(1, past=10)]) == pytest.approx([10, 0])
    assert split(10, [wanted(1, cap=2), wanted(1)]) == pytest.approx([2, 8])
    assert split(10, [wanted(1, floor=7), wanted(3)]) == pytest.approx([7, 3])
    assert split(10, [wanted(1, cap=2), wanted(1, cap=3)]) == [2, 3]
    assert split(0, [wanted(1), wanted(1)]) == [0, 0]
    assert split(10, []) == []


def test_splits_are_exact_at_one_level():
    rng = Random(3)
    for _ in range(200):
        claims = []
        for _ in range(rng.randint(1, 6)):
            floor = Fraction(rng.choice((0, 0, rng.randint(0, 3000))), 1000)
            used = Fraction(rng.choice((0.0, rng.random() * 9))) / 7
            claims.append(Claim(Fraction(rng.choice((1.0, 2.5, 0.1))), used, floor, floor + rng.randint(0, 9)))
        low, high = sum(claim.floor for claim in claims), sum(claim.cap for claim in claims)
        amount = low + (high - low) * Fraction(rng.randint(0, 12), 10)
        parts = split(amount, claims)
        assert sum(parts) == min(amount, high)
        inside = [(part, one) for part, one in zip(parts, claims, strict=True) if one.floor < part < one.cap]
        levels = {(part + one.past) / one.weight for part, one in inside}
        assert len(levels) <= 1
        for level in levels:
            assert parts == [min(max(level * one.weight - one.past, one.floor), one.cap) for one in claims]


BIG = [group("lab"), group("A", 1, "lab"), group("B", 1, "lab"), group("C")]


def test_a_gang_larger_than_its_leaf_is_owed_where_it_is_covered():
    """A and B are owed 4 of the lab's 8: A's gang of 6 is owed at the lab, as A stands first there."""
    jobs = [job("big", "A", 6), job("small", "A", 4), job("b", "B", 8), job("c", "C", 8)]
    due = owed(state([node("n", 16)], BIG, jobs, {"B": 20, "C": 20}))
    assert due.entitled["lab"] == pytest.approx(8)
    assert due.owed == ("big",)


def test_who_stands_first_is_asked_even_if_it_has_no_such_gang():
    jobs = [*ones("A", 6), job("b", "B", 6), job("c", "C", 8)]
    assert owed(state([node("n", 16)], BIG, jobs, {"B": 20, "C": 20})).owed == ()
    assert owed(state([node("n", 16)], BIG, jobs, {"A": 20, "C": 20})).owed == ("b",)


def test_a_lead_smaller_than_one_contract_of_the_gang_is_no_lead():
    """The gang of 6 costs 6 GPU-hours a contract: A is asked, and owed it only where B is further behind than that."""
    jobs = [job("big", "A", 6), job("small", "A", 4), job("b", "B", 8), job("c", "C", 8)]
    assert owed(state([node("n", 16)], BIG, jobs, {"B": 5.9, "C": 5.9})).owed == ()
    assert owed(state([node("n", 16)], BIG, jobs, {"B": 6.1, "C": 6.1})).owed == ("big",)


def test_a_job_that_lost_a_node_inside_its_contract_keeps_its_claim():
    nodes = [node("up", 8), node("down", 8, status="down")]
    inside = running("in", "A", {"up": 4, "down": 4}, started_at=at(-30))
    outside = running("out", "A", {"up": 2, "down": 2}, started_at=at(-61))
    assert owed(state(nodes, [group("A")], [inside, outside])).owed == ("in",)


def test_a_gang_nobody_covers_is_owed_by_the_cluster():
    jobs = [job("a", "A", 16), job("b", "B", 1), job("c", "C", 12)]
    assert owed(state([node("n", 14), node("down", 2, status="down")], BIG, jobs, {"C": 90, "B": 30})).owed == ("a",)
    assert owed(state([node("n", 14), node("down", 2, status="down")], BIG, jobs, {"A": 90})).owed == ("c",)


def test_the_first_owed_gang_goes_by_priority_then_age_then_id():
    def first(**later):
        jobs = [job("m", "A", 6, submitted_at=at(-9)), job("z", "A", 6, **{"submitted_at": at(-9), **later})]
        return owed(
            state([node("n", 8)], [group("lab"), group("A", 1, "lab")], [*jobs, job("l", "lab", 8)], {"lab": 20})
        ).owed

    assert first() == ("m",)
    assert first(priority=1) == ("z",)
    assert first(submitted_at=at(-10)) == ("z",)


def test_own_jobs_stand_among_the_child_groups():
    groups = [group("lab"), group("A", 1, "lab")]
    jobs = [job("own", "lab", 6), job("a", "A", 6)]
    assert owed(state([node("n", 8)], groups, jobs, {"A": 20})).owed == ("own",)
    assert owed(state([node("n", 8)], groups, jobs, {"lab": 20})).owed == ("a",)
    assert owed(state([node("n", 8)], groups, jobs)).owed == ()  # equal u/w: nobody leads by a contract
