"""Each comparator does what it says it models, on cases followed by hand."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import evenhand.replay.schedulers as room
from evenhand import Policy
from evenhand.replay import Scheduler
from replay.build import HOUR, cluster, ends, job, of, random_trace, run, starts, trace


def test_backfill_starts_who_does_not_delay_the_first_in_line() -> None:
    what = trace(
        job("runs", "A", 8, 0, 4 * HOUR, min_runtime_s=HOUR),  # asks for 4 h
        job("head", "A", 16, 10, HOUR),
        job("short", "A", 4, 20, HOUR, min_runtime_s=60),  # asks for 1 h: done before 4 h
        job("long", "A", 4, 30, HOUR, min_runtime_s=2 * HOUR),  # asks for 8 h: would delay the head
    )
    result = starts(run(what, cluster(), Scheduler.BACKFILL))
    assert result == {"runs": 0, "short": 20, "head": 4 * HOUR, "long": 5 * HOUR}


def test_backfill_serves_the_group_first_that_used_least_for_its_share() -> None:
    what = trace(
        job("a1", "A", 16, 0, HOUR), job("a2", "A", 16, 10, HOUR), job("b1", "B", 16, 20, HOUR),
        job("a3", "A", 16, 30, HOUR), job("b2", "B", 16, 40, HOUR),
    )  # fmt: skip
    result = starts(run(what, cluster(groups={"A": 1, "B": 1}), Scheduler.BACKFILL))
    assert sorted(result, key=lambda name: result[name]) == ["a1", "b1", "a2", "b2", "a3"]


def test_static_quotas_leave_gpus_idle_that_their_owner_does_not_use() -> None:
    what = trace(job("a", "A", 8, 0, 100), job("b1", "B", 4, 0, 100), job("b2", "B", 8, 0, 100))
    result = starts(run(what, cluster(groups={"A": 1, "B": 1}), Scheduler.STATIC_QUOTA))
    assert result == {"a": 0, "b1": 0, "b2": 100}


def test_who_has_had_least_goes_first_and_who_had_more_makes_way() -> None:
    what = trace(job("old", "A", 16, 0, 5 * HOUR), job("new", "A", 16, HOUR, 600))
    result = run(what, cluster(), Scheduler.LEAST_ATTAINED)
    assert starts(result)["new"] == HOUR
    assert of(result, "preemptions", "old") == 1
    assert of(result, "lost_gpu_s", "old") == 0  # it saves when it is stopped
    stuck = run(
        trace(job("old", "A", 16, 0, 5 * HOUR, resumable=False), what.jobs[1]), cluster(), Scheduler.LEAST_ATTAINED
    )
    assert starts(stuck)["new"] == 5 * HOUR


def test_gavel_lets_jobs_that_do_not_fit_together_take_turns() -> None:
    what = trace(job("a", "A", 16, 0, HOUR), job("b", "B", 16, 0, HOUR), end_s=6 * HOUR)
    result = run(what, cluster(groups={"A": 1, "B": 1}), Scheduler.GAVEL, restart_cost_s=60)
    assert of(result, "starts", "a") >= 3
    assert of(result, "starts", "b") >= 3
    assert abs(ends(result)["a"] - ends(result)["b"]) <= 1_000
    stays = result.stays
    for j, name in enumerate(result.jobs.ids):
        held = int((stays.end_s - stays.start_s)[stays.job == j].sum())
        assert held - of(result, "restart_gpu_s", name) // 16 == HOUR
        assert of(result, "lost_gpu_s", name) == 0


def test_gavel_gives_the_type_to_whom_it_helps_more() -> None:
    what = trace(
        job("same", "A", 8, 0, 10 * HOUR, speedup={"a100": 1.0, "h100": 1.0}),
        job("fast", "B", 8, 0, 10 * HOUR, speedup={"a100": 1.0, "h100": 4.0}), end_s=20 * HOUR,
    )  # fmt: skip
    result = run(what, cluster(types={"a100": 1, "h100": 1}, groups={"A": 1, "B": 1}), Scheduler.GAVEL)
    stays = result.stays
    length = stays.end_s - stays.start_s
    on_fast = length[(stays.job == result.jobs.ids.index("fast")) & (stays.gpu_type == 1)].sum()
    assert on_fast > 0.6 * length[stays.gpu_type == 1].sum()


def test_time_based_fair_share_reclaims_from_who_is_above_it_outside_contracts() -> None:
    what = trace(
        job("a1", "A", 8, 0, 9 * HOUR, min_runtime_s=HOUR), job("a2", "A", 8, 0, 9 * HOUR, min_runtime_s=HOUR),
        job("b", "B", 8, 600, HOUR, min_runtime_s=60),
    )  # fmt: skip
    result = run(what, cluster(groups={"A": 1, "B": 1}), Scheduler.TIME_FAIR_SHARE)
    assert starts(result)["b"] == HOUR
    assert of(result, "preemptions", "a1") + of(result, "preemptions", "a2") == 1


def test_time_based_fair_share_remembers_who_used_much() -> None:
    past = [job(f"p{i}", "A", 8, 0, 2 * HOUR, min_runtime_s=60) for i in range(2)]
    wants = [job(f"{g}{i:02}", g.upper(), 1, 2 * HOUR, 3 * HOUR, min_runtime_s=60) for g in "ab" for i in range(16)]
    result = run(trace(*past, *wants), cluster(groups={"A": 1, "B": 1}), Scheduler.TIME_FAIR_SHARE)
    at_once = [name for name, at in starts(result).items() if at == 2 * HOUR]
    assert sum(name.startswith("b") for name in at_once) == 16  # A has had all of the window: w - u = -1/2


@pytest.mark.parametrize(
    "name", ["arrival_order", "backfill", "static_quota", "least_attained", "gavel", "time_fair_share"]
)
def test_a_comparator_is_a_page_and_says_what_it_models(name: str) -> None:
    text = (Path(room.__path__[0]) / f"{name}.py").read_text()
    assert len(text.splitlines()) <= 160
    deciders = [n for n in ast.parse(text).body if isinstance(n, ast.ClassDef)]
    assert all(len(ast.get_docstring(one) or "") > 100 for one in deciders)


@pytest.mark.parametrize("who", [s for s in Scheduler if s is not Scheduler.EVENHAND])
def test_a_rule_of_the_engine_changes_no_comparator(who: Scheduler) -> None:
    """Debug runs have lines of their own with the engine only."""
    for seed in range(4):
        what, where = random_trace(seed, jobs=80), cluster(groups={"A": 1, "B": 1, "C": 1})
        with_them, without = (run(what, where, who, Policy(debug_contract_s=c)) for c in (600, 0))
        assert (starts(with_them), ends(with_them)) == (starts(without), ends(without))
        assert with_them.policy.debug_contract_s == 600
