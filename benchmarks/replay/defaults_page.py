"""docs/defaults.md, from stored runs: the month beside its comparators, the defaults moved one by one, a trade-off drawn."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Run = dict[str, Any]
HEAD = """# Defaults, and what they rest on

Made by `python benchmarks/replay/defaults.py --page docs/defaults.md` from `benchmarks/replay/defaults/`; do not edit.

The trace is generated (`ai2_like_s1`, a month of an invented lab): 1,024 GPUs on nodes of eight, 38,708 jobs that ask for
2.5 x what there is, two levels of a budget tree, 15 projects; sweeps have no budget
(`examples/scenarios/unbudgeted_sweeps.yaml`). The cluster is empty at the beginning, and half of the first day passes
before as much is asked for as there is. Checkpoints every 1,800 s, 300 s lost by each start but the first. One seed, one
thread, `full_round_limit_s` 0.2; CPU seconds.

Delivered is counted at projects ([replay.md](replay.md) says what the figures mean); *worst* is the least of any project
over the period, *97 %* how many projects got that much. *Lost* is work done and not kept, and restarts: of what budgeted
jobs held, and of all. *Hands changed*: GPU-hours that go from one project to another from hour to hour, of those held:
how much shares swing. Waits in seconds, to the first start, who never started included.
"""
GOALS = (
    ("delivered over the period", ">= 99 %", lambda r: r["over_period"] >= 0.99, lambda r: _share(r["over_period"])),
    ("delivered in the hour", ">= 95 %", lambda r: r["in_hour"] >= 0.95, lambda r: _share(r["in_hour"])),
    ("projects at 97 %", "15 of 15", lambda r: r["projects_97"] == 15, lambda r: f"{r['projects_97']} of {r['projects']}"),
    ("occupancy", ">= 98 %", lambda r: r["occupancy"] >= 0.98, lambda r: _share(r["occupancy"])),
    ("debug p90 wait", "<= 30 s", lambda r: r["debug_wait_s"][1] <= 30, lambda r: f"{r['debug_wait_s'][1]:,.0f} s"),
    ("GPU-hours lost, budgeted", "<= 2 %", lambda r: r["lost_allocated"] <= 0.02, lambda r: _share(r["lost_allocated"])),
    ("GPU-hours lost, all", "<= 2 %", lambda r: r["lost"] <= 0.02, lambda r: _share(r["lost"])),
    ("CPU", "<= 900 s", lambda r: r["cpu_s"] <= 900, lambda r: f"{r['cpu_s']:,.0f} s"),
    ("memory", "<= 2,048 MiB", lambda r: r["peak_mib"] <= 2048, lambda r: f"{r['peak_mib']:,} MiB"),
)  # fmt: skip
COLUMNS = (
    "", "over the period", "in the hour", "worst", "97 %", "occupancy", "lost, budgeted", "lost, all", "debug p50 / p90",
    "gangs >= 128 p50 / p90", "hands changed", "stopped a day", "CPU s",
)  # fmt: skip


def write_page(runs: Path, target: Path) -> None:
    """Write the page and its picture; equal runs, equal bytes."""
    month, moved, full = (_read(runs / name) for name in ("month", "moved", "full"))
    lines = [HEAD]
    if month:
        first = next(r for r in month if r["name"] == "evenhand")
        rival = next((r for r in month if r["name"] == "first_fit"), None)
        lines += [
            f"## Beside all comparators ({first['days']:.0f} days)",
            "",
            *_goals(first, rival),
            "",
            *_with_days(month),
            "",
        ]
        lines += [
            "By project: delivered over the period, and in the hour, of the GPU-hours owed.",
            "",
            *_projects(first),
            "",
        ]
    if moved:
        days = moved[0]["days"]
        picture = target.parent / "img" / "defaults.svg"
        draw(moved, month, picture)
        lines += [
            f"## Defaults moved, one at a time (the first {days:.0f} days)", "",
            *_table(COLUMNS, map(_cells, moved)), "",
            f"![Lost work against delivery in the hour](img/{picture.name})", "",
        ]  # fmt: skip
    if full:
        lines += [
            f"## The incremental path (the first {full[0]['days'] * 24:.3g} hours)",
            "",
            *_table(COLUMNS, map(_cells, full)),
            "",
        ]
    notes = runs / "notes.md"
    if notes.exists():
        lines.append(notes.read_text(encoding="utf-8").rstrip())
    target.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def _read(folder: Path) -> list[Run]:
    """Runs of a folder: what has the defaults first, then by name and value."""
    found = [json.loads(p.read_text(encoding="utf-8")) for p in folder.glob("*.json")]
    return sorted(found, key=lambda r: (r["name"] not in {"defaults", "evenhand", "incremental"}, _order(r["name"])))


def _order(name: str) -> tuple[str, float]:
    field, _, value = name.partition("=")
    return field, float(value or 0)


def _label(name: str) -> str:
    field, _, value = name.partition("=")
    return f"`{field}` {float(value):,.10g}" if value else f"`{name}`"


def _share(part: float | None) -> str:
    return "-" if part is None else f"{100 * part:.1f} %"


def _goals(run: Run, rival: Run | None) -> list[str]:
    """What was wanted, what came out."""
    rows = [(what, wanted, shown(run), "yes" if met(run) else "no") for what, wanted, met, shown in GOALS]
    if rival is not None:
        mine, theirs = run["large_wait_s"][1], rival["large_wait_s"][1]
        rows.append(
            (
                "gangs >= 128, p90 wait",
                f"first fit's {theirs:,.0f} s",
                f"{mine:,.0f} s",
                "yes" if mine <= theirs else "no",
            )
        )
    return _table(("", "wanted", "evenhand", "met"), rows)


def _with_days(runs: list[Run]) -> list[str]:
    """The table, with the days of each run where they differ."""
    if len({run["days"] for run in runs}) == 1:
        return _table(COLUMNS, map(_cells, runs))
    return _table(("", "days", *COLUMNS[1:]), ((c[0], f"{r['days']:g}", *c[1:]) for r in runs if (c := _cells(r))))


def _cells(run: Run) -> tuple[str, ...]:
    debug, large = run["debug_wait_s"], run["large_wait_s"]
    return (
        _label(run["name"]), _share(run["over_period"]), _share(run["in_hour"]), _share(run["worst_project"]),
        f"{run['projects_97']} of {run['projects']}", _share(run["occupancy"]), _share(run["lost_allocated"]),
        _share(run["lost"]), f"{debug[0]:,.0f} / {debug[1]:,.0f}", f"{large[0]:,.0f} / {large[1]:,.0f}",
        _share(run["turnover"]), f"{run['preempted_a_day']:,.0f}", f"{run['cpu_s']:,.0f}",
    )  # fmt: skip


def _projects(run: Run) -> list[str]:
    rows = run["by_project"].items()
    head = ("", *(name for name, _ in rows))
    return _table(head, [
        ("over the period", *(_share(x[0]) for _, x in rows)), ("in the hour", *(_share(x[1]) for _, x in rows)),
        ("owed, GPU-hours", *(f"{x[2]:,.0f}" for _, x in rows)),
    ])  # fmt: skip


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    return ["| " + " | ".join(line) + " |" for line in (head, ("---",) * len(head), *rows)]


def draw(moved: list[Run], month: list[Run], path: Path) -> None:
    """Lost work of budgeted jobs against delivery in the hour, as an SVG of equal bytes for equal figures."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "evenhand"
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4.5))
    for runs, mark, said in (
        (moved, "o", "defaults moved"),
        ([r for r in month if r["in_hour"] > 0.5], "s", "the month"),
    ):
        axes.scatter(
            [100 * r["lost_allocated"] for r in runs], [100 * r["in_hour"] for r in runs], marker=mark, label=said
        )
        for r in runs:
            at = (100 * r["lost_allocated"], 100 * r["in_hour"])
            axes.annotate(r["name"], at, xytext=(4, 3), textcoords="offset points", fontsize=6)
    axes.axvline(2, color="grey", linewidth=0.6)
    axes.axhline(95, color="grey", linewidth=0.6)
    axes.set(xlabel="GPU-hours lost, % of what budgeted jobs held", ylabel="delivered in the hour, %")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
