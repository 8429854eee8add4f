"""CASES by number: what groups are owed."""

from __future__ import annotations

import numpy as np
import pytest
from entitlement.built import entitled, group, jobs, snapshot

from evenhand.entitlement import entitle
from evenhand.oddities import warnings_of
from evenhand_models import WarningCode

EQUAL = [group("a"), group("b")]


def test_13_usage_of_a_week_is_paid_back_over_the_horizon():
    work = jobs("a", 100) + jobs("b", 100)
    owed = entitled(snapshot({"h100": 100}, EQUAL, work, usage={"a": 0.0, "b": 14_400.0}))
    assert owed["a"] == pytest.approx(92.857142857, abs=1e-8)
    assert owed["b"] == pytest.approx(7.142857143, abs=1e-8)


def test_13_a_short_horizon_serves_the_least_served_first():
    work = jobs("a", 100) + jobs("b", 100)
    taken = snapshot({"h100": 100}, EQUAL, work, usage={"b": 14_400.0}, horizon_s=86_400)
    assert entitled(taken) == {"a": 100.0, "b": 0.0}


def test_15_a_second_of_one_gpu_counts():
    groups = [group("a", 1), group("b", 99)]
    found = entitle(snapshot({"h100": 10_000}, groups, jobs("a", 1) + jobs("b", 1), usage={"a": 1 / 3600}))
    assert found.usage[0] > 0
    assert found.standing.tolist() == [2, 1]


def test_15_small_usages_sum_exactly():
    groups = [group("top"), *(group(f"top/{i}", parent="top") for i in range(2_000))]
    usage = {f"top/{i}": 1 / 3600 for i in range(2_000)}
    found = entitle(snapshot({"h100": 8}, groups, jobs("top/7", 1), usage=usage))
    assert found.usage[0] == pytest.approx(2_000 / 3600, rel=1e-14)


def test_16_a_share_of_zero_beside_more_is_owed_nothing():
    taken = snapshot({"h100": 8}, [group("a", 0), group("b", 100)], jobs("a", 8) + jobs("b", 3))
    assert entitled(taken) == {"a": 0.0, "b": 3.0}
    assert entitle(taken).standing.tolist() == [2, 1]


def test_16_all_shares_zero_are_split_equally_with_a_warning():
    taken = snapshot({"h100": 8}, [group("a", 0), group("b", 0)], jobs("a", 8) + jobs("b", 8))
    assert entitled(taken) == {"a": 4.0, "b": 4.0}
    codes = [w.code for w in warnings_of(taken, entitle(taken))]
    assert codes == [WarningCode.ZERO_SHARES]


def test_16_idle_groups_are_owed_nothing_and_nothing_is_nan():
    found = entitle(snapshot({"h100": 8}, [group("a", 0), group("b", 100)], []))
    for figures in (found.entitled, found.demand, found.usage, found.guaranteed, found.leaf_entitled):
        assert np.isfinite(figures).all()
    assert found.entitled.tolist() == [0.0, 0.0]


def test_20_types_are_owed_by_what_they_charge():
    both = ("t4", "a100")
    work = jobs("a", 40, types=both) + jobs("b", 40, types=both)
    taken = snapshot({"t4": 20, "a100": 20}, EQUAL, work, rates={"t4": 1, "a100": 8}, usage={"a": 20.0, "b": 128.0})
    found = entitle(taken)
    assert found.available == 180.0
    assert found.entitled.sum() == pytest.approx(180.0)
    assert found.entitled[0] > found.entitled[1]
    assert found.standing.tolist() == [1, 2]


def test_22_who_floods_first_is_owed_no_more():
    owed = entitled(snapshot({"h100": 50}, EQUAL, jobs("b", 100) + jobs("a", 100)))
    assert owed == {"a": 25.0, "b": 25.0}


def test_23_demand_is_what_a_group_could_hold():
    groups = [group("a"), group("b"), group("c")]
    work = jobs("a", 10) + jobs("b", 90, types=("a100",)) + jobs("c", 90, types=("a100",))
    found = entitle(snapshot({"h100": 60, "a100": 60}, groups, work))
    assert found.demand.tolist() == [10.0, 60.0, 60.0]
    assert found.entitled.tolist() == [10.0, 55.0, 55.0]


def _parent_of_100(**parent: int) -> list[dict[str, object]]:
    return [
        group("p", **parent),
        group("p/a", parent="p", guaranteed_gpus=70),
        group("p/b", parent="p", guaranteed_gpus=50),
    ]


def test_34_guarantees_above_what_there_is_are_cut_in_proportion_with_a_warning():
    taken = snapshot({"h100": 100}, _parent_of_100(guaranteed_gpus=100), jobs("p/a", 100) + jobs("p/b", 100))
    found = entitle(taken)
    assert found.entitled.tolist() == pytest.approx([100, 700 / 12, 500 / 12])
    assert found.guaranteed.tolist() == pytest.approx([100, 700 / 12, 500 / 12])
    assert found.scaled.tolist() == [False, True, True]
    cut = [w for w in warnings_of(taken, found) if w.code is WarningCode.GUARANTEES_CUT]
    assert sorted(w.refs for w in cut) == [("p",), ("p/a", "p/b")]


def test_34_a_guarantee_above_the_cluster_is_cut_to_it_with_a_warning():
    taken = snapshot({"h100": 64}, [group("a", guaranteed_gpus=100), group("b")], jobs("a", 100) + jobs("b", 10))
    found = entitle(taken)
    assert found.entitled.tolist() == [64.0, 0.0]
    assert [w.code for w in warnings_of(taken, found)] == [WarningCode.GUARANTEES_CUT]


def test_34_a_limit_below_the_guarantee_wins_with_a_warning():
    groups = [group("a", guaranteed_gpus=30, max_gpus=10), group("b")]
    taken = snapshot({"h100": 64}, groups, jobs("a", 100) + jobs("b", 100))
    found = entitle(taken)
    assert found.guaranteed.tolist() == [10.0, 0.0]
    assert found.entitled.tolist() == [10.0, 54.0]
    assert [w.code for w in warnings_of(taken, found)] == [WarningCode.LIMIT_BELOW_GUARANTEE]


def test_a_guarantee_nobody_wants_is_no_entitlement():
    taken = snapshot({"h100": 64}, [group("a", guaranteed_gpus=30), group("b")], jobs("a", 2) + jobs("b", 100))
    assert entitled(taken) == {"a": 2.0, "b": 62.0}


def test_own_jobs_stand_beside_child_groups_with_their_mean_share():
    groups = [group("p"), group("p/a", 1, parent="p"), group("p/b", 3, parent="p")]
    found = entitle(snapshot({"h100": 60}, groups, jobs("p", 60) + jobs("p/a", 60) + jobs("p/b", 60)))
    assert found.entitled.tolist() == [60.0, 10.0, 30.0]
    assert found.leaf_entitled.tolist() == [20.0, 10.0, 30.0]


def test_usage_of_a_lost_group_is_charged_to_the_nearest_above():
    found = entitle(snapshot({"h100": 8}, EQUAL, jobs("a", 8), usage={"a/gone/too": 7.0, "nobody": 9.0}))
    assert found.own_usage.tolist() == [7.0, 0.0]
