"""How long a window's usage takes in a ledger of ten million intervals.

    python benchmarks/ledger_window.py [--intervals 10000000] [--days 90] [--database-url URL] [--keep FILE]

Fills a ledger in bulk with jobs of 64 groups on three types (lengths from a minute to two days), rolls it up by
hour, checks the answer for a window against a plain sum over all intervals, then measures windows of a week that
end at random instants. Prints one JSON object. The file needs about 350 bytes an interval.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections import defaultdict
from itertools import islice
from pathlib import Path

import numpy as np
from sqlalchemy import Engine, insert, text

from evenhand_api.ledger.clusters import find_cluster, put_cluster
from evenhand_api.ledger.database import migrate, open_engine, reading, writing
from evenhand_api.ledger.instants import HOUR, SECOND, to_us
from evenhand_api.ledger.tables import hours, intervals
from evenhand_api.ledger.usage import window_usage
from evenhand_api.ledger.words import ClusterConfig, instant_of
from evenhand_models import GpuType, Group, Node

TYPES = (("h100", 4_000), ("a100", 2_000), ("t4", 1_000))
GROUPS = tuple(f"g{i:02}" for i in range(64))
BEGIN = to_us(instant_of("2026-01-01T00:00:00Z"))
CHUNK = 200_000
WEEK = 168 * HOUR
MOST_MS = 50.0


def drawn(count: int, days: int, seed: int) -> dict[str, np.ndarray]:
    """Draw intervals: log-uniform lengths, starts at any microsecond."""
    rng = np.random.default_rng(seed)
    length = np.exp(rng.uniform(np.log(60), np.log(172_800), count)) * SECOND
    start = BEGIN + (rng.random(count) * days * 24 * HOUR).astype(np.int64)
    kind = rng.integers(0, 3, count)
    gpus = rng.choice([1, 1, 1, 2, 4, 8], count)
    charged = rng.random(count) < 0.9
    rate = np.array([r for _, r in TYPES])[kind]
    return {
        "from_us": start,
        "to_us": start + length.astype(np.int64),
        "group": rng.integers(0, len(GROUPS), count),
        "kind": kind,
        "gpus": gpus,
        "charged": charged,
        "rate_m": rate,
        "weight": np.where(charged, gpus * rate, 0),
    }


COLUMNS = (
    *("cluster_id", "job", "started_us", "group_id", "gpu_type", "gpus", "charged", "rate_m", "weight"),
    *("from_us", "to_us", "recorded_us"),
)


def fill(engine: Engine, cluster_id: int, table: dict[str, np.ndarray]) -> None:
    """Insert the intervals in bulk, past everything but the database."""
    names = ", ".join(COLUMNS)
    for at in range(0, len(table["from_us"]), CHUNK):
        part = {name: column[at : at + CHUNK].tolist() for name, column in table.items()}
        zipped = zip(*(part[name] for name in table), strict=True)
        rows = [
            (cluster_id, f"j{at + i}", a, GROUPS[g], TYPES[k][0], n, c, r, w, a, b, b)
            for i, (a, b, g, k, n, c, r, w) in enumerate(zipped)
        ]
        with writing(engine) as connection:
            if engine.dialect.name == "sqlite":
                marks = ", ".join("?" * len(COLUMNS))
                connection.exec_driver_sql(f"INSERT INTO intervals ({names}) VALUES ({marks})", rows)
                continue
            with connection.connection.cursor().copy(f"COPY intervals ({names}) FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)


def roll_up(engine: Engine, cluster_id: int, table: dict[str, np.ndarray]) -> None:
    """Sum by hour as `evenhand_api.ledger.rollups` does, a hundred times as fast."""
    first = table["from_us"] // HOUR
    last = (table["to_us"] - 1) // HOUR
    base = int(first.min())
    width = int(last.max()) - base + 1
    size = width * len(GROUPS) * 3 * 2
    charge_s, charge_rest, slope, held = (np.zeros(size, np.int64) for _ in range(4))
    cell = (table["group"] * 3 + table["kind"]) * 2 + table["charged"]
    step = 0
    going = np.arange(len(first))
    while len(going):
        hour = first[going] + step
        begin = hour * HOUR
        lasted = np.minimum(table["to_us"][going], begin + HOUR) - np.maximum(table["from_us"][going], begin)
        where = (hour - base) * (len(GROUPS) * 6) + cell[going]
        weight = table["weight"][going]
        amount = weight * lasted
        np.add.at(charge_s, where, amount // SECOND)
        np.add.at(charge_rest, where, amount % SECOND)
        np.add.at(slope, where, np.where(table["from_us"][going] < begin, weight, 0))
        np.add.at(held, where, table["gpus"][going] * lasted)
        step += 1
        going = going[last[going] - first[going] >= step]
    rows = (
        {
            "cluster_id": cluster_id,
            "hour": base + int(at) // (len(GROUPS) * 6),
            "group_id": GROUPS[int(at) % (len(GROUPS) * 6) // 6],
            "gpu_type": TYPES[int(at) % 6 // 2][0],
            "charged": bool(at % 2),
            "charge_s": int(charge_s[at]),
            "charge_rest": int(charge_rest[at]),
            "slope": int(slope[at]),
            "held_us": int(held[at]),
        }
        for at in np.flatnonzero(held)
    )
    with writing(engine) as connection:
        while part := list(islice(rows, CHUNK)):
            connection.execute(insert(hours), part)


def plain(table: dict[str, np.ndarray], begin: int, end: int) -> dict[str, int]:
    """Sum over all intervals, in Python's integers."""
    lasted = np.minimum(table["to_us"], end) - np.maximum(table["from_us"], begin)
    inside = np.flatnonzero((lasted > 0) & (table["weight"] > 0))
    found: dict[str, int] = defaultdict(int)
    group, weight = table["group"][inside].tolist(), table["weight"][inside].tolist()
    for g, w, t in zip(group, weight, lasted[inside].tolist(), strict=True):
        found[GROUPS[g]] += w * t
    return dict(sorted(found.items()))


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--intervals", type=int, default=10_000_000)
    parser.add_argument("--days", type=int, default=90)
    parser.add_argument("--database-url", default="")
    parser.add_argument("--keep", default="", help="where to keep the SQLite file")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(asked.keep) if asked.keep else Path(folder) / "ledger.sqlite3"
        engine = open_engine(asked.database_url or f"sqlite:///{path}")
        migrate(engine)
        config = ClusterConfig(
            gpu_types=[GpuType(name=t, charge_rate=r / 1_000) for t, r in TYPES],
            nodes=[Node(name="n", gpu_type="h100", gpus=8)],
            groups=[Group(id=g, share=1) for g in GROUPS],
        )
        with writing(engine) as connection:
            put_cluster(connection, "bench", config)
            number = find_cluster(connection, "bench").id
        table = drawn(asked.intervals, asked.days, 1)
        began = time.monotonic()
        with writing(engine) as connection:
            for index in intervals.indexes:
                index.drop(connection)  # made at the end: a tenth of the time
        fill(engine, number, table)
        with writing(engine) as connection:
            for index in intervals.indexes:
                index.create(connection)
        filled_s = time.monotonic() - began
        roll_up(engine, number, table)
        if engine.dialect.name == "postgresql":
            with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.execute(text("VACUUM ANALYZE"))
        rng = random.Random(2)
        latest = BEGIN + asked.days * 24 * HOUR
        took, cpu = [], []
        with reading(engine) as connection:
            end = rng.randrange(BEGIN + WEEK, latest)
            assert window_usage(connection, number, end - WEEK, end) == plain(table, end - WEEK, end)
            for _ in range(100):
                end = rng.randrange(BEGIN + WEEK, latest)
                wall, used = time.perf_counter(), time.process_time()
                window_usage(connection, number, end - WEEK, end)
                took.append(1e3 * (time.perf_counter() - wall))
                cpu.append(1e3 * (time.process_time() - used))
        print(
            json.dumps(
                {
                    "database": engine.dialect.name,
                    "intervals": asked.intervals,
                    "days": asked.days,
                    "groups": len(GROUPS),
                    "filled_s": round(filled_s, 1),
                    "wall_ms": {
                        "median": round(float(np.median(took)), 2),
                        "p99": round(float(np.quantile(took, 0.99)), 2),
                    },
                    "cpu_ms": {
                        "median": round(float(np.median(cpu)), 2),
                        "p99": round(float(np.quantile(cpu, 0.99)), 2),
                    },
                    "within_50_ms": bool(np.median(took) <= MOST_MS),
                }
            )
        )


if __name__ == "__main__":
    main()
