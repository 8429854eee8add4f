"""What is made by array is what would be made one by one: prices to the last bit, columns, rows, names."""

from __future__ import annotations

import numpy as np
import pytest
from strategies.sweeps import case

from evenhand.entitlement import entitle
from evenhand.fairness.target import fair_target
from evenhand.goals import worth_of
from evenhand.outcome import STOPS, Decision, Move
from evenhand.owed_gangs import owed_gangs
from evenhand.program.formulate import formulate
from evenhand.program.prices import SCALE, Prices, Worth, Worths, scaled
from evenhand.program.sites import may_move, movable
from evenhand.program.variables import Program, spans
from evenhand.snapshot import Snapshot, take_snapshot
from evenhand.solvers.linear_model import FREE, LinearModel

SEEDS = range(12)


def program_of(seed: int, profile: str = "small") -> Program:
    snapshot = take_snapshot(*case(seed, profile))
    entitled = entitle(snapshot)
    owed = owed_gangs(snapshot, entitled)
    return formulate(snapshot, entitled, fair_target(snapshot, entitled), owed)[0]


def one_by_one(worths: Worths) -> list[Worth]:
    return [Worth(*map(float, three)) for three in zip(worths.order, worths.work, worths.change, strict=True)]


@pytest.mark.parametrize("seed", SEEDS)
def test_prices_by_array_are_those_of_single_jobs_to_the_last_bit(seed: int) -> None:
    s: Snapshot = take_snapshot(*case(seed, "medium"))
    prices = Prices(s)
    runs = np.flatnonzero(s.running & s.live)
    assert one_by_one(prices.all_stop(runs)) == [prices.stops(j) for j in runs.tolist()]
    assert one_by_one(prices.all_move_away(runs)) == [prices.moves_away(j) for j in runs.tolist()]
    assert prices.all_lost(runs).tolist() == [prices.lost(j) for j in runs.tolist()]
    for arrive in (False, True):
        job, kind = np.nonzero(s.fits & s.live[:, None])
        found = one_by_one(prices.all_run(job, kind, s.size[job], np.full(len(job), arrive)))
        pairs = zip(job.tolist(), kind.tolist(), strict=True)
        assert found == [prices.runs(j, t, int(s.size[j]), arrives=arrive) for j, t in pairs]
    assert prices.factors(runs).tolist() == [prices.factor(j) for j in runs.tolist()]
    assert movable(s).tolist() == [may_move(s, j) for j in range(len(s.jobs))]


def test_a_price_too_large_for_whole_numbers_is_said_not_wrapped() -> None:
    assert scaled(np.array([0.5, -1.0])).tolist() == [SCALE // 2, -SCALE]
    for bad in (1e12, -1e12, np.inf, np.nan):
        with pytest.raises(OverflowError):
            scaled(np.array([1.0, bad]))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_move_column_costs_what_its_decision_is_worth_less_what_stopping_is(seed: int) -> None:
    program = program_of(seed)
    s, prices, arrays = program.snapshot, program.prices, program.model.arrays()
    owed = set(program.owed)
    for m in program.columns.moves:
        j = m.unit.job
        if m.move in {Move.REPAIR, Move.MIGRATE} or j in owed:  # worth what the nodes make of it, and more than a move
            continue
        node = int(np.flatnonzero(s.node_type == m.gpu_type)[0])
        worth = worth_of(prices, s, j, Decision(m.move, ((node, m.gpus),), m.gpu_type)).total
        if s.running[j]:
            worth -= worth_of(prices, s, j, STOPS).total
        assert arrays.cost[m.column] == pytest.approx(worth * prices.factor(j) * SCALE, abs=1.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_move_columns_say_the_same_as_arrays_one_by_one_and_by_name(seed: int) -> None:
    program = program_of(seed)
    s, moves = program.snapshot, program.columns.moves
    for at, m in enumerate(moves):
        assert (m.column, m.unit.job) == (moves.column[at], moves.job[at])
        assert (m.gpu_type, m.gpus) == (moves.gpu_type[at], moves.gpus[at])
        assert moves[at] is m
        assert (
            program.model.column_name(m.column) == f"{m.move}[{s.jobs[m.unit.job].id} {m.gpus}x{s.types[m.gpu_type]}]"
        )
        if m.move is Move.KEEP:
            assert m.holds == s.placement[m.unit.job]


def test_columns_and_rows_added_many_at_a_time_are_those_added_singly() -> None:
    singly, at_once = LinearModel(), LinearModel()
    for k in range(100):
        assert singly.column(0, k, -k, lambda k=k: f"c{k}") == k
        assert singly.row([k, 0], [k, 2], -FREE, k, lambda k=k: f"r{k}") == k
    at_once.columns(60, 0, np.arange(60), -np.arange(60), lambda k: f"c{k}")
    assert at_once.columns(40, 0, np.arange(60, 100), -np.arange(60, 100), lambda k: f"c{60 + k}") == 60
    assert at_once.row([0, 0], [0, 2], -FREE, 0, lambda: "r0") == 0
    columns = np.stack([np.arange(1, 100), np.zeros(99, dtype=np.int64)], axis=1).reshape(-1)
    values = np.stack([np.arange(1, 100), np.full(99, 2)], axis=1).reshape(-1)
    at_once.rows(np.full(99, 2), columns, values, -FREE, np.arange(1, 100), lambda k: f"r{k + 1}")
    for name in ("lower", "upper", "cost", "starts", "columns", "values", "row_lower", "row_upper"):
        assert getattr(singly.arrays(), name).tolist() == getattr(at_once.arrays(), name).tolist()
    for model in (singly, at_once):
        assert [model.column_name(k) for k in range(100)] == [f"c{k}" for k in range(100)]
        assert [model.row_name(k) for k in range(100)] == [f"r{k}" for k in range(100)]
    at_once.add_cost(np.array([3, 3]), 5)
    at_once.insist(7)
    assert at_once.arrays().cost[3] == 7
    assert at_once.arrays().lower[7] == at_once.upper_of(np.array([7]))[0] == 7


def test_spans_are_laid_one_after_the_other() -> None:
    assert spans(np.array([5, 0, 9]), np.array([2, 0, 3])).tolist() == [5, 6, 9, 10, 11]
    assert spans(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)).tolist() == []
