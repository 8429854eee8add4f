"""Usage with a half-life: kept sums say what a plain recomputation says, in whatever order facts and rounds come."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import pytest
from cases.states import NOW
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, Engine, delete, select, update

from evenhand_api.ledger import fading as kept_sums
from evenhand_api.ledger.amounts import PER_GPU_HOUR
from evenhand_api.ledger.clusters import find_cluster, put_cluster
from evenhand_api.ledger.database import writing
from evenhand_api.ledger.fading import add_faded, faded_differences, faded_usage, keep_faded, rebuild_faded
from evenhand_api.ledger.instants import SECOND, to_us
from evenhand_api.ledger.tables import clusters, fading, intervals, metadata
from evenhand_models import Policy
from ledger.clusters import Cluster, ended, started, usage
from ledger.plain import Seen, Told, World, used
from ledger.test_any_order import CONFIG, MINUTES, at, tell, worlds

HALF_LIVES = st.sampled_from([1, 60, 3_600, 86_400])
"""Seconds, from one with which everything is forgotten at once to one that forgets little."""


def plainly(world: World, now: int, half_life_s: int) -> dict[str, float]:
    """Charged GPU-hours at a minute, each minute's use weighed by the integral over it."""
    rate = math.log(2) * 60 / half_life_s

    def weigh(minute: int) -> float:
        return math.exp(-rate * (now - minute - 1)) * -math.expm1(-rate) / rate / 60

    return {group: float(hours) for group, hours in used(world, 0, now, weigh).items()}


def agree(found: dict[str, float], wanted: dict[str, float], gross: float) -> None:
    """Hold amounts against GPU-hours, to the stated tolerance of what was ever added."""
    for group in found.keys() | wanted.keys():
        hours = found.get(group, 0.0) / PER_GPU_HOUR
        assert hours == pytest.approx(wanted.get(group, 0.0), rel=1e-9, abs=1e-15 * gross + 1e-15), group


def fade(connection: Connection, heard: list[Told | Seen], half_life_s: int, start: int) -> int:
    """Tell the ledger everything, keeping the sums after each round from the one of number `start` on."""
    number: int = connection.execute(select(clusters.c.id)).scalar_one()
    rounds = 0
    for one in heard:
        tell(connection, [one])
        if isinstance(one, Seen):
            rounds += 1
            if rounds > start:
                keep_faded(connection, number, to_us(at(one.now)), half_life_s)
                assert faded_differences(connection, number) == []
    return number


def check(engine: Engine, told: tuple[World, list[Told | Seen]], half_life_s: int, start: int, nows: list[int]) -> None:
    world, heard = told
    with writing(engine) as connection:
        for table in reversed(metadata.sorted_tables):
            connection.execute(delete(table))
        put_cluster(connection, "c", CONFIG)
        number = fade(connection, heard, half_life_s, start)
        assert faded_differences(connection, number) == []
        for now in nows:  # instants before the kept one are summed from the intervals alone
            found = faded_usage(connection, number, to_us(at(now)), half_life_s)
            agree(found, plainly(world, now, half_life_s), 10_000.0)


DRAWN = (worlds(), HALF_LIVES, st.integers(0, 3), st.lists(MINUTES, min_size=1, max_size=4))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(*DRAWN)
def test_any_order_of_facts_fades_as_a_plain_recomputation_says(
    engine: Engine, told: tuple[World, list[Told | Seen]], half_life_s: int, start: int, nows: list[int]
) -> None:
    check(engine, told, half_life_s, start, nows)


@pytest.mark.heavy
@settings(max_examples=3_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(*DRAWN)
def test_many_orders_of_facts_fade_as_a_plain_recomputation_says(
    engine: Engine, told: tuple[World, list[Told | Seen]], half_life_s: int, start: int, nows: list[int]
) -> None:
    check(engine, told, half_life_s, start, nows)


SHAPES = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]),
        st.sampled_from([-8, -1, 1, 1, 8, 64]),
        st.integers(-500_000, 0),
        st.integers(1, 400_000),
    ),
    max_size=30,
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(SHAPES, st.sampled_from([60, 3_600, 86_400, 604_800]), st.lists(st.integers(0, 2_000), max_size=8))
def test_sums_kept_on_and_on_stay_within_the_tolerance(
    engine: Engine, shapes: list[tuple[str, int, int, int]], half_life_s: int, waits: list[int]
) -> None:
    """Intervals of days at any second, some taken back, written between rounds that come at any pace."""
    now_us = to_us(NOW)
    with writing(engine) as connection:
        for table in reversed(metadata.sorted_tables):
            connection.execute(delete(table))
        put_cluster(connection, "c", CONFIG)
        number = find_cluster(connection, "c").id
        keep_faded(connection, number, now_us, half_life_s)
        for step, (group, gpus, begin_s, lasted_s) in enumerate(shapes):
            row = interval(number, group, gpus, now_us + begin_s * SECOND, lasted_s)
            connection.execute(intervals.insert(), [row])
            add_faded(connection, number, [row])
            if step < len(waits):
                now_us += waits[step] * SECOND
                keep_faded(connection, number, now_us, half_life_s)
        assert faded_differences(connection, number) == []
        found = faded_usage(connection, number, now_us, half_life_s)
        connection.execute(delete(fading))
        again = faded_usage(connection, number, now_us, half_life_s)
        gross = sum(abs(gpus) * lasted_s / 3_600 for _, gpus, _, lasted_s in shapes)
        agree(found, {group: amount / PER_GPU_HOUR for group, amount in again.items()}, gross * 1e6)


def interval(number: int, group: str, gpus: int, from_us: int, lasted_s: int) -> dict[str, Any]:
    row = {"cluster_id": number, "job": "j", "started_us": from_us, "group_id": group, "gpu_type": "H100"}
    row |= {"gpus": gpus, "charged": True, "rate_m": 1_000, "weight": gpus * 1_000, "recorded_us": 0}
    return row | {"from_us": from_us, "to_us": from_us + lasted_s * SECOND}


def test_a_job_of_many_half_lives_is_charged(cluster: Cluster) -> None:
    cluster.configure("1x8 H100", {"A": 1.0}, half_life_s=60)
    cluster.events(
        started("a", NOW - timedelta(days=300), {"n0": 8}, group="A", min_runtime_s=60),
        ended("a", NOW - timedelta(minutes=1)),
    )
    assert usage(cluster.round(NOW, []))["A"] == pytest.approx(8 / 60 / math.log(2) / 2, rel=1e-12)


def test_a_new_half_life_counts_from_the_next_round_on(cluster: Cluster) -> None:
    def fading_by(hours: int, **policy: Any) -> float:
        cluster.configure("1x8 H100", {"A": 1.0}, **policy)
        k = hours / math.log(2)
        return 8 * k * (2 ** (-2 / hours) - 2 ** (-3 / hours))

    wanted = fading_by(24, half_life_s=24 * 3_600)
    cluster.events(
        started("a", NOW - timedelta(hours=3), {"n0": 8}, group="A", min_runtime_s=60),
        ended("a", NOW - timedelta(hours=2)),
    )
    assert usage(cluster.round(NOW, []))["A"] == pytest.approx(wanted, rel=1e-12)
    wanted = fading_by(1, half_life_s=3_600)
    assert usage(cluster.round(NOW, []))["A"] == pytest.approx(wanted, rel=1e-12)
    cluster.configure("1x8 H100", {"A": 1.0})
    assert usage(cluster.round(NOW, []))["A"] == 8.0
    wanted = fading_by(24, half_life_s=24 * 3_600)
    assert usage(cluster.round(NOW, []))["A"] == pytest.approx(wanted, rel=1e-12)
    said = {g["group"]: g["own_usage_gpu_hours"] for g in cluster.get("/groups")["groups"]}
    assert said["A"] == pytest.approx(wanted, rel=1e-12)


def test_rounds_read_only_what_came_since(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    with writing(engine) as connection:
        put_cluster(connection, "c", CONFIG.model_copy(update={"policy": Policy(half_life_s=86_400)}))
        number = find_cluster(connection, "c").id
        rows = [interval(number, "a", 1, to_us(NOW) - (i + 1) * 60 * SECOND, 60) for i in range(500)]
        connection.execute(intervals.insert(), rows)
        keep_faded(connection, number, to_us(NOW), 86_400)
        read: list[int] = []
        add = kept_sums._add
        monkeypatch.setattr(kept_sums, "_add", lambda batch, *more: (read.append(len(batch)), add(batch, *more)))
        later = [interval(number, "a", 1, to_us(NOW) - 3_600 * SECOND, 3_660), interval(number, "a", 1, to_us(NOW), 60)]
        connection.execute(intervals.insert(), later)
        add_faded(connection, number, later)
        faded_usage(connection, number, to_us(NOW) + 900 * SECOND, 86_400)
        keep_faded(connection, number, to_us(NOW) + 900 * SECOND, 86_400)
        assert read == [2, 2]


def test_kept_sums_that_are_off_are_named_and_mended(engine: Engine) -> None:
    with writing(engine) as connection:
        put_cluster(connection, "c", CONFIG)
        number = find_cluster(connection, "c").id
        connection.execute(intervals.insert(), [interval(number, "a", 1, to_us(NOW) - 3_600 * SECOND, 60)])
        keep_faded(connection, number, to_us(NOW), 3_600)
        assert faded_differences(connection, number) == []
        connection.execute(update(fading).values(amounts='{"a": 1e9, "b": 5.0}'))
        assert faded_differences(connection, number) == ["a", "b"]
        rebuild_faded(connection, number)
        assert faded_differences(connection, number) == []
