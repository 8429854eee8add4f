"""A round with two threads: what fails in one reaches the caller, and none outlives the round."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import sleep
from typing import Any

import pytest
from instances import instance

from evenhand import Policy, allocate, rounds
from evenhand.beside import Beside, first_done
from evenhand.errors import SolverError

TWO = Policy(workers=2)


def broken(error: Exception) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> Any:
        assert threading.current_thread() is not threading.main_thread()
        raise error

    return fail


@pytest.mark.parametrize("step", ["pinned_split", "forced_slack", "pareto_gap"])
@pytest.mark.parametrize("error", [SolverError("no answer"), ZeroDivisionError("a defect")])
def test_what_fails_beside_the_round_reaches_the_caller(
    step: str, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = threading.active_count()
    monkeypatch.setattr(rounds, step, broken(error))
    with pytest.raises(type(error), match=str(error)):
        allocate(instance("small"), TWO)
    assert threading.active_count() == before


def test_a_round_that_fails_waits_for_what_runs_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []
    real = rounds.pareto_gap

    def slow(*asked: Any) -> object:
        sleep(0.2)
        found = real(*asked)
        ended.append("measured")
        return found

    def fail(*_: object) -> None:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(rounds, "pareto_gap", slow)
    monkeypatch.setattr(rounds, "formulate", fail)
    before = threading.active_count()
    with pytest.raises(ZeroDivisionError, match="a defect"):
        allocate(instance("small"), TWO)
    assert ended == ["measured"]
    assert threading.active_count() == before


@pytest.mark.parametrize("workers", [1, 2])
def test_nothing_runs_beside_what_the_reserve_is_measured_by(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    before, seen = threading.active_count(), []
    real = rounds.prepare

    def watched(*asked: Any) -> object:
        seen.append(threading.active_count())
        return real(*asked)

    monkeypatch.setattr(rounds, "prepare", watched)
    allocate(instance("small"), Policy(workers=workers))
    assert seen == [before]


def test_with_one_thread_every_call_runs_where_it_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    before, seen = threading.active_count(), []
    real = rounds.forced_slack

    def watched(*asked: Any) -> object:
        seen.append((threading.current_thread(), threading.active_count()))
        return real(*asked)

    monkeypatch.setattr(rounds, "forced_slack", watched)
    allocate(instance("small"), Policy(workers=1))
    assert seen == [(threading.main_thread(), before)]


def test_the_earliest_started_of_those_that_have_ended_comes_first() -> None:
    gate = threading.Event()
    with Beside(3) as beside:
        held = beside.start(gate.wait)
        done = [beside.start(lambda k=k: k) for k in range(2)]  # type: ignore[misc]
        for answer in done:
            answer.result()
        assert first_done([held, *done]) is done[0]
        gate.set()
    assert held.done()
