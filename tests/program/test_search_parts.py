"""What the search over groups stands on: bounds that bound, regrets that add up, points that keep every row."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from instances import instance
from program.searched import DECIDED, decomposed, generated
from strategies.blocks import random_blocks, worth
from strategies.sweeps import case

from evenhand import Policy, allocate
from evenhand.outcome import ARRIVALS, MOVES
from evenhand.program.constraints import envy
from evenhand.program.envied import EnvyRows
from evenhand.program.master import Master
from evenhand.program.memory import Memory
from evenhand.program.neighbourhoods import Neighbourhoods
from evenhand.program.prices import SCALE
from evenhand.program.pricing import best_plans, good_plans
from evenhand.program.rounding import fitted
from evenhand.solvers import cp_sat
from evenhand.solvers.linear_model import FREE
from evenhand.solvers.restricted import restricted


@pytest.mark.parametrize("name", DECIDED)
def test_what_a_point_loses_in_groups_and_rows_is_what_it_is_worth_less_than_the_bound(name: str | int) -> None:
    _, arrays, generation, x = decomposed(name)
    block, row = generation.regrets().of(x)
    reduced = generation.shared.reduced(generation.center)
    plans = best_plans(
        generation.shared.blocks,
        reduced[generation.shared.blocks.column],
        generation.shared.blocks.short_cost / SCALE,
    )
    bound = generation.shared.bound(generation.center, reduced, plans)
    lost = bound - arrays.objective(x) / SCALE
    assert block.sum() + row.sum() == pytest.approx(lost, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("name", DECIDED)
def test_no_point_is_worth_more_than_the_bound_of_the_generated_plans(name: str | int) -> None:
    _, arrays, generation, x = decomposed(name)
    found = cp_sat.solve(arrays, cp_sat.Effort(1.0, 60.0), dict(enumerate(x.tolist())))
    assert found.x is not None
    assert arrays.objective(found.x) / SCALE <= generation.bound + 1e-6


@pytest.mark.parametrize("name", DECIDED)
def test_a_mix_made_whole_keeps_every_row(name: str | int) -> None:
    program, arrays, generation, _ = decomposed(name)
    mix = generation.mixture()
    assert mix is not None
    moves = program.columns.moves
    arrives = np.isin(moves.kind, [k for k, move in enumerate(MOVES) if move in ARRIVALS])
    ways = np.concatenate([moves.column, np.array([c for _, _, c in program.columns.reserved], dtype=np.int64)])
    y = fitted(arrays, mix, ways, moves.column[arrives], moves.gpus[arrives])
    free = np.ones(len(y), dtype=bool)
    free[ways] = False
    part = restricted(arrays, y, free)
    found = cp_sat.solve(part.arrays, cp_sat.Effort(1.0, 60.0), {}, may_fail=True)
    if found.x is None:
        pytest.fail("the main plans of a mix without arrivals that overfill a row are a point")
    z, activity = part.whole(found.x), arrays.activity(part.whole(found.x))
    assert (z[ways] == y[ways]).all()
    assert (activity <= arrays.row_upper).all()
    assert (activity >= arrays.row_lower).all()


@pytest.mark.parametrize("seed", range(200))
def test_good_plans_are_plans_and_never_better_than_the_best(seed: int) -> None:
    blocks, price, short = random_blocks(Random(seed))
    best = best_plans(blocks, price, short)
    for plan, least in zip(best, good_plans(blocks, price, short), strict=True):
        counts = np.zeros(len(blocks.column), dtype=np.int64)
        counts[least.columns] = least.counts
        first, end = blocks.span(least.block)
        goes = np.bincount(blocks.way_unit, counts, len(blocks.most))
        own = blocks.unit_block == least.block
        assert (goes[own] <= blocks.most[own]).all()
        assert (goes[own] >= blocks.least[own]).all()
        told = worth(blocks, least.block, counts[first:end], price, float(short[least.block]))
        assert least.value == pytest.approx(told)
        assert least.value <= plan.value + 1e-9


def test_neighbourhoods_leave_the_point_inside_and_are_drawn_the_same_twice() -> None:
    _, arrays, generation, x = decomposed("medium")
    first, second = Neighbourhoods(generation, 7), Neighbourhoods(generation, 7)
    for step in range(20):
        one, two = first.draw(x), second.draw(x)
        assert (one.free == two.free).all()
        assert ((one.lower <= x) & (x <= one.upper)).all()
        assert ((arrays.lower <= one.lower) & (one.upper <= arrays.upper)).all()
        assert one.free.sum() > 0
        for near in (first, second):
            near.learn(decided=step % 3 == 0, better=step % 4 == 0)


def test_rows_that_come_in_later_keep_bound_and_plans() -> None:
    program, _, generation, x = generated(*case(2, "small"))
    before = generation.bound
    ways = program.columns.moves.column
    program.model.row(ways.tolist(), [1] * len(ways), -FREE, int(x[ways].sum()), lambda: "no more than now")
    generation.widen(program.model.arrays())
    generation.run(3e-4, lambda: True)
    assert generation.bound <= before
    assert generation.bound >= program.model.arrays().objective(x) / SCALE - 1e-6


@pytest.mark.parametrize("name", DECIDED)
def test_a_master_that_was_widened_is_the_one_that_is_made_anew(name: str | int) -> None:
    state, policy = (instance(name), Policy()) if isinstance(name, str) else case(name, "small")
    program, _, generation, _ = generated(state, policy)
    leaves, excess, random = len(program.target.leaves), {}, Random(3)
    pairs = [(i, k) for i in range(leaves) for k in range(min(4, leaves)) if i != k]
    random.shuffle(pairs)
    half = len(pairs) // 2
    for some in (pairs[:half], pairs[half:]):  # the second time the envied are known already
        envy.add_pairs(program, sorted(some), excess)
        generation.widen(program.model.arrays())
        generation.run(3e-4, lambda: True)
        shared, widened = generation.shared, generation._master
        anew = Master(shared)
        anew.add(widened.plans)
        one, other = widened.solve(), anew.solve()
        assert one is not None
        assert other is not None
        assert one[1].objective == pytest.approx(other[1].objective, rel=1e-9, abs=1e-9)
        parts = widened.of_plans(one[1].x)
        block = np.array([plan.block for plan in widened.plans])
        assert np.bincount(block, parts) == pytest.approx(1.0)
        # At its prices no plan of a block is worth more than those that are mixed.
        owner, row, amount = shared.entries_of(widened.plans)
        value = shared.costs(widened.plans) / SCALE - np.bincount(
            owner, amount * shared.row_unit[row] * one[0][row], len(block)
        )
        most = np.full(shared.blocks.count, -np.inf)
        np.maximum.at(most, block, value)
        mixed = parts > 1e-6
        assert value[mixed] == pytest.approx(most[block[mixed]], rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("solved", [0, 3, 12])
def test_a_master_that_cannot_be_solved_any_more_costs_neither_plan_nor_bound(
    solved: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = Master.solve, []

    def some(master: Master) -> object:
        calls.append(master)
        return real(master) if len(calls) <= solved else None

    monkeypatch.setattr(Master, "solve", some)
    plan = allocate(instance("medium"), Policy(time_limit_s=3.0))
    assert len(calls) > solved
    assert plan.certificate.status != "fallback", plan.warnings
    assert plan.certificate.bound is not None


def test_rows_that_are_there_are_not_recalled_again() -> None:
    program, *_ = generated(instance("medium"), Policy())
    ids, leaves = program.snapshot.tree.ids, program.target.leaves.tolist()
    memory = Memory()
    memory.envied = frozenset({(ids[leaves[0]], ids[leaves[1]]), (ids[leaves[2]], ids[leaves[1]]), ("gone", "too")})
    rows, before = EnvyRows(program, memory), program.model.row_count
    for _ in range(2):
        rows.recall()
        assert rows.count == program.model.row_count - before == 2
