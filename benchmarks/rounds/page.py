"""docs/performance.md, from figures: tables by size and contention, and time and gap against size."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

from gavel import section

Row = dict[str, Any]
HEAD = """# Performance

Made by `python benchmarks/rounds/figures.py --doc docs/performance.md`; do not edit. Rounds are made up
(`benchmarks/rounds/generate.py`): nodes of 8 GPUs of three types, 5 % of nodes damaged, 60 % of the GPUs held, half of that
protected. JSON text in, audited plan as JSON text out, one core, **CPU seconds** (also the clock of the time limit, so that
a shared machine does not decide). The limit is that of the decision; reading the JSON text comes before it. *2 workers*:
`workers` 2, `deterministic: false`, wall seconds on two cores.

- *Loose*: `fair_share` targets, demand 6 x supply, groups side by side: their targets leave 13 to 18 % of the throughput free.
- *Three levels*: the same below projects and programmes. What those are owed is counted in charged GPUs and sums to all
  there are, so nothing is free: what contracts pin for one is what another is short of.
- *Tight*: `envy_free` targets, demand 2.5 x supply, three levels.
- *Warm*: a loose round a minute after another, decided by the same `Session`, 1 % of the jobs ended and as many new.

`gap` is proven: (bound - objective) / target throughput, in percent. A GPU that works for the lookahead counts 1 in the
objective; one that a group is short of 1 to 300 at a leaf, by how far its usage has fallen behind, and two or four
times that at the levels above (docs/model.md, O). With three levels the bound itself is 0.8 % above the best plan known at
M (HiGHS, 100 s).

HiGHS on XL loose with three levels, seed 0, the same program without envy rows: 13,042 after 123 CPU s, its own bound 13,613;
evenhand's search passed that after 1.1 CPU s and had 13,486 after 1.2 (by hand, a build before).

From M on the limit ends the search before the proof. What peers are given has no envy rows: only evenhand's own figure
pays for envy, so a gap of theirs can be below zero. *: measured one build before, as are peers.
"""
COLUMNS = (
    "size",
    "nodes / jobs",
    "contention",
    "seeds",
    "limit s",
    "CPU s",
    "worst",
    "gap %",
    "worst",
    "optimal",
    "MB",
)


def page(rows: list[Row], sizes: dict[str, tuple[int, int]], picture: str) -> str:
    """The document's text."""
    lines = [HEAD, f"![CPU seconds and gap against size]({picture})", "", *_table(COLUMNS, _cells(rows, sizes))]
    peers = [row for row in rows if row.get("peers")]
    if peers:
        lines += [
            "",
            "## Peers",
            "",
            "The same program (without envy rows), each with its own limit, one thread; gap to evenhand's bound.",
            "",
        ]
        lines += _table(("size", "contention", "seed", "who", "CPU s", "gap %"), _peers(peers))
    return "\n".join([*lines, *section(rows)]) + "\n"


def _cells(rows: list[Row], sizes: dict[str, tuple[int, int]]) -> Iterable[tuple[str, ...]]:
    for size, corner in dict.fromkeys((r["size"], r["corner"]) for r in rows):
        cell = [r for r in rows if (r["size"], r["corner"]) == (size, corner) and "error" not in r]
        if not cell:
            continue
        gaps = [float("inf") if r["gap"] is None else 100 * r["gap"] for r in cell]
        cpu = [r["cpu_s"] for r in cell]
        nodes, jobs = sizes[size]
        optimal = sum(r["status"] == "optimal" for r in cell)
        mark = "*" if any(r.get("before") for r in cell) else ""
        yield (
            size, f"{nodes:,} / {jobs:,}", corner + mark, str(len(cell)), f"{cell[0]['limit_s']:g}",
            f"{median(cpu):.2f}", f"{max(cpu):.2f}", f"{median(gaps):.3g}", f"{max(gaps):.3g}", str(optimal),
            str(max(r["memory_mb"] for r in cell)),
        )  # fmt: skip


def _peers(rows: list[Row]) -> Iterable[tuple[str, ...]]:
    for row in rows:
        own = {"name": "evenhand", "value": row["objective"], "cpu_s": row["cpu_s"]}
        for peer in (own, *row["peers"]):
            value, bound = peer["value"], row["bound"]
            gap = "-" if value is None or bound is None else f"{100 * (bound - value) / row['target_throughput']:.3g}"
            yield row["size"], row["corner"], str(row["seed"]), peer["name"], f"{peer['cpu_s']:.2f}", gap


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    return ["| " + " | ".join(line) + " |" for line in (head, ("---",) * len(head), *rows)]


def draw(rows: list[Row], sizes: dict[str, tuple[int, int]], path: Path) -> None:
    """Medians against the number of jobs, on log axes, as an SVG of equal bytes for equal figures."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "evenhand"
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
    for corner in dict.fromkeys(r["corner"] for r in rows):
        good = [r for r in rows if r["corner"] == corner and "error" not in r and r["gap"] is not None]
        jobs = sorted({sizes[r["size"]][1] for r in good})
        cells = [[r for r in good if sizes[r["size"]][1] == n] for n in jobs]
        left.plot(jobs, [median(r["cpu_s"] for r in cell) for cell in cells], marker="o", label=corner)
        right.plot(jobs, [max(1e-3, 100 * median(r["gap"] for r in cell)) for cell in cells], marker="o", label=corner)
    for axes, what in ((left, "CPU seconds"), (right, "gap, % of target throughput")):
        axes.set(xscale="log", yscale="log", xlabel="jobs", ylabel=what)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
