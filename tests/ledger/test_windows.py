"""Windows of any length are the exact sum of the intervals: by days, hours and edges, on a ledger that was migrated too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.config import Config
from cases.states import NOW
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, Engine, delete, select, text, update

import evenhand_api.ledger
from evenhand_api.ledger.clusters import find_cluster, put_cluster
from evenhand_api.ledger.database import writing
from evenhand_api.ledger.instants import SECOND, to_us
from evenhand_api.ledger.rollups import Line, add_cells, cells_of, differences, rebuild
from evenhand_api.ledger.tables import days, intervals, metadata
from evenhand_api.ledger.usage import window_usage
from ledger.test_any_order import CONFIG
from ledger.test_fading import interval

INSTANTS = st.integers(0, 12 * 86_400 * SECOND)
"""Microseconds within twelve days."""
LINES = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from([-3, 1, 8]), INSTANTS, INSTANTS), max_size=12)


def written(connection: Connection, rows: list[dict[str, Any]]) -> None:
    """Write intervals and what sums them up, as settling does."""
    lines = [Line(r["group_id"], "H100", True, r["gpus"], r["rate_m"], r["from_us"], r["to_us"]) for r in rows]
    if rows:
        connection.execute(intervals.insert(), rows)
        add_cells(connection, rows[0]["cluster_id"], cells_of(lines))


def emptied(connection: Connection) -> int:
    for table in reversed(metadata.sorted_tables):
        connection.execute(delete(table))
    put_cluster(connection, "c", CONFIG)
    return find_cluster(connection, "c").id


def plain(rows: list[dict[str, Any]], begin: int, end: int) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in rows:
        lasted = min(row["to_us"], end) - max(row["from_us"], begin)
        if lasted > 0:
            found[row["group_id"]] = found.get(row["group_id"], 0) + row["weight"] * lasted
    return {group: amount for group, amount in sorted(found.items()) if amount}


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(LINES, st.lists(st.tuples(INSTANTS, INSTANTS), min_size=1, max_size=5))
def test_a_window_of_many_days_is_the_sum_of_its_intervals(
    engine: Engine, lines: list[tuple[str, int, int, int]], windows: list[tuple[int, int]]
) -> None:
    with writing(engine) as connection:
        number, now_us = emptied(connection), to_us(NOW)
        rows = []
        for group, gpus, one, other in lines:
            if one != other:
                row = interval(number, group, gpus, now_us + min(one, other), 1)
                rows.append(row | {"to_us": now_us + max(one, other)})
        written(connection, rows[:6])
        written(connection, rows[6:])
        assert differences(connection, number) == []
        for one, other in windows:
            begin, end = now_us + min(one, other), now_us + max(one, other)
            assert window_usage(connection, number, begin, end) == plain(rows, begin, end)
        rebuild(connection, number)
        assert differences(connection, number) == []


def test_a_day_that_is_off_is_named_and_mended(engine: Engine) -> None:
    with writing(engine) as connection:
        number = emptied(connection)
        written(connection, [interval(number, "a", 1, to_us(NOW), 3 * 86_400)])
        connection.execute(update(days).where(days.c.day == to_us(NOW) // (86_400 * SECOND) + 1).values(charge_s=7))
        assert differences(connection, number) == [((to_us(NOW) // (86_400 * SECOND) + 1) * 24, "a", "", True)]
        rebuild(connection, number)
        assert differences(connection, number) == []


def test_a_ledger_of_before_gets_its_days_from_its_hours(engine: Engine) -> None:
    with writing(engine) as connection:
        number = emptied(connection)
        groups = ("a", "b")
        rows = [interval(number, groups[i % 2], 1 + i, to_us(NOW) + i * 7_001 * SECOND, 90_000 + i) for i in range(30)]
        written(connection, rows)
        wanted = sorted(map(tuple, connection.execute(select(days))))
    with engine.begin() as connection:
        config = Config()
        config.set_main_option("script_location", str(Path(evenhand_api.ledger.__file__).parent / "migrations"))
        config.attributes["connection"] = connection
        command.downgrade(config, "0002")
        command.upgrade(config, "head")
    with writing(engine) as connection:
        found = sorted(map(tuple, connection.execute(select(days))))
        assert {(c, d, g, s * SECOND + r) for c, d, g, s, r in found} == {
            (c, d, g, s * SECOND + r) for c, d, g, s, r in wanted
        }
        assert differences(connection, number) == []


COUNT = 10**6
SERIES = {
    "sqlite": "WITH RECURSIVE s(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM s WHERE i + 1 < :count)",
    "postgresql": "WITH s AS (SELECT i FROM generate_series(0, CAST(:count AS INTEGER) - 1) AS i)",
}


@pytest.mark.heavy
def test_case_15_a_million_gpu_seconds_sum_to_the_exact_total(engine: Engine) -> None:
    """Each on its own second, at a rate that is no power of two; the window then takes in 400,000 of them."""
    with writing(engine) as connection:
        number = emptied(connection)
        names = "cluster_id, job, started_us, group_id, gpu_type, gpus, charged, rate_m, weight, from_us, to_us, recorded_us"
        values = ":c, 'j', at, 'a', 'H100', 1, true, 777, 777, at, at + 1000000, 0"
        rows = f"SELECT {values} FROM (SELECT :begin + i * CAST(1000000 AS BIGINT) AS at FROM s) AS t"
        asked = {"count": COUNT, "c": number, "begin": to_us(NOW)}
        series = SERIES[connection.dialect.name]
        insert = f"{series} INSERT INTO intervals ({names}) {rows}"
        connection.execute(text(insert), asked)
        rebuild(connection, number)
        begin = to_us(NOW)
        assert window_usage(connection, number, begin, begin + COUNT * SECOND) == {"a": 777 * COUNT * SECOND}
        part = window_usage(connection, number, begin + SECOND // 2, begin + 400_000 * SECOND)
        assert part == {"a": 777 * (400_000 * SECOND - SECOND // 2)}
