"""Rules T by hand."""

import pytest

from audit.build import group, job, node, state
from evenhand.audit.dues import dues
from evenhand.audit.fairness import check_target
from evenhand.audit.reading import read
from evenhand.audit.target import aim_at
from evenhand_models import Policy

NODES = [node("h", 3), node("a", 3, kind="a100")]
BOTH = {"h100": 1.0, "a100": 1.0}
TRIO = state(
    NODES,
    [group("A"), group("B"), group("C")],
    [
        job("a", "A", 3, speedup=BOTH),
        job("b", "B", 3, speedup=BOTH),
        job("c", "C", 3, speedup={"a100": 2.0}),
    ],
)


def faults(given, bundle, *, proven=True, **policy):
    reading = read(given, Policy(**policy))
    owed = dues(reading)
    target = aim_at(reading, owed, bundle)
    return {finding.rule for finding in check_target(reading, owed, target, bundle, proven=proven)}


def bundles(a, b, c):
    return {name: dict(zip(("h100", "a100"), held, strict=True)) for name, held in zip("ABC", (a, b, c), strict=True)}


def test_values_floors_and_prices():
    """P is owed all of the 2 GPUs it can use, Q the other 10."""
    nodes = [node("h", 6), node("a", 6, kind="a100")]
    jobs = [job("p", "P", 2, speedup={"h100": 2.0, "a100": 1.0}), job("q", "Q", 6, speedup=BOTH)]
    jobs.append(job("r", "Q", 6, speedup=BOTH))
    reading = read(state(nodes, [group("P", 9), group("Q", 1)], jobs), Policy())
    owed = dues(reading)
    target = aim_at(reading, owed, {"P": {"h100": 1.5, "a100": 0.5}, "Q": {"h100": 4.5, "a100": 5.5}})
    p, q = target.leaves
    assert (p.entitled, q.entitled) == pytest.approx((2, 10))
    assert p.slice == pytest.approx({"h100": 1, "a100": 1})
    assert p.classes[0].speed == {"h100": 1.0, "a100": 0.5}
    assert p.floor == pytest.approx(1.5)
    assert p.prices == (0,)  # the slice of 2 is just what it can hold
    assert q.floor == pytest.approx(10)
    assert p.value({"h100": 1.5, "a100": 9}) == pytest.approx(1.75)
    assert target.value == pytest.approx({"P": 1.75, "Q": 10})
    assert target.aim == {"P": 0, "Q": 6000}


def test_the_price_of_a_full_hand_is_that_of_the_last_type_taken():
    nodes = [node("h", 4), node("a", 4, kind="a100")]
    speeds = {"h100": 4.0, "a100": 1.0}
    jobs = [job("p", "P", 3, speedup=speeds), job("q", "Q", 3, speedup=speeds)]
    reading = read(state(nodes, [group("P"), group("Q")], jobs), Policy())
    leaf = aim_at(reading, dues(reading), {}).leaves[0]
    assert leaf.slice == pytest.approx({"h100": 2, "a100": 2})
    assert leaf.prices == (0.25,)
    assert leaf.floor == pytest.approx(2.25)
    assert leaf.bound(leaf.slice) == pytest.approx(leaf.floor)  # L touches v at the slice
    assert leaf.bound({"h100": 4.0, "a100": 0.0}) == pytest.approx(3.75)  # and is above it elsewhere: v is 3


def test_aims_are_whole_gangs_within_what_the_target_brings():
    jobs = [job("x", "A", 1, speedup=BOTH), job("y", "A", 2, speedup={"h100": 2.0, "a100": 1.0})]
    reading = read(state(NODES, [group("A")], jobs), Policy())
    owed = dues(reading)

    def aim(h100, a100):
        target = aim_at(reading, owed, {"A": {"h100": h100, "a100": a100}})
        return target.value["A"], target.aim["A"] / 1000

    assert aim(3.0, 0.0) == pytest.approx((3, 3))
    assert aim(2.0, 1.0) == pytest.approx((3, 3))  # x is as well off on the a100
    assert aim(1.5, 1.5) == pytest.approx((2.75, 2))
    assert aim(0.0, 3.0) == pytest.approx((2, 2))
    assert aim(0.0, 1.0) == pytest.approx((1, 1))


def test_a_fair_target_passes():
    """Each is owed 2 of 6. A and B take all h100, C lives on a100: floors 2, 2 and 1."""
    assert faults(TRIO, bundles((1.5, 1), (1.5, 1), (0, 1))) == set()


@pytest.mark.parametrize(
    ("bundle", "rule"),
    [
        (bundles((2, 1), (1.5, 1), (0, 1)), "T4"),  # more h100 than there are, and B envies A
        (bundles((1.5, 1), (1.5, 0.5), (0.5, 1)), "T4"),  # C cannot use an h100
        (bundles((1.5, 2), (1.5, -0.2), (0, 1)), "T4"),
        (bundles((1.5, 1), (1.5, 1), (0, 0.9)), "T2"),  # C below its floor
        (bundles((2, 1), (1, 1), (0, 1)), "T3"),  # floors hold, but B envies A
    ],
)
def test_unfair_targets_are_rejected(bundle, rule):
    assert rule in faults(TRIO, bundle)


def test_only_the_envy_is_wrong_with_the_last_of_them():
    assert faults(TRIO, bundles((2, 1), (1, 1), (0, 1))) == {"T3"}
    assert faults(TRIO, bundles((2, 1), (1, 1), (0, 1)), objective="max_throughput") == set()


def test_fair_share_is_the_slice_itself():
    proportional = bundles((1, 1), (1, 1), (0, 1))
    assert faults(TRIO, proportional, objective="fair_share") == set()
    assert faults(TRIO, bundles((1.5, 0.5), (1, 1), (0, 1)), objective="fair_share") == {"T4"}
    assert faults(TRIO, bundles((1, 0.5), (1, 1), (0, 1)), objective="fair_share") == {"T4"}


def test_nobody_gets_more_than_its_jobs_can_hold():
    given = state([node("h", 8)], [group("A"), group("B")], [job("a", "A", 2), job("b", "B", 8)])
    assert faults(given, {"A": {"h100": 2.0}, "B": {"h100": 6.0}}) == set()
    assert "T4" in faults(given, {"A": {"h100": 2.5}, "B": {"h100": 5.5}}, objective="max_throughput")


def test_who_is_owed_nothing_has_no_target():
    given = state([node("h", 8)], [group("A"), group("B")], [job("a", "A", 2), job("b", "B", 8, c=0)])
    assert faults(given, {"A": {"h100": 2.0}, "B": {}}) == set()
    assert faults(given, {"A": {"h100": 2.0}, "B": {"h100": 1.0}}) == {"T4"}


def test_a_target_that_is_not_called_proven_may_leave_a_hundredth_of_a_floor_of_envy():
    """B's floor is 2: it may miss 0.02, not more; and no floor may be missed."""
    assert faults(TRIO, bundles((1.51, 1), (1.49, 1), (0, 1))) == {"T3"}
    assert faults(TRIO, bundles((1.51, 1), (1.49, 1), (0, 1)), proven=False) == set()
    assert faults(TRIO, bundles((1.52, 1), (1.48, 1), (0, 1)), proven=False) == {"T3"}
    assert "T2" in faults(TRIO, bundles((1.5, 1.005), (1.5, 1.005), (0, 0.99)), proven=False)


def test_a_target_that_is_not_called_proven_may_leave_claims():
    low = bundles((1.4, 1), (1.4, 1), (0, 1))
    for objective in ("nash", "equal_throughput", "max_min"):
        assert "T4" in faults(TRIO, low, objective=objective)
        assert faults(TRIO, low, objective=objective, proven=False) == set()


BLEND = state(
    NODES,
    [group("A"), group("B")],
    [
        job("a1", "A", 2),
        job("a2", "A", 1, speedup=BOTH),
        job("b", "B", 3, speedup=BOTH),
    ],
)


def test_a_leaf_is_valued_class_by_class():
    """A: two GPUs of h100 only, one of either. Of 1.5 and 1.5 it draws all of h100 and one a100."""
    reading = read(BLEND, Policy())
    leaf = aim_at(reading, dues(reading), {}).leaves[0]
    assert sorted(one.gpus for one in leaf.classes) == [1, 2]
    assert leaf.floor == pytest.approx(2.5)
    assert leaf.used({"h100": 1.5, "a100": 1.5}) == pytest.approx({"h100": 1.5, "a100": 1.0})
    assert leaf.value({"h100": 3.0, "a100": 3.0}) == pytest.approx(3.0)
    assert leaf.value({"h100": 0.0, "a100": 3.0}) == pytest.approx(1.0)
    assert leaf.prices in ((1.0, 0.0), (0.0, 1.0))  # of the flexible job more would be of use, of the others not
    assert leaf.slope == pytest.approx({"h100": 1.0, "a100": 0.0})


def test_a_leaf_holds_no_more_than_its_classes_can():
    """Two a100 are one more than A can hold, though it wants three GPUs."""
    assert faults(BLEND, {"A": {"h100": 1.5, "a100": 1.0}, "B": {"h100": 1.5, "a100": 1.5}}) == set()
    assert "T4" in faults(BLEND, {"A": {"h100": 1.0, "a100": 2.0}, "B": {"h100": 2.0, "a100": 1.0}}, proven=False)
