"""Figures of a replay, against what a pencil says."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest

from evenhand.replay import Scheduler, measure
from evenhand.replay.metrics import WindowEnvy, hourly
from evenhand.replay.metrics.incentive import slice_throughput, throughput
from evenhand.replay.metrics.waits import distribution
from replay.build import HOUR, cluster, job, of, random_trace, run, trace

TREE = [
    {"id": "P", "share": 3},
    {"id": "P/a", "parent": "P", "share": 1},
    {"id": "P/b", "parent": "P", "share": 2},
    {"id": "Q", "share": 1},
]


def test_owed_is_demand_or_the_product_of_shares_and_received_what_was_held() -> None:
    what = trace(
        job("x", "P/a", 8, 0, 2 * HOUR), job("y", "P/b", 4, 0, HOUR), job("z", "Q", 4, 0, 2 * HOUR), end_s=2 * HOUR
    )
    result = run(what, cluster(groups=TREE), Scheduler.FIRST_FIT)
    hours = hourly(result)
    rows = {g: i for i, g in enumerate(result.tree.ids)}
    assert hours.demanded[rows["P/a"]].tolist() == [8, 8]
    assert hours.owed[rows["P/a"]].tolist() == [4, 4]  # 16 GPUs x 3/4 x 1/3
    assert hours.owed[rows["P/b"]].tolist() == [4, 0]  # asks for less than its 8
    assert hours.owed[rows["P"]].tolist() == [12, 8]
    assert hours.received[rows["P"]].tolist() == [12, 8]
    assert hours.owed[rows["Q"]].tolist() == [4, 4]
    metrics = measure(result)
    assert metrics.level(0).over_period == 1.0
    assert metrics.level(1).in_hour == 1.0
    assert metrics.occupancy == (16 + 12) / 32
    assert metrics.unallocated_share == 0.0


def test_being_paid_back_later_counts_over_the_period_and_not_in_the_hour() -> None:
    what = trace(job("b1", "B", 16, 0, HOUR), job("a1", "A", 16, 0, HOUR), end_s=2 * HOUR)
    result = run(what, cluster(groups={"A": 1, "B": 1}), Scheduler.FIFO)  # a1 first, then b1
    level = measure(result).level(0)
    assert level.over_period == 1.0  # A: owed 8 (its demand ends), received 16; B: owed 16, received 16
    assert level.in_hour == pytest.approx((8 + 0 + 8) / 24)
    assert [g.in_hour for g in level.groups] == [1.0, 0.5]
    assert level.worst_in_hour == 0.5
    assert level.at_least(0.97) == 2


def test_waits_are_counted_by_kind_and_size_with_those_that_never_started() -> None:
    what = trace(
        job("a", "A", 16, 0, 2 * HOUR, kind="train"), job("b", "A", 1, 600, 60, kind="debug"),
        job("c", "A", 1, 1_200, 60, kind="debug"), end_s=HOUR,
    )  # fmt: skip
    metrics = measure(run(what, cluster(), Scheduler.FIFO))
    debug = metrics.wait("debug")
    assert debug is not None
    assert debug.never_started == 2
    assert (debug.first_wait_s.p50, debug.first_wait_s.p90) == (2_400, 3_000)
    assert metrics.wait("nothing") is None
    by_size = {w.name: w.first_wait_s.count for w in metrics.waits_by_size}
    assert by_size == {"1": 2, "2-4": 0, "5-8": 0, "9-32": 1, "33-127": 0, ">=128": 0}


def test_percentiles_are_values_that_occurred() -> None:
    found = distribution(np.arange(1, 101))
    assert (found.p50, found.p90, found.p99, found.most) == (50, 90, 99, 100)
    assert distribution(np.array([], dtype=np.int64)).p50 is None


def test_completion_and_slowdown_count_the_wait() -> None:
    what = trace(job("a", "A", 16, 0, 1_000), job("b", "A", 16, 0, 500))
    metrics = measure(run(what, cluster(), Scheduler.FIFO))
    assert metrics.completion_s.mean == (1_000 + 1_500) / 2
    assert metrics.slowdown.most == 3.0


def test_throughput_is_work_done_and_kept_at_true_speed() -> None:
    speeds = {"a100": 1.0, "h100": 2.0}
    what = trace(
        job("a", "A", 8, 0, 2 * HOUR, speedup=speeds), job("b", "A", 8, 0, HOUR // 4, speedup=speeds),
        job("c", "A", 8, 0, 2 * HOUR, speedup=speeds), end_s=HOUR,
    )  # fmt: skip
    result = run(what, cluster(types={"a100": 1, "h100": 1}, groups={"A": 1}), Scheduler.FIFO)
    # a takes the H100s for an hour; b a half hour on A100s at half speed; c another half hour there
    assert result.jobs.done_s.tolist() == [HOUR, HOUR // 4, HOUR // 4]
    metrics = measure(result)
    assert metrics.work_gpu_hours == 8 * 1.5
    assert metrics.throughput == 0.75


def test_work_that_has_to_be_done_again_is_no_throughput() -> None:
    what = trace(
        job("old", "A", 16, 0, 4 * HOUR, min_runtime_s=0, resumable=True), job("new", "B", 16, HOUR + 600, HOUR),
        end_s=3 * HOUR,
    )  # fmt: skip
    result = run(what, cluster(groups={"A": 1, "B": 1}), Scheduler.EVENHAND, checkpoint_interval_s=1_800)
    # stopped ten minutes after a checkpoint; back after the other with 300 s of restart
    assert of(result, "lost_gpu_s", "old") == 16 * 600
    assert of(result, "done_s", "old") == HOUR + (3 * HOUR - 2 * HOUR - 600 - 300)
    assert of(result, "done_s", "new") == HOUR


def test_sharing_incentive_compares_with_the_slice_of_every_type() -> None:
    speeds = {"a100": 1.0, "h100": 2.0}
    what = trace(
        job("a", "A", 8, 0, 9 * HOUR, speedup=speeds), job("b", "B", 8, 0, 9 * HOUR, speedup=speeds), end_s=HOUR
    )
    where = cluster(types={"a100": 1, "h100": 1}, groups={"A": 1, "B": 1})
    result = run(what, where, Scheduler.FIRST_FIT)
    assert slice_throughput(result).tolist() == [[6.0], [6.0]]  # 4 H100s at 1 and 4 A100s at a half
    assert throughput(result).tolist() == [[8.0], [4.0]]
    incentive = measure(result).sharing_incentive
    assert incentive.kept_hours == 0.5
    assert incentive.by_hour == (10 / 12,)


def test_unallocated_use_is_occupancy_and_nobodys_delivery() -> None:
    what = trace(job("u", "A", 16, 0, 9 * HOUR, min_runtime_s=0), end_s=HOUR)
    metrics = measure(run(what, cluster(), Scheduler.FIRST_FIT))
    assert metrics.occupancy == metrics.unallocated_share == 1.0
    assert metrics.level(0).over_period is None


def test_json_holds_all_of_it_and_a_clock_only_where_given() -> None:
    result = run(random_trace(2, jobs=20), cluster(groups={"A": 1, "B": 1, "C": 1}), Scheduler.FIRST_FIT)
    plain = json.loads(measure(result).to_json())
    assert plain["seconds"] is plain["decisions_per_s"] is plain["window_envy"] is None
    envy = WindowEnvy(0.1, 0.0, 0.1, 3, "A", "B", 24, 0.9)
    timed = json.loads(measure(result, seconds=2.0, window_envy=envy).to_json())
    assert timed["decisions_per_s"] == plain["rounds"]["decisions"] / 2
    assert timed["window_envy"] == asdict(envy)
    assert timed["scheduler"] == "first_fit"
