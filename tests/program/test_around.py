"""Neighbourhoods beside one another: put together they are worth what is said, and threads change nothing."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from dataclasses import replace
from time import perf_counter

import numpy as np
import pytest
from instances import instance
from program.searched import decomposed, generated
from strategies.sweeps import case

import evenhand.deadline
from evenhand import Plan, Policy, allocate
from evenhand.deadline import Deadline
from evenhand.program import around
from evenhand.program.around import Around, fits
from evenhand.program.budget import Budget
from evenhand.program.decompose import Generation
from evenhand.program.neighbourhoods import Neighbourhoods
from evenhand.program.variables import Program
from evenhand.shapes import BoolArray, IntArray
from evenhand.solvers import cp_sat
from evenhand.solvers.linear_model import Arrays
from evenhand.solvers.restricted import restricted
from evenhand_models import canonical_bytes

ENOUGH = cp_sat.Effort(1.0, 60.0)


def budget_of(program: Program, policy: Policy) -> Budget:
    return Budget(replace(program, snapshot=replace(program.snapshot, policy=policy)), Deadline(3_600.0), 0.0)


def any_point(arrays: Arrays) -> IntArray:
    """A feasible point on which much can be improved."""
    found = cp_sat.solve(replace(arrays, cost=np.zeros_like(arrays.cost)), ENOUGH, {})
    assert found.x is not None
    return found.x


def best_near(arrays: Arrays, near: Neighbourhoods, x: IntArray, busy: list[BoolArray]) -> IntArray | None:
    """The best point of a neighbourhood of x; the groups that it frees are added to the busy ones."""
    freed = near.draw(x, busy)
    if freed is None:
        return None
    assert not any((freed.blocks & others).any() for others in busy)
    busy.append(freed.blocks)
    part = restricted(arrays, x, freed.free, (freed.lower, freed.upper))
    found = cp_sat.solve(part.arrays, ENOUGH, {}, may_fail=True)
    return None if found.x is None else part.whole(found.x)


def put_together(program: Program, arrays: Arrays, generation: Generation, base: IntArray, seed: int) -> str:
    """Two neighbourhoods of one point, the second moved onto the first: how much of it goes."""
    near = Neighbourhoods(generation, seed)
    near._freed = 4.0
    busy: list[BoolArray] = []
    x, y = best_near(arrays, near, base, busy), best_near(arrays, near, base, busy)
    if x is None or y is None:
        return "there are no two"
    worth = arrays.objective
    both = Around(arrays, near, budget_of(program, Policy())).moved(x, base, y)
    assert fits(arrays, both)
    if both is x:
        return "nothing"
    assert worth(both) > worth(x)
    if fits(arrays, x + (y - base)):
        assert worth(both) == worth(x) + worth(y) - worth(base)
        return "all"
    ways = generation.shared.blocks.column
    low, high = np.minimum(x, x + (y - base))[ways], np.maximum(x, x + (y - base))[ways]
    assert ((low <= both[ways]) & (both[ways] <= high)).all()
    return "a part"


def test_two_neighbourhoods_put_together_keep_every_row_and_are_worth_what_both_gain() -> None:
    seen: Counter[str] = Counter()
    for seed in range(60):
        program, arrays, generation, _ = generated(*case(seed, "medium"))
        seen[put_together(program, arrays, generation, any_point(arrays), seed)] += 1
    for seed in range(20):
        program, arrays, generation, _ = decomposed("medium")
        seen[put_together(program, arrays, generation, any_point(arrays), seed)] += 1
    print(dict(seen))
    assert min(seen[word] for word in ("nothing", "all", "a part")) >= 5, seen


@pytest.fixture
def slow_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time passes at a tenth of its speed: only work that is counted ends a search."""
    monkeypatch.setattr(evenhand.deadline, "perf_counter", lambda: perf_counter() / 10)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The threads in which neighbourhoods are decided from now on, one entry for each neighbourhood; by place in their pool."""
    names: list[str] = []
    real = Around._decide

    def decide(*asked: object) -> object:
        names.append(threading.current_thread().name.rpartition("_")[2])
        return real(*asked)  # type: ignore[arg-type]

    monkeypatch.setattr(Around, "_decide", decide)
    return names


@pytest.mark.usefixtures("slow_clock")
@pytest.mark.parametrize(("name", "limit_s"), [("medium", 2.0), ("venus_day30", 1.0)])
def test_where_work_is_counted_threads_change_no_byte(
    name: str, limit_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = counted(monkeypatch)
    plans: list[Plan] = []
    for workers in (1, 2, 8):
        plans.append(allocate(instance(name), Policy(time_limit_s=limit_s, workers=workers)))
        assert (len(set(names)) > 1) == (workers > 1 and name != "venus_day30"), (
            "one group is never freed twice at once"
        )
        assert len(names) >= 10
        names.clear()
    assert not any(plan.certificate.cut_by_time for plan in plans)
    same = [canonical_bytes(plan.model_copy(update={"policy": plans[0].policy})) for plan in plans]
    assert same[1:] == same[:-1]


@pytest.mark.parametrize("seed", range(12))
def test_where_work_is_counted_threads_change_no_point(seed: int) -> None:
    program, arrays, generation, _ = generated(*case(seed, "medium"))
    start = any_point(arrays)
    found = []
    for workers in (1, 2, 8):
        budget = budget_of(program, Policy(workers=workers, time_limit_s=1.0))
        found.append(Around(arrays, Neighbourhoods(generation, seed), budget).improve(start, np.inf, 0.0, 15))
        assert fits(arrays, found[-1])
    assert arrays.objective(found[0]) > arrays.objective(start)
    assert (found[0] == found[1]).all()
    assert (found[0] == found[2]).all()


@pytest.mark.usefixtures("slow_clock")
@pytest.mark.parametrize("workers", [1, 2, 5])
def test_where_the_clock_decides_as_many_are_under_way_as_there_are_threads_and_the_plan_is_right(
    workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    under_way: list[int] = []
    real = Around._add_trials

    def add(self: Around, trials: list[object], *asked: object) -> object:
        found = real(self, trials, *asked)  # type: ignore[arg-type]
        under_way.append(len(trials))
        return found

    monkeypatch.setattr(Around, "_add_trials", add)
    plan = allocate(instance("medium"), Policy(time_limit_s=0.3, workers=workers, deterministic=False))
    assert plan.certificate.status != "fallback", plan.warnings
    assert max(under_way) == workers


@pytest.mark.parametrize("deterministic", [True, False])
def test_what_goes_wrong_in_a_thread_reaches_the_caller_and_no_thread_stays(
    deterministic: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, calls = threading.active_count(), []

    def broken(*asked: object) -> object:
        calls.append(threading.current_thread())
        if len(calls) == 3:
            raise ZeroDivisionError("the third neighbourhood")
        return restricted(*asked)  # type: ignore[arg-type]

    monkeypatch.setattr(around, "restricted", broken)
    with pytest.raises(ZeroDivisionError, match="third"):
        allocate(instance("medium"), Policy(time_limit_s=5.0, workers=2, deterministic=deterministic))
    assert threading.main_thread() not in calls[:2]
    assert threading.active_count() == before


def test_work_lent_to_calls_under_way_is_not_there_for_others_until_they_have_used_less() -> None:
    program, *_ = decomposed("medium")
    budget = budget_of(program, Policy(time_limit_s=1.0))
    whole = budget.rest().deterministic_s
    one, two = budget.lend(0.6 * whole), budget.lend(0.6 * whole)
    assert two.deterministic_s == pytest.approx(0.4 * whole)
    assert budget.exhausted
    budget.settle(one, cp_sat.Solution(None, 0, None, False, False, 0.1 * whole))
    budget.settle(two, cp_sat.Solution(None, 0, None, False, False, 0.2 * whole))
    assert budget.rest().deterministic_s == pytest.approx(0.7 * whole)


def test_python_still_hears_an_interrupt_after_a_solve() -> None:
    """A solver that catches it leaves the signal to the system, which ends the process without a word."""
    asked = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # who starts the tests may ignore it
from evenhand.solvers import cp_sat
from evenhand.solvers.linear_model import LinearModel
model = LinearModel()
model.column(0, 5, 1, lambda: "x")
cp_sat.solve(model.arrays(), cp_sat.Effort(1.0, 10.0), {})
try:
    signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    print("heard")
"""
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "heard"), done.stderr
