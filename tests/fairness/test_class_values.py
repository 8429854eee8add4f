"""Rules T1 to T4 for leaves with several job classes: what the proofs say, on random matrices."""

from __future__ import annotations

import numpy as np
import pytest
from fairness.drawn_values import class_values, values
from fairness.test_forced import excess_of, least_excess

from evenhand.fairness import envy_free as room
from evenhand.fairness.envy_free import envy_free
from evenhand.fairness.equal_throughput import equal_throughput
from evenhand.fairness.fair_share import fair_share
from evenhand.fairness.forced import least_slack
from evenhand.fairness.group_value import GroupValues, best_split, value_of, values_of, wished_of
from evenhand.fairness.max_min import max_min, max_min_throughput
from evenhand.fairness.max_throughput import max_throughput
from evenhand.fairness.nash import GAP, nash
from evenhand.fairness.pair_envy import pair_envy
from evenhand.fairness.rows import capacity_rows, envy_rows, floor_rows, grid_of
from evenhand.fairness.swapped import envy_of
from evenhand.fairness.twins import merged
from evenhand.solvers.lp import INFINITY, LpStatus, Rows, solve_lp, stack

CAPS = ["none", "some", "tight"]
OBJECTIVES = [envy_free, nash, equal_throughput, max_min, max_throughput]


def value_by_program(v: GroupValues, bundles: np.ndarray) -> np.ndarray:
    """v_i by one plain linear program over all leaves."""
    classes, types = v.weights.shape
    k, t = np.divmod(np.arange(classes * types), types)
    keys = np.concatenate([k, classes + v.of[k] * types + t])
    columns = np.tile(np.arange(classes * types), 2)
    order = np.lexsort((columns, keys))
    upper = np.concatenate([v.cap.astype(float), bundles.reshape(-1)])
    indptr = np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=len(upper)))]).astype(np.int64)
    rows = Rows(indptr, columns[order], np.ones(len(keys)), np.full(len(upper), -INFINITY), upper)
    found = solve_lp(v.weights.reshape(-1), rows, np.zeros(len(k)), np.full(len(k), INFINITY), maximize=True)
    assert found.status is LpStatus.OPTIMAL
    return v.per_leaf((v.weights.reshape(-1) * found.x).reshape(classes, types).sum(axis=1))


def some_bundles(v: GroupValues, seed: int) -> np.ndarray:
    return v.slices * np.random.default_rng(seed).uniform(0, 3, v.slices.shape)


@pytest.mark.parametrize("caps", CAPS)
@pytest.mark.parametrize("seed", range(12))
def test_the_best_split_is_the_program_s(seed, caps):
    v = class_values(seed, 9, 1 + seed % 5, caps=caps)
    for bundles in (v.slices, some_bundles(v, seed), fair_share(v)):
        split = best_split(v, bundles)
        assert (split >= 0).all()
        assert (split.sum(axis=1) <= v.cap + 1e-9).all()
        assert (v.per_leaf(split) <= bundles + 1e-9).all()
        assert value_of(v, bundles) == pytest.approx(value_by_program(v, bundles), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("caps", CAPS)
@pytest.mark.parametrize("seed", range(12))
def test_the_line_lies_above_the_value_and_meets_it_at_the_slice(seed, caps):
    v = class_values(seed, 9, 1 + seed % 5, caps=caps)
    assert v.base + (v.lever * v.slices).sum(axis=1) == pytest.approx(v.floor, rel=1e-9, abs=1e-9)
    for k in range(12):
        y = some_bundles(v, k)
        assert (v.base + (v.lever * y).sum(axis=1) >= value_of(v, y) - 1e-9).all()


@pytest.mark.parametrize("seed", range(12))
def test_prices_are_the_greatest_beside_those_that_are_nothing(seed):
    """Whole numbers make ties: more of a class without price brings nothing, less of another costs its price."""
    rng = np.random.default_rng(seed)
    of = np.repeat(np.arange(6), 3)
    weights = rng.choice([0.0, 0.5, 1.0], (18, 3))
    cap = rng.integers(1, 5, 18)
    v = values_of(np.arange(6), np.full(6, 4.0), weights, cap, np.full(3, 8), of)
    value, sliver = value_of(v, v.slices), 1e-4

    def with_more(more: np.ndarray) -> np.ndarray:
        other = values_of(
            v.leaves, v.entitled, weights, 10_000 * cap + np.rint(10_000 * more).astype(np.int64), v.capacity, of
        )
        return value_of(other, 10_000 * v.slices) / 10_000

    ample = np.zeros(18)
    for k in range(18):
        one = (np.arange(18) == k) * sliver
        nothing = (with_more(one) - value)[of[k]] <= sliver * 1e-3
        assert not (v.pi[k] > 1e-9 and nothing)
        ample[k] = 3 * sliver if nothing else 0.0
    least = with_more(ample)
    for k in np.flatnonzero(ample == 0.0):
        lost = (least - with_more(ample - (np.arange(18) == k) * sliver))[of[k]] / sliver
        assert v.pi[k] == pytest.approx(lost, abs=1e-6)


@pytest.mark.parametrize("caps", CAPS)
@pytest.mark.parametrize("seed", range(8))
def test_one_class_a_leaf_is_the_plain_rule(seed, caps):
    """Best types first; the price is that of the last type taken, 0 where all there is of use fits."""
    v = values(seed, 20, 1 + seed % 5, caps=caps)
    split = best_split(v, v.slices)
    for i in range(20):
        left, price, reached = float(v.cap[i]), 0.0, 0.0
        full = v.slices[i][v.weights[i] > 0].sum() > v.cap[i] * (1 + 1e-9)
        for t in np.argsort(-v.weights[i], kind="stable"):
            taken = min(left, v.slices[i, t]) if v.weights[i, t] > 0 else 0.0
            left, reached = left - taken, reached + taken * v.weights[i, t]
            price = v.weights[i, t] if full and taken > 1e-9 * v.cap[i] else price
            assert split[i, t] == pytest.approx(taken, abs=1e-12)
        assert v.pi[i] == pytest.approx(price, abs=1e-15)
        assert v.floor[i] == pytest.approx(reached, rel=1e-14)


def fits(v: GroupValues, x: np.ndarray) -> None:
    """Capacity, caps, nothing useless."""
    assert (x >= 0).all()
    assert (x.sum(axis=0) <= v.capacity + 1e-7).all()
    assert best_split(v, x + 1e-9 * (x > 0)).sum() == pytest.approx(x.sum(), rel=1e-6, abs=1e-6)


def relative(v: GroupValues, amounts: np.ndarray) -> np.ndarray:
    """Throughput over floors, by row."""
    return (amounts.T / np.maximum(v.floor, 1e-12)).T


def by_all_rows(v: GroupValues) -> float:
    """The program with the lines at the slices, every row from the start, solved as it is written."""
    grid = grid_of(v)
    pairs = np.nonzero(~np.eye(len(v.leaves), dtype=bool))
    rows = stack(capacity_rows(grid), floor_rows(grid), envy_rows(grid, *pairs))
    found = solve_lp(grid.worth, rows, np.zeros(grid.count), np.full(grid.count, INFINITY), maximize=True)
    assert found.status is LpStatus.OPTIMAL
    return found.objective


@pytest.mark.parametrize("caps", CAPS)
@pytest.mark.parametrize("seed", range(20))
def test_no_envy_no_shortfall_and_nothing_better_by_the_lines_at_the_slices(seed, caps, monkeypatch):
    v = class_values(seed, 3 + seed % 14, 1 + seed % 5, caps=caps)
    once = []
    for repeats in (room.MOST_REPEATS, 0):
        monkeypatch.setattr(room, "MOST_REPEATS", repeats)
        x, best = envy_free(v)
        assert best
        fits(v, x)
        assert (relative(v, value_of(v, x) - v.floor) >= -1e-6).all()
        assert relative(v, envy_of(v, x)).max() <= 1e-6
        once.append(value_of(v, x).sum())
    assert once[0] >= once[1] * (1 - 1e-12)
    assert once[1] == pytest.approx(by_all_rows(v), rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("caps", CAPS)
@pytest.mark.parametrize("seed", range(12))
def test_slices_are_always_fair(seed, caps):
    v = class_values(seed, 12, 4, caps=caps)
    x = fair_share(v)
    fits(v, x)
    assert value_of(v, x) == pytest.approx(v.floor)
    assert relative(v, envy_of(v, x)).max() <= 1e-6
    assert np.abs(wished_of(v, v.slices) - v.floor[:, None]).max() <= 1e-6


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("seed", range(8))
def test_order_of_groups_and_types_means_nothing(seed, objective):
    v = class_values(seed, 9, 3, caps=CAPS[seed % 3])
    rng = np.random.default_rng(seed)
    generic = v.weights * rng.uniform(0.8, 1.0, len(v.of))[:, None]  # no two divisions are equally good
    v = values_of(v.leaves, v.entitled, generic, v.cap, v.capacity, v.of)
    rows, kinds = rng.permutation(9), rng.permutation(3)
    pick = np.concatenate([rng.permutation(np.flatnonzero(v.of == i)) for i in rows])
    of = np.repeat(np.arange(9), np.bincount(v.of)[rows])
    mixed = values_of(v.leaves, v.entitled[rows], v.weights[pick][:, kinds], v.cap[pick], v.capacity[kinds], of)
    one, other = value_of(v, objective(v)[0])[rows], value_of(mixed, objective(mixed)[0])
    assert other == pytest.approx(one, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_who_can_use_nothing_changes_nothing(objective):
    v = class_values(3, 6, 3)
    of = np.append(v.of, 6)
    weights, cap = np.vstack([v.weights, np.zeros(3)]), np.append(v.cap, 4)
    share = np.append(v.entitled, 1e-13 * v.entitled.sum())
    more = values_of(np.arange(7), share, weights, cap, v.capacity, of)
    assert objective(more)[0][:6] == pytest.approx(objective(v)[0], abs=1e-5)
    assert not objective(more)[0][6].any()


@pytest.mark.parametrize("objective", [envy_free, nash, equal_throughput, max_min])
@pytest.mark.parametrize("seed", range(6))
def test_replicas_are_whole_weights(seed, objective):
    """A group owed three times as much, with three times the jobs, is as well off as three groups.

    Under `envy_free` where caps are far: the three are held to lines above their values for one another, too.
    """
    v = class_values(seed, 5, 3, caps="none" if objective is envy_free else CAPS[seed % 3])
    first = np.flatnonzero(v.of == 0)
    cap = np.where(v.of == 0, 3 * v.cap, v.cap)
    weight = np.where(v.leaves == 0, 3.0, 1.0)
    whole = values_of(v.leaves, weight * v.entitled, v.weights, cap, v.capacity, v.of)
    pick = np.concatenate([np.tile(first, 3), np.flatnonzero(v.of > 0)])
    of = np.concatenate([np.repeat(np.arange(3), len(first)), v.of[v.of > 0] + 2])
    share = np.concatenate([np.full(3, v.entitled[0]), v.entitled[1:]])
    parts = values_of(np.arange(7), share, v.weights[pick], v.cap[pick], v.capacity, of)
    one, several = value_of(whole, objective(whole)[0]), value_of(parts, objective(parts)[0])
    assert several[:3] == pytest.approx(np.full(3, one[0] / 3), rel=1e-5)
    assert several[3:] == pytest.approx(one[1:], rel=1e-5, abs=1e-6)


def test_twins_with_several_classes_are_merged():
    v = class_values(2, 4, 3)
    pick = np.concatenate([np.flatnonzero(v.of == i) for i in (0, 1, 0, 2)])
    of = np.repeat(np.arange(4), np.bincount(v.of)[[0, 1, 0, 2]])
    several = values_of(v.leaves, v.entitled[[0, 1, 0, 2]], v.weights[pick], v.cap[pick], v.capacity, of)
    twins = merged(several)
    assert twins.of.tolist() == [0, 1, 0, 2]
    assert twins.values.leaf_cap[0] == 2 * several.leaf_cap[0]
    x, _ = envy_free(several)
    assert x[0] == pytest.approx(x[2], abs=1e-9)


@pytest.mark.parametrize("caps", CAPS)
@pytest.mark.parametrize("seed", range(6))
def test_no_division_has_a_greater_product(seed, caps):
    v = class_values(seed, 6, 3, caps=caps)
    x, best = nash(v)
    assert best
    fits(v, x)
    own, some = value_of(v, x), v.usable.any(axis=1)
    rng = np.random.default_rng(seed)
    for _ in range(20):
        other = rng.uniform(0, 1, x.shape) * v.usable
        other *= v.capacity / np.maximum(other.sum(axis=0), 1e-12)
        for step in (1e-4, 1e-2, 0.3):
            gain = np.log(value_of(v, x + step * (other - x)) / own, where=some, out=np.zeros(6))
            assert (v.entitled * gain).sum() <= GAP * v.entitled.sum()


@pytest.mark.parametrize("seed", range(10))
def test_max_min_keeps_floors_and_its_figure_is_between(seed):
    v = class_values(seed, 8, 3, caps=CAPS[seed % 3])
    x, best = max_min(v)
    assert best
    fits(v, x)
    assert (relative(v, value_of(v, x) - v.floor) >= -1e-6).all()
    level = max_min_throughput(v)
    assert level is not None
    assert v.floor.sum() - 1e-6 <= level <= value_of(v, max_throughput(v)[0]).sum() + 1e-6


@pytest.mark.parametrize("seed", range(12))
def test_pins_add_slack_and_all_of_it_is_called_forced(seed):
    v = class_values(seed, 4 + seed % 8, 1 + seed % 3, caps=CAPS[seed % 3])
    rng = np.random.default_rng(seed)
    pinned = np.floor(best_split(v, v.slices * rng.uniform(0, 2.5, v.slices.shape)))
    pinned *= (rng.random(len(v.cap)) < 0.4)[:, None]
    x, _ = envy_free(v)
    slack = least_slack(v, x, pinned)
    assert excess_of(v, slack) == pytest.approx(least_excess(v, pinned), abs=1e-4, rel=1e-5)
    assert not slack.diagonal().any()
    assert not least_slack(v, x, np.zeros(v.weights.shape)).any()


@pytest.mark.parametrize("told", [1, 5, 1000])
@pytest.mark.parametrize("seed", range(6))
def test_envy_of_pairs_is_exact_where_it_is_told_of(seed, told):
    v = class_values(seed, 14, 3, caps=CAPS[seed % 3])
    rng = np.random.default_rng(seed)
    held = np.floor(v.slices * rng.uniform(0, 3, v.slices.shape))
    reached, enough = value_of(v, held), rng.uniform(0, 1, 14)
    exact = np.zeros((14, 14))
    for other in range(14):
        exact[:, other] = value_of(v, (v.entitled / v.entitled[other])[:, None] * held[other])
    exact = np.maximum(relative(v, exact - reached[:, None]), 0.0)
    np.fill_diagonal(exact, 0.0)
    found = pair_envy(v, held, reached, enough, told)
    assert found.max() == pytest.approx(exact.max(), rel=1e-9)
    assert (found >= exact - 1e-9).all()
    beyond = exact > enough[:, None]
    most = np.sort(exact[beyond])[::-1][:told]
    assert np.sort(found[found > enough[:, None]])[::-1][: len(most)] == pytest.approx(most, rel=1e-9)
