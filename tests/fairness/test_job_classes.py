"""Rule T1: which jobs are of one class, and what a leaf with several gains."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from entitlement.built import group, jobs, snapshot
from strategies.clusters import random_state

from evenhand import allocate, audit
from evenhand.audit.dues import dues
from evenhand.audit.reading import read
from evenhand.audit.target import entitled_leaves
from evenhand.entitlement import entitle
from evenhand.fairness import job_classes as room
from evenhand.fairness.group_value import group_values
from evenhand.fairness.job_classes import MOST_CLASSES, job_classes
from evenhand.fairness.target import fair_target
from evenhand.snapshot import take_snapshot
from evenhand_models import Objective, Policy


def sort(vectors: list[list[int]], size: int = 1) -> list[int]:
    """Classes of one leaf's jobs."""
    count = len(vectors)
    found = job_classes(np.zeros(count, dtype=np.int64), np.full(count, size), np.array(vectors))
    return found.of.tolist()


def test_jobs_that_agree_to_a_sixteenth_are_alike():
    assert sort([[1000, 500], [1000, 520]]) == [0, 0]
    assert len(set(sort([[1000, 500], [1000, 540]]))) == 2


def test_halves_of_a_step_go_up():
    """1/32 and 3/64 of the best are nearest to 1/16; what is just below 1/32 is not."""
    assert len(set(sort([[32, 1000 // 32 + 1], [32, 32]]))) == 1
    assert len(set(sort([[640, 20], [640, 30]]))) == 1
    assert len(set(sort([[640, 19], [640, 30]]))) == 2


def test_what_is_of_no_use_is_not_like_what_is_of_little():
    assert len(set(sort([[1000, 1], [1000, 0]]))) == 2


def test_only_the_direction_of_a_vector_matters():
    assert sort([[1000, 500], [500, 250]]) == [0, 0]


def test_a_leaf_with_many_kinds_of_jobs_is_sorted_coarsely():
    fine = [[1000, 10 + 60 * k] for k in range(16)]
    classes = sort(fine)
    assert 3 <= len(set(classes)) <= MOST_CLASSES
    assert classes == sorted(classes)


def test_where_no_grid_does_all_are_of_one_class():
    masks = [[1000 * (mask >> t & 1) for t in range(3)] for mask in range(1, 8)]
    assert len(masks) > MOST_CLASSES
    assert set(sort(masks)) == {0}


def test_leaves_do_not_coarsen_one_another():
    fine = [[1000, 10 + 60 * k] for k in range(16)]
    leaf = np.array([0] * 16 + [1, 1])
    found = job_classes(leaf, np.ones(18, dtype=np.int64), np.array([*fine, [1000, 500], [1000, 560]]))
    assert len(set(found.of[16:].tolist())) == 2


def test_sums_are_over_the_jobs_of_a_class():
    found = job_classes(np.array([0, 0, 1]), np.array([2, 4, 1]), np.array([[1000, 500], [1000, 520], [0, 1000]]))
    assert found.leaf.tolist() == [0, 1]
    assert found.size.tolist() == [6, 1]
    assert found.speed_sum.tolist() == [[6000, 3080], [0, 1000]]


@pytest.mark.parametrize("unit", ["best", "slowest"])
@pytest.mark.parametrize("seed", range(40))
def test_the_audit_sorts_and_prices_alike(seed, unit):
    """Classes, floors, prices and slopes of every leaf, worked out twice."""
    state, policy = random_state(Random(seed), ("small", "medium")[seed % 2]), Policy(throughput_unit=unit)
    taken = take_snapshot(state, policy)
    values, _ = group_values(taken, entitle(taken))
    reading = read(state, policy)
    leaves = entitled_leaves(reading, dues(reading))
    assert [leaf.group for leaf in leaves] == [taken.tree.ids[g] for g in values.leaves]
    for i, leaf in enumerate(leaves):
        mine = np.flatnonzero(values.of == i)
        assert sorted(one.gpus for one in leaf.classes) == sorted(values.cap[mine].tolist())
        assert leaf.floor == pytest.approx(values.floor[i], rel=1e-9, abs=1e-9)
        assert leaf.base == pytest.approx(values.base[i], rel=1e-7, abs=1e-7)
        slopes = [leaf.slope.get(kind, 0.0) for kind in taken.types]
        assert slopes == pytest.approx(values.lever[i].tolist(), abs=1e-7)


def half_and_half():
    """A: half of its jobs need h100, half take anything; B takes anything; C only a100."""
    groups = [group("a"), group("b"), group("c")]
    free = ("h100", "a100")
    work = jobs("a", 10) + jobs("a", 10, types=free) + jobs("b", 20, types=free) + jobs("c", 20, types=("a100",))
    return snapshot({"h100": 15, "a100": 15}, groups, work)


def test_jobs_that_can_only_use_one_type_are_not_blurred_with_those_that_can_use_all(monkeypatch):
    """Blurred, a GPU of a100 seems worth half to A; it is worth all for its first ten."""
    taken = half_and_half()
    found = fair_target(taken, entitle(taken))
    assert found.values.floor.tolist() == pytest.approx([10.0, 10.0, 5.0])
    monkeypatch.setattr(room.job_classes, "__defaults__", (1,))
    blurred = fair_target(taken, entitle(taken))
    assert blurred.values.floor.tolist() == pytest.approx([7.5, 10.0, 5.0])


@pytest.mark.parametrize("objective", list(Objective))
def test_every_objective_works_on_classes(objective):
    checked = 0
    for seed in range(4):
        state, policy = random_state(Random(seed), "medium"), Policy(objective=objective, time_limit_s=60.0)
        plan = allocate(state, policy)
        assert audit(state, plan).ok
        taken = take_snapshot(state, policy)
        checked += bool(group_values(taken, entitle(taken))[0].several.any())
    assert checked >= 2
