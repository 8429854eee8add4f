"""Rule T4's max_min: lexicographic, against plain programs that fix one leaf at a time."""

from __future__ import annotations

import numpy as np
import pytest
from audit.build import group, job, node, state
from fairness.drawn_values import plain, values
from fairness.test_nash import fits, most_with_nobody_worse

from evenhand.audit.dues import dues
from evenhand.audit.fairness import check_target
from evenhand.audit.reading import read
from evenhand.audit.target import aim_at
from evenhand.entitlement import entitle
from evenhand.fairness.fair_share import fair_share
from evenhand.fairness.group_value import GroupValues, value_of, values_of
from evenhand.fairness.max_min import max_min
from evenhand.fairness.rows import capacity_rows, grid_of
from evenhand.fairness.target import fair_target
from evenhand.snapshot import take_snapshot
from evenhand.solvers.lp import INFINITY, LpStatus, Rows, solve_lp, stack
from evenhand_models import Policy

CAPS = ["none", "some", "tight"]


def by_plain_programs(v: GroupValues, measure: np.ndarray) -> np.ndarray:
    """Values of the lexicographic optimum: at each level every leaf is asked whether it can rise alone."""
    grid = grid_of(v)
    n, leaves = grid.count, len(v.cap)
    own = [np.where(grid.leaf == i, grid.worth, 0.0) for i in range(leaves)]
    rising = [i for i in range(leaves) if own[i].any()]
    least = np.zeros(leaves)
    found = np.zeros(leaves)

    def most(cost: np.ndarray, level: float | None) -> float:
        """Most of a linear figure over x and z; without a level z is free."""
        dense = np.array([np.append(own[i], -measure[i] if i in rising else 0.0) for i in range(leaves)])
        dense = dense.reshape(leaves, n + 1)
        where, columns = np.nonzero(dense)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(where, minlength=leaves))])
        lower = np.where(np.isin(np.arange(leaves), rising), 0.0, least)
        rows = Rows(indptr, columns, dense[where, columns], lower - 1e-9, np.full(leaves, INFINITY))
        low, high = np.zeros(n + 1), np.full(n + 1, INFINITY)
        if level is not None:
            low[n] = high[n] = level
        answer = solve_lp(cost, stack(capacity_rows(grid), rows), low, high, maximize=True)
        assert answer.status is LpStatus.OPTIMAL
        return answer.objective

    while rising:
        level = most(np.append(np.zeros(n), 1.0), None)
        stuck = [
            i for i in rising if most(np.append(own[i], 0.0), level - 1e-9) <= level * measure[i] * (1 + 1e-6) + 1e-6
        ]
        assert stuck
        for i in stuck:
            least[i] = found[i] = level * measure[i]
        rising = [i for i in rising if i not in stuck]
    return found


@pytest.mark.parametrize("caps", CAPS)
@pytest.mark.parametrize("seed", range(20))
def test_levels_are_those_of_plain_programs(seed, caps):
    v = values(seed, 2 + seed % 7, 1 + seed % 4, caps=caps, twins=seed % 5 == 0)
    x, best = max_min(v)
    fits(v, x)
    assert best
    assert value_of(v, x) == pytest.approx(by_plain_programs(v, v.floor), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("caps", CAPS)
@pytest.mark.parametrize("seed", range(20))
def test_floors_hold_and_nothing_is_wasted(seed, caps):
    v = values(seed, 2 + seed % 25, 1 + seed % 5, caps=caps, twins=seed % 4 == 0)
    x, best = max_min(v)
    fits(v, x)
    assert best
    assert (value_of(v, x) >= v.floor - 1e-7).all()
    assert most_with_nobody_worse(v, x) == pytest.approx(value_of(v, x).sum(), abs=1e-5)


def test_one_job_at_its_most_does_not_decide_for_all():
    """A can never have more than its floor; B and C still get all they can."""
    v = values_of(
        np.arange(3),
        np.ones(3),
        np.array([[1.0, 0.0], [1.0, 0.2], [0.2, 1.0]]),
        np.array([2, 99, 99]),
        np.array([6, 6]),
    )
    x, _ = max_min(v)
    assert value_of(v, x) == pytest.approx([2.0, 13 / 3, 13 / 3])
    assert x.sum() == pytest.approx(12)


@pytest.mark.parametrize("seed", range(8))
def test_scale_and_order_change_nothing(seed):
    v = values(seed, 9, 3, caps=CAPS[seed % 3])
    found = value_of(v, max_min(v)[0])
    rng = np.random.default_rng(seed)
    factor = rng.uniform(0.01, 100, 9)
    scaled = values_of(v.leaves, v.entitled, v.weights * factor[:, None], v.cap, v.capacity)
    assert value_of(scaled, max_min(scaled)[0]) / factor == pytest.approx(found, rel=1e-5)
    rows, kinds = rng.permutation(9), rng.permutation(3)
    mixed = values_of(v.leaves, v.entitled[rows], v.weights[rows][:, kinds], v.cap[rows], v.capacity[kinds])
    assert value_of(mixed, max_min(mixed)[0]) == pytest.approx(found[rows], rel=1e-6, abs=1e-7)


def test_equal_input_gives_equal_bytes():
    v = values(11, 45, 3)
    assert max_min(v)[0].tobytes() == max_min(v)[0].tobytes()


def test_nothing_to_divide():
    for v in (plain([[1.0]], [0]), values(1, 0, 2), plain([[0.0, 0.0]], [3, 3])):
        x, best = max_min(v)
        assert x.shape == v.weights.shape
        assert best
        assert x.sum() == 0


def test_where_the_iterations_do_not_do_the_slices_are_served_and_not_called_best():
    v = values(5, 25, 3)
    x, best = max_min(v, iterations=5)
    assert not best
    assert (x == fair_share(v)).all()


RISING = ("nash", "equal_throughput", "max_min")


def divided(objective: str, *, cap: int = 20):
    """Target of three groups with unlike tastes, as the audit reads it."""
    speeds = {"A": {"h100": 2.0, "a100": 1.0}, "B": {"h100": 5.0, "a100": 1.0}, "C": {"h100": 1.1, "a100": 1.0}}
    held = state(
        [node("h", 8), node("a", 12, kind="a100")],
        [group("A", 1), group("B", 2), group("C", 1)],
        [job(f"{g}{k}", g, 1, speedup=v) for g, v in speeds.items() for k in range(cap if g == "A" else 20)],
    )
    policy = Policy(objective=objective)
    taken = take_snapshot(held, policy)
    found = fair_target(taken, entitle(taken))
    given = {
        taken.tree.ids[g]: {t: float(x) for t, x in zip(taken.types, row, strict=True) if x > 0}
        for g, row in zip(found.leaves, found.x, strict=True)
    }
    return held, given


def faults(held, given, objective: str) -> set[str]:
    reading = read(held, Policy(objective=objective))
    owed = dues(reading)
    return {finding.rule for finding in check_target(reading, owed, aim_at(reading, owed, given), given)}


@pytest.mark.parametrize("cap", [4, 20])
@pytest.mark.parametrize("objective", RISING)
def test_the_audit_accepts_the_target(objective, cap):
    assert faults(*divided(objective, cap=cap), objective) == set()


@pytest.mark.parametrize("objective", RISING)
@pytest.mark.parametrize("asked", [*RISING, "max_throughput", "envy_free"])
def test_the_audit_tells_the_target_of_another_objective(objective, asked):
    if asked != objective:
        assert faults(*divided(asked), objective)


@pytest.mark.parametrize("objective", RISING)
def test_the_audit_sees_gpus_left_free_and_slivers_moved(objective):
    held, given = divided(objective)
    less = {g: {t: x * 0.99 for t, x in b.items()} for g, b in given.items()}
    assert "T4" in faults(held, less, objective)
    for giver in given:
        for taker in given:
            for kind, gpus in given[giver].items():
                if giver != taker and gpus > 0.1:
                    moved = {g: dict(b) for g, b in given.items()}
                    moved[giver][kind] -= 0.1
                    moved[taker][kind] = moved[taker].get(kind, 0.0) + 0.1
                    assert faults(held, moved, objective)


@pytest.mark.parametrize("caps", CAPS)
def test_hundreds_of_leaves(caps):
    v = values(2, 181, 3, caps=caps)
    x, best = max_min(v)
    fits(v, x)
    assert best
