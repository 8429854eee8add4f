"""Trades of room between groups: capacity stays as it is, every one gains, and what is said of them is so."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest
from program.searched import decomposed, generated
from strategies.clock import NOW, stamp
from strategies.clusters import state_of
from strategies.sweeps import Unfit, sweep
from strategies.transforms import wire_of

from evenhand import ClusterState, Policy
from evenhand.program.blocks import Blocks
from evenhand.program.decompose import Generation
from evenhand.program.market import market_of
from evenhand.program.prices import SCALE
from evenhand.program.trades import after_trades
from evenhand.program.variables import Program
from evenhand.shapes import IntArray
from evenhand.solvers import cp_sat
from evenhand.solvers.linear_model import Arrays
from evenhand.solvers.restricted import restricted

ENOUGH = cp_sat.Effort(10.0, 60.0)


def thinned(arrays: Arrays, blocks: Blocks, x: IntArray) -> IntArray:
    """A point far from good: the cheapest way to fill the cluster, as the order of columns has it."""
    cost = np.zeros_like(arrays.cost)
    cost[blocks.column] = np.arange(len(blocks.column)) % 7 + 1
    found = cp_sat.solve(Arrays(arrays.lower, arrays.upper, cost, 0, arrays.starts, arrays.columns, arrays.values,
                                arrays.row_lower, arrays.row_upper), ENOUGH, {})  # fmt: skip
    return x if found.x is None else completed(arrays, blocks, found.x)


def completed(arrays: Arrays, blocks: Blocks, x: IntArray) -> IntArray:
    """The best point with the same ways."""
    free = np.ones(len(x), dtype=bool)
    free[blocks.column] = False
    part = restricted(arrays, x, free)
    found = cp_sat.solve(part.arrays, ENOUGH, {})
    assert found.x is not None, "trades left a row of capacity"
    return part.whole(found.x)


def traded(state: ClusterState, policy: Policy) -> str:
    """Trades of a bad point keep every row and gain what they say."""
    try:
        program, arrays, generation, first = generated(state, policy)
    except pytest.fail.Exception as nothing:
        raise Unfit("nothing to decide") from nothing
    blocks = generation.shared.blocks
    x = thinned(arrays, blocks, first)
    free_of_prices = np.zeros(arrays.shape[0])
    y = after_trades(market_of(program, generation.shared, free_of_prices), x, lambda: True)
    if np.array_equal(x, y):
        return "nothing to trade"
    again = after_trades(market_of(program, generation.shared, free_of_prices), x, lambda: True)
    assert np.array_equal(y, again)
    capacity = capacity_rows(program, arrays, blocks)
    assert (arrays.activity(y)[capacity] == arrays.activity(x)[capacity]).all()
    gain = (arrays.objective(completed(arrays, blocks, y)) - arrays.objective(x)) / SCALE
    if not valued(program, arrays, blocks).any():
        assert gain > 0
        return "traded"
    return "traded beside envy or handovers"


def valued(program: Program, arrays: Arrays, blocks: Blocks) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Rows that are worth something by themselves, other than shortfalls: envy, handovers."""
    row = np.repeat(np.arange(arrays.shape[0]), np.diff(arrays.starts))
    found = np.zeros(arrays.shape[0], dtype=bool)
    found[row[blocks.shared_column[arrays.columns] & (arrays.cost[arrays.columns] != 0)]] = True
    found[program.columns.inner_rows] = False
    return found


def capacity_rows(program: Program, arrays: Arrays, blocks: Blocks) -> np.ndarray[Any, np.dtype[np.bool_]]:
    rows = blocks.shared_row & ~valued(program, arrays, blocks)
    rows[program.columns.inner_rows] = False
    rows[program.columns.limit_rows] = False
    return rows


def several_programs(seed: int) -> ClusterState:
    """Programs with two leaves each on nodes of three types, and more waiting jobs than fit, of one or two GPUs."""
    random = Random(seed)
    groups, jobs = [], []
    for p in range(random.randint(2, 4)):
        groups.append({"id": f"p{p}", "share": random.randint(1, 3)})
        for g in range(2):
            name = f"p{p}/g{g}"
            groups.append({"id": name, "share": random.randint(1, 3), "parent": f"p{p}"})
            for i in range(random.randint(6, 20)):
                speeds = {"a": 1.0, "b": random.choice((1.0, 1.5, 2.0)), "c": random.choice((1.0, 2.5))}
                jobs.append(
                    {
                        "id": f"{p}{g}{i:02}", "group": name, "gpus": random.choice((1, 1, 2)), "speedup": speeds,
                        "submitted_at": stamp(NOW - random.choice((60, 9_000))), "contract": {"min_runtime_s": 3600},
                    }
                )  # fmt: skip
    rates = {"a": 1.0, "b": 1.6, "c": 2.2}
    wire: dict[str, Any] = {
        "now": stamp(NOW),
        "gpu_types": [{"name": name, "charge_rate": rate} for name, rate in rates.items()],
        "nodes": [{"name": f"{t}{i}", "gpu_type": t, "gpus": 8} for t in rates for i in range(2)],
        "groups": groups,
        "usage": [{"group": g["id"], "charged_gpu_hours": random.randint(1, 99)} for g in groups if "parent" in g],
        "jobs": jobs,
    }
    return state_of(wire)


@pytest.mark.parametrize("count", [40, pytest.param(400, marks=pytest.mark.heavy)])
def test_trades_gain_and_leave_capacity_as_it_is(count: int) -> None:
    seen = Counter(traded(several_programs(seed), Policy()) for seed in range(count))
    assert seen["traded"] >= count / 2, seen


def test_leaves_with_limits_of_their_own_trade_as_well_and_keep_them() -> None:
    def limited(seed: int) -> ClusterState:
        state = several_programs(seed)
        groups = [g if g.parent is None else g.model_copy(update={"max_gpus": 11 + seed % 3}) for g in state.groups]
        return state.model_copy(update={"groups": tuple(groups)})

    seen = Counter(traded(limited(seed), Policy()) for seed in range(30))
    assert seen["traded"] >= 10, seen


@pytest.mark.parametrize("count", [60, pytest.param(1_000, marks=pytest.mark.heavy)])
def test_whatever_the_state_trades_leave_capacity_as_it_is(count: int) -> None:
    sweep(traded, count, "small", most_unfit=0.2)


def two_programs(wanted: dict[str, dict[str, float]]) -> ClusterState:
    """Two programs with a leaf each; a node of each of two types, and jobs of a GPU with these speedups."""
    groups = [{"id": "p", "share": 1}, {"id": "q", "share": 1}]
    groups += [{"id": "p/a", "share": 1, "parent": "p"}, {"id": "q/b", "share": 1, "parent": "q"}]
    jobs = [
        {
            "id": f"{owner[-1]}{i}", "group": owner, "gpus": 1, "speedup": speeds, "submitted_at": stamp(NOW - 60),
            "contract": {"min_runtime_s": 3600},
        }
        for owner, speeds in wanted.items()
        for i in range(4)
    ]  # fmt: skip
    return state_of(
        {
            "now": stamp(NOW),
            "gpu_types": [{"name": "slow"}, {"name": "fast"}],
            "nodes": [{"name": "n0", "gpu_type": "slow", "gpus": 4}, {"name": "n1", "gpu_type": "fast", "gpus": 4}],
            "groups": groups,
            "jobs": jobs,
        }
    )


def on(generation: Generation, program: Program, of: dict[str, str]) -> IntArray:
    """Every leaf's jobs on one type."""
    s, moves = program.snapshot, program.columns.moves
    x = np.zeros(generation.shared.arrays.shape[1], dtype=np.int64)
    for column, job, kind in zip(moves.column.tolist(), moves.job.tolist(), moves.gpu_type.tolist(), strict=True):
        if s.types[kind] == of[s.tree.ids[int(s.group[job])]]:
            x[column] = 4
    return x


def test_two_groups_on_the_wrong_types_change_them() -> None:
    state = two_programs({"p/a": {"slow": 1.0, "fast": 1.0}, "q/b": {"slow": 0.25, "fast": 1.0}})
    program, arrays, generation, _ = generated(state, Policy())
    x = completed(arrays, generation.shared.blocks, on(generation, program, {"p/a": "fast", "q/b": "slow"}))
    y = after_trades(market_of(program, generation.shared, np.zeros(arrays.shape[0])), x, lambda: True)
    right = on(generation, program, {"p/a": "slow", "q/b": "fast"})
    ways = program.columns.moves.column
    assert np.array_equal(y[ways], right[ways])


def under_one_program(state: ClusterState) -> ClusterState:
    """The same with the second leaf at the top: a row of the tree stands above one leaf alone."""
    wire = wire_of(state)
    wire["groups"] = [g | ({"parent": None} if g["id"] == "q/b" else {}) for g in wire["groups"] if g["id"] != "q"]
    return state_of(wire)


def test_a_group_at_the_top_trades_with_one_below_another() -> None:
    state = under_one_program(two_programs({"p/a": {"slow": 1.0, "fast": 1.0}, "q/b": {"slow": 0.25, "fast": 1.0}}))
    program, arrays, generation, _ = generated(state, Policy())
    assert len(program.columns.inner_rows) == 1
    x = completed(arrays, generation.shared.blocks, on(generation, program, {"p/a": "fast", "q/b": "slow"}))
    y = after_trades(market_of(program, generation.shared, np.zeros(arrays.shape[0])), x, lambda: True)
    right = on(generation, program, {"p/a": "slow", "q/b": "fast"})
    ways = program.columns.moves.column
    assert np.array_equal(y[ways], right[ways])


def test_no_time_no_trade() -> None:
    state = two_programs({"p/a": {"slow": 1.0, "fast": 1.0}, "q/b": {"slow": 0.25, "fast": 1.0}})
    program, arrays, generation, _ = generated(state, Policy())
    x = completed(arrays, generation.shared.blocks, on(generation, program, {"p/a": "fast", "q/b": "slow"}))
    assert np.array_equal(
        after_trades(market_of(program, generation.shared, np.zeros(arrays.shape[0])), x, lambda: False), x
    )


def test_a_round_of_a_thousand_jobs_gains_by_trades() -> None:
    program, arrays, generation, x = decomposed("medium")
    y = after_trades(market_of(program, generation.shared, generation.center), x, lambda: True)
    assert arrays.objective(completed(arrays, generation.shared.blocks, y)) > arrays.objective(x)
