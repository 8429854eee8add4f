"""Plots of runs as SVG that stands inside a page: text and axes take the page's colours, in light and in dark.

Drawn without a display, without fonts of its own and without a date: equal runs, equal bytes.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from evenhand_api.commands.terminal import Failure
from evenhand_api.report.comparison import Comparison, Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#3f83c9", "#e0851a", "#2f9e6e", "#9b6dd2", "#d6524e", "#1f9fb0", "#8f8b26", "#cf649c")
"""One a run, told apart on white and on near black."""
GROUP_COLOURS = (
    "#5a7fa8", "#c98b6b", "#7aa37a", "#a58bb5", "#c9b15d", "#6ba3a0", "#b8788c", "#8a8f98", "#4f9bc4", "#d0745c",
    "#94b04f", "#7f73c2",
)  # fmt: skip
"""One a group, muted, so that nobody takes a group for a run."""
INK, GRID = "#010203", "#010204"
"""Stand for the page's text and grid colours until the SVG is written."""
WIDE, HALF = 11.0, 5.4
"""Widths in inches of plots that take the page's width, and half of it."""


def svg(draw: Callable[[Figure], None], name: str, size: tuple[float, float], describes: str) -> str:
    """Draw a figure and return it as an SVG element.

    Parameters
    ----------
    name : unique in the page; ids inside depend on it alone.
    size : width and height in inches.
    describes : said to whoever cannot see it.

    Raises
    ------
    Failure
        If matplotlib is not installed.
    """
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise Failure("plots need the extra: pip install 'evenhand[plot]'.") from None
    out = io.StringIO()
    style: Any = _style(name)
    with matplotlib.rc_context(style):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return _inlined(out.getvalue(), describes)


def _style(name: str) -> dict[str, Any]:
    return {
        "svg.fonttype": "none", "svg.hashsalt": name, "font.family": "sans-serif", "font.size": 9.5,
        "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": GRID, "axes.titlesize": 10, "axes.titlelocation": "left",
        "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "axes.axisbelow": True, "grid.color": GRID,
        "grid.linewidth": 0.6, "xtick.color": INK, "ytick.color": INK, "xtick.major.size": 0, "ytick.major.size": 0,
        "xtick.minor.size": 0, "ytick.minor.size": 0, "legend.frameon": False, "lines.linewidth": 1.5,
    }  # fmt: skip


def _inlined(written: str, describes: str) -> str:
    """Keep the SVG element alone, in the page's font and colours."""
    body = written[written.index("<svg ") :]
    body = re.sub(
        r'<svg [^>]*?(viewBox="[^"]*")[^>]*>',
        r'<svg \1 role="img" xmlns:xlink="http://www.w3.org/1999/xlink">',
        body,
        count=1,
    )
    body = re.sub(r"<metadata>.*?</metadata>\s*", "", body, flags=re.DOTALL)
    body = body.replace(INK, "currentColor").replace(GRID, "var(--grid)")
    body = re.sub(r"font: ([\d.]+px) [^;\"]*", r"font: \1 system-ui, sans-serif", body)
    return body.replace(">", f"><title>{escape(describes)}</title>", 1)


def occupancy(comparison: Comparison) -> str:
    """GPUs held over time, one line a run, under what was there."""

    def draw(figure: Figure) -> None:
        held, waiting = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        for j, result in enumerate(_firsts(comparison)):
            series = result["series"]
            days = [(i + 0.5) * series["step_h"] / 24 for i in range(len(series["held"]))]
            held.plot(days, series["held"], color=COLOURS[j], label=comparison.labels[j])
            waiting.plot(days, series["waiting"], color=COLOURS[j])
            held.step(days, series["capacity"], color=COLOURS[j], linewidth=0.8, linestyle=":", where="mid")
        held.set_ylim(bottom=0)
        waiting.set_ylim(bottom=0)
        held.set_title("GPUs held (dotted: GPUs there)")
        waiting.set_title("GPUs that wait for a first start")
        waiting.set_xlabel("days")
        _legend(figure, comparison)

    return svg(draw, "occupancy", (WIDE, 4.6), "GPUs held and GPUs waiting over time, by run")


def incentive(comparison: Comparison) -> str:
    """How much of what their slices would do groups got done, over time, one line a run."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for j, result in enumerate(_firsts(comparison)):
            series = result["series"]
            kept = [math.nan if x is None else 100 * x for x in series["incentive"]]
            axes.plot([(i + 0.5) * series["step_h"] / 24 for i in range(len(kept))], kept, color=COLOURS[j])
        axes.set_ylim(0, 103)
        axes.set_title("Throughput of groups, counted up to that of their slices, of that of their slices, %")
        axes.set_xlabel("days")
        _legend(figure, comparison)

    return svg(draw, "incentive", (WIDE, 2.9), "Sharing incentive over time, by run")


def delivered(comparison: Comparison) -> str:
    """Share of what each group was owed that it got, one point a run."""
    groups = _groups(comparison)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for j, result in enumerate(_firsts(comparison)):
            shares = {g["group"]: g["over_period"] for g in _lowest(result)}
            offset = _offset(j, len(comparison.labels))
            rows = [(i + offset, shares[g]) for i, g in enumerate(groups) if shares.get(g) is not None]
            axes.scatter([100 * x for _, x in rows], [y for y, _ in rows], s=22, color=COLOURS[j], zorder=3)
        axes.set_yticks(range(len(groups)), groups)
        axes.invert_yaxis()
        axes.set_xlim(left=min(0, axes.get_xlim()[0]), right=103)
        axes.set_title("Delivered of what was owed over the period, %")
        _legend(figure, comparison)

    return svg(draw, "delivered", (HALF, 1.6 + 0.25 * len(groups)), "Delivered share by group and run")


def waits(comparison: Comparison) -> str:
    """First waits by kind: a line from p50 to p99 a run, with a dot at p90."""
    kinds = _kinds(comparison)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for j, result in enumerate(_firsts(comparison)):
            known = {wait["name"]: wait["first_wait_s"] for wait in result["metrics"]["waits_by_kind"]}
            for i, kind in enumerate(kinds):
                if kind in known and known[kind]["count"]:
                    y = i + _offset(j, len(comparison.labels))
                    low, dot, high = (max(1.0, known[kind][p]) for p in ("p50", "p90", "p99"))
                    axes.plot([low, high], [y, y], color=COLOURS[j], linewidth=2, solid_capstyle="round")
                    axes.scatter([dot], [y], s=22, color=COLOURS[j], zorder=3)
        _time_axis(axes)
        axes.set_yticks(range(len(kinds)), ["all jobs"] if kinds == ["unknown"] else kinds)
        axes.set_ylim(-0.6, len(kinds) - 0.4)
        axes.invert_yaxis()
        axes.set_title("First wait: p50 to p99, dot at p90")
        _legend(figure, comparison)

    return svg(draw, "waits", (HALF, 1.6 + 0.42 * len(kinds)), "First waits by kind and run")


def shares(result: Result, colour_of: dict[str, str], name: str, most: float) -> str:
    """GPUs each group received over time, stacked; a dashed line is what all of them were owed."""
    series = result["series"]

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        groups = [group for group in colour_of if group in series["groups"]]
        if groups and series["held"]:
            days = [(i + 0.5) * series["step_h"] / 24 for i in range(len(series["held"]))]
            received = [series["groups"][group]["received"] for group in groups]
            axes.stackplot(days, *received, colors=[colour_of[group] for group in groups], alpha=0.85, linewidth=0)
            owed = [sum(parts) for parts in zip(*(series["groups"][group]["owed"] for group in groups), strict=True)]
            axes.plot(days, owed, color=INK, linewidth=0.9, linestyle="--")
        axes.set_ylim(0, most)
        axes.set_xlabel("days")

    return svg(draw, name, (HALF, 2.6), f"GPUs received by group over time: {result['label']}")


def colours_of_groups(comparison: Comparison) -> dict[str, str]:
    """A colour for each group that is drawn over time; beyond a dozen they come again, lighter."""
    names = list(dict.fromkeys(g for result in _firsts(comparison) for g in result["series"]["groups"]))
    many = len(GROUP_COLOURS)
    return {name: GROUP_COLOURS[i % many] + ("" if i < many else "88") for i, name in enumerate(names)}


def _firsts(comparison: Comparison) -> list[Result]:
    """The run of the first seed of each label: lines are drawn of one seed."""
    return [results[0] for results in comparison.results]


def _lowest(result: Result) -> list[dict[str, Any]]:
    levels = result["metrics"]["delivery"]
    found: list[dict[str, Any]] = levels[-1]["groups"] if levels else []
    return found


def _groups(comparison: Comparison, most: int = 24) -> list[str]:
    """Groups of the lowest level, those owed most first."""
    owed: dict[str, float] = {}
    for result in _firsts(comparison):
        for group in _lowest(result):
            owed[group["group"]] = max(owed.get(group["group"], 0.0), group["owed_gpu_hours"])
    return sorted((name for name in owed if owed[name] > 0), key=lambda name: (-owed[name], name))[:most]


def _kinds(comparison: Comparison) -> list[str]:
    return sorted({w["name"] for result in _firsts(comparison) for w in result["metrics"]["waits_by_kind"]})


def _offset(j: int, runs: int) -> float:
    return 0.0 if runs == 1 else 0.64 * (j / (runs - 1) - 0.5)


def _time_axis(axes: Axes) -> None:
    """A logarithmic axis from a second to weeks, with words."""
    ticks: Sequence[tuple[float, str]] = (
        (1, "≤1 s"), (10, "10 s"), (60, "1 min"), (600, "10 min"), (3_600, "1 h"), (28_800, "8 h"), (172_800, "2 d"),
        (1_209_600, "2 weeks"),
    )  # fmt: skip
    axes.set_xscale("log")
    high = max(60.0, axes.get_xlim()[1])
    shown = [(at, word) for at, word in ticks if at <= high]
    axes.set_xlim(0.8, high * 1.3)
    axes.set_xticks([at for at, _ in shown], [word for _, word in shown], rotation=35, ha="right")
    axes.set_xticks([], minor=True)


def _legend(figure: Figure, comparison: Comparison) -> None:
    """Name the runs under the plot where there are several."""
    if len(comparison.labels) < 2:
        return
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], color=COLOURS[j], linewidth=3, label=label) for j, label in enumerate(comparison.labels)]
    wide = figure.get_size_inches()[0] > HALF + 1
    figure.legend(handles=lines, loc="outside lower center", ncols=4 if wide else 2, fontsize=8.5)
