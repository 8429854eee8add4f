"""docs/mixed-gpus.md, from figures: mean and range over seeds, world by world."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import fmean
from typing import Any

from mixed_worlds import LONGEST_S, MODELS_OF_A_GROUP, SLICES

Row = dict[str, Any]
COLUMNS = (
    "who decides",
    "throughput",
    "occupancy",
    "mean JCT, h",
    "p90 JCT, h",
    "lost, %",
    "slices",
    "least SI",
    "envy",
)
FIGURES: tuple[tuple[str, float, int], ...] = (
    ("throughput", 1.0, 3), ("occupancy", 1.0, 3), ("mean_jct_s", 1 / 3_600, 1), ("p90_jct_s", 1 / 3_600, 1),
    ("lost_share", 100.0, 1), ("slices_delivered", 1.0, 2), ("least_sharing_incentive", 1.0, 2), ("window_envy", 1.0, 2),
)  # fmt: skip
"""Keys, factors to the unit of the column, decimals."""
HEAD = """# Mixed GPUs: objectives beside Gavel's rotation and an equal split

Made by `python benchmarks/replay/mixed.py`; do not edit. Whole weeks are not replayed: each world is {slices}. Its
jobs come for that long, all that are over after ten times as long count. Gangs above {largest} GPUs are left out, run
times are cut at {longest} h.

What the traces do not say is made up from a seed, beside which days and (Venus) which jobs: every group works on
{models} of Gavel's seven models, and a job's speedups are those that Gavel measured for one of its group's models, at
the largest measured gang that is not larger. Recorded run times are taken as those on the job's best type. Philly's
groups are its three virtual clusters with shares as the sizes they had (1:4:2); Venus names none: four teams with
equal shares, jobs dealt at random. Equal numbers of GPUs of each type (k80 and v100; p100 too), so many that jobs ask
for {demand:g} times what is there if every GPU were a job's best type; charge rates follow mean speedups. Every
restart costs 30 s, progress is saved every 300 s. Full rounds every
hour (`full_round_limit_s` 0.1).

- *throughput*: GPUs held, each at the speed its job has on it over that on its best type, per GPU there, while jobs
  come. 1 is every GPU always with a job that likes it best.
- *JCT*: submission to completion, all jobs alike: most are short, so the mean says how soon short jobs get in.
- *lost*: work done again, and restarts, of GPU-hours held. *slices*: hour by hour, throughput of groups, counted up to
  that of their slices by shares, over that of those slices.
- *least SI*: throughput over that of its *entitled* slices, of the group that has least of it; entitlements pay back what
  was used in a week, so who had little is for a while entitled to nearly everything, and gangs and contracts keep it from
  that at once. *envy*: of the worst pair over the period (window envy), as a share of its entitled slices.
- `envy_free`, `nash`, `max_min`: the engine under that objective. `gavel`: max-min over jobs by rounds of 360 s,
  everybody resumable rotates. `equal split`: every group its share of the GPUs and nothing more.

Mean over seeds, least to most in brackets.
"""

SAID = """Worlds are small (two or three nodes of a type), and gangs of eight take a whole node: what separates the
engine's objectives there is less than what separates seeds. Against Gavel's rotation the engine gets more work done,
mostly by leaving fewer GPUs idle; its mean JCT is longer where many long jobs hold GPUs inside contracts of an hour (Venus):
rotation gives every job its turn within minutes, the engine lets who came later wait.
"""


def page(rows: list[Row], demand: float) -> str:
    """The document's text."""
    lengths = "; ".join(
        f"{s.days} days of {s.name.capitalize()}" + ("" if s.part == 1 else f", {100 * s.part:.0f} % of its jobs")
        for s in SLICES.values()
    )
    head = HEAD.format(
        slices=lengths, largest=max(s.largest for s in SLICES.values()), longest=LONGEST_S // 3_600,
        models=MODELS_OF_A_GROUP, demand=demand,
    )  # fmt: skip
    lines = [head]
    for trace, types in dict.fromkeys((r["trace"], r["types"]) for r in rows):
        own = [r for r in rows if (r["trace"], r["types"]) == (trace, types)]
        lines += [f"## {trace.capitalize()}, {types}", "", _sizes(own), "", *_table(COLUMNS, _cells(own)), ""]
    lines += ["## Against each other", "", *_against(rows), "", SAID, *_credits(rows)]
    return "\n".join(lines) + "\n"


def _sizes(rows: list[Row]) -> str:
    seeds = {r["seed"]: (r["jobs"], sum(r["gpus"].values())) for r in rows}
    told = ", ".join(f"{jobs:,} jobs on {gpus} GPUs" for jobs, gpus in seeds.values())
    return f"{len(seeds)} seeds: {told}."


def _cells(rows: list[Row]) -> Iterable[tuple[str, ...]]:
    for who in dict.fromkeys(r["who"] for r in rows):
        own = [r for r in rows if r["who"] == who]
        left = sum(r["unfinished"] for r in own)
        told = [_spread([r[key] * factor for r in own], digits) for key, factor, digits in FIGURES]
        yield (f"`{who}`" + (f" ({left} not over)" if left else ""), *told)


def _spread(values: list[float], digits: int) -> str:
    return f"{fmean(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def _against(rows: list[Row]) -> Iterator[str]:
    """Ratios paired by world and seed: mean, and range over all of them."""
    yield "Ratios in the same world with the same seed, over all of them; above 1: more throughput, longer JCT."
    yield ""
    pairs = (("envy_free", "max_min"), ("nash", "max_min"), ("envy_free", "gavel"), ("nash", "gavel"),
             ("envy_free", "equal split"), ("nash", "equal split"))  # fmt: skip
    cells = [
        (f"`{one}` / `{other}`", _ratio(rows, one, other, "throughput"), _ratio(rows, one, other, "mean_jct_s"))
        for one, other in pairs
    ]
    yield from _table(("", "throughput", "mean JCT"), cells)


def _ratio(rows: list[Row], one: str, other: str, key: str) -> str:
    base = {_world(r): r[key] for r in rows if r["who"] == other}
    return _spread([r[key] / base[_world(r)] for r in rows if r["who"] == one], 3)


def _world(row: Row) -> tuple[str, str, int]:
    return row["trace"], row["types"], row["seed"]


def _credits(rows: list[Row]) -> Iterator[str]:
    yield "Data, changed as said above: " + " ".join(
        f"{credit.rstrip('.')}." for credit in dict.fromkeys(r["credit"] for r in rows)
    )
    yield "Speedups: Gavel (OSDI'20), MIT, Copyright (c) 2020 Stanford Future Data Systems."


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    return ["| " + " | ".join(line) + " |" for line in (head, ("---",) * len(head), *rows)]
