"""Envy over the window of a replay: by hand, split into what contracts force and the rest, and looking changes nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from evenhand import ClusterState, Policy
from evenhand.replay import EnvyWatch, ReplayResult, Scheduler, replay
from evenhand.replay.metrics import WindowEnvy
from evenhand_models.traces import Trace
from replay.build import HOUR, cluster, job, random_trace, trace


def watched(what: Trace, where: ClusterState, who: Scheduler, **policy: Any) -> tuple[ReplayResult, WindowEnvy]:
    watch = EnvyWatch(HOUR)
    result = replay(what, where, Policy(time_limit_s=0.5, **policy), who, watch=watch)
    found = watch.result()
    assert found is not None
    return result, found


def long(group: str, name: str, gpus: int = 8, **more: Any) -> Any:
    return job(name, group, gpus, 0, 99 * HOUR, **more)


def test_who_waits_while_another_holds_everything_envies_it_by_all_of_its_slice() -> None:
    what = trace(long("A", "a", 16, min_runtime_s=1), long("B", "b", 16, min_runtime_s=1), end_s=10 * HOUR)
    _, found = watched(what, cluster(groups={"A": 1, "B": 1}), Scheduler.FIFO, horizon_s=10**8)
    # A holds 16 all the time, scaled to B's own entitlement that is 16, against B's floor of 8
    assert (found.envious, found.envied, found.pairs) == ("B", "A", 1)
    assert found.worst == pytest.approx(2.0, rel=1e-3)
    assert (found.forced_by_pins, found.worst_ours) == (0.0, found.worst)
    assert (found.looks, found.least_sharing_incentive) == (10, 0.0)


def test_contracts_force_what_no_plan_could_have_changed() -> None:
    what = trace(
        long("A", "a1"), long("A", "a2"), job("b", "B", 16, 1, 99 * HOUR), end_s=2 * HOUR
    )  # fmt: skip
    what = replace(what, jobs=tuple(replace(j, min_runtime_s=8 * HOUR) for j in what.jobs))
    _, found = watched(what, cluster(groups={"A": 1, "B": 1}), Scheduler.EVENHAND)
    assert (found.envious, found.envied) == ("B", "A")
    assert found.worst > 1.9
    assert found.forced_by_pins == pytest.approx(found.worst, rel=1e-6)
    assert found.worst_ours == pytest.approx(0.0, abs=1e-6)


def test_an_even_division_envies_nobody() -> None:
    what = trace(*(long(g, f"{g}{i}", 1) for g in "AB" for i in range(16)), end_s=12 * HOUR)
    _, found = watched(what, cluster(groups={"A": 1, "B": 1}), Scheduler.EVENHAND)
    assert found.worst == 0.0
    assert (found.envious, found.envied, found.pairs) == (None, None, 0)
    assert found.least_sharing_incentive == pytest.approx(1.0)


def test_pairs_that_were_hardly_ever_there_together_are_not_judged() -> None:
    what = trace(
        *(long("A", f"a{i}", 1) for i in range(16)), *(job(f"b{i}", "B", 1, 19 * HOUR + 1, HOUR) for i in range(16)),
        end_s=24 * HOUR,
    )  # fmt: skip
    _, found = watched(what, cluster(groups={"A": 1, "B": 1}), Scheduler.FIFO)
    assert (found.looks, found.pairs) == (24, 0)


def test_nobody_there_nothing_to_report() -> None:
    watch = EnvyWatch.over(30 * 24 * HOUR)
    assert watch.due_s == 6 * HOUR
    replay(trace(end_s=30 * 24 * HOUR), cluster(), watch=watch)
    assert watch.result() is None


@pytest.mark.parametrize("half_life_s", [None, 20_000])
@pytest.mark.parametrize("who", [Scheduler.EVENHAND, Scheduler.TIME_FAIR_SHARE, Scheduler.GAVEL])
def test_looking_changes_nothing(who: Scheduler, half_life_s: int | None) -> None:
    what, where = random_trace(5), cluster(groups={"A": 3, "B": 2, "C": 1})
    policy = Policy(time_limit_s=0.5, half_life_s=half_life_s)
    plain = replay(what, where, policy, who)
    seen = replay(what, where, policy, who, watch=EnvyWatch(700))
    for column in ("first_start_s", "end_s", "preemptions", "done_s"):
        assert np.array_equal(getattr(plain.jobs, column), getattr(seen.jobs, column))
    assert np.array_equal(plain.stays.start_s, seen.stays.start_s)
