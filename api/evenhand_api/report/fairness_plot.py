"""The comparison of objectives as a picture; needs matplotlib, and nothing else of the service does."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from evenhand_models import ObjectiveComparison

_LEAST_SPAN = 0.01
"""What is less than this is rounding, and is drawn as such."""
_COLOUR, _LINE = "#4c78a8", "#d62728"


def plot_comparison(found: ObjectiveComparison, out: Path) -> None:
    """Write bars for throughput, least sharing incentive, largest envy and Pareto gap, SVG or PNG by the suffix."""
    # Equal comparisons give equal bytes: ids and text of an SVG depend on nothing else.
    with mpl.rc_context({"svg.hashsalt": "evenhand", "svg.fonttype": "none"}):
        figure = Figure(figsize=(10, 5.2), layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.subplots(2, 2)
        _throughput(grid[0][0], found)
        outcomes = found.objectives
        _bars(grid[0][1], found, "least sharing incentive", [o.least_sharing_incentive for o in outcomes], line=1.0)
        _bars(grid[1][0], found, "largest envy, share of the own slice", [o.max_envy for o in outcomes])
        _bars(grid[1][1], found, "Pareto gap", [o.pareto_gap for o in outcomes])
        kind = out.suffix.lower().removeprefix(".")
        figure.savefig(out, format=kind, metadata={"Date": None} if kind == "svg" else {"Software": None})


def _throughput(axes: Axes, found: ObjectiveComparison) -> None:
    """Throughput, with the equal split and what no division exceeds as lines."""
    title = f"throughput, GPUs at each job's {found.throughput_unit} type"
    _bars(axes, found, title, [o.throughput for o in found.objectives])
    for name, value in (("equal split", found.equal_split), ("at most", found.upper_bound)):
        axes.axvline(value, color=_LINE, linewidth=1, linestyle="-" if name == "at most" else ":", label=name)
    axes.legend(loc="lower left", fontsize=8)


def _bars(
    axes: Axes, found: ObjectiveComparison, title: str, values: list[float | None], line: float | None = None
) -> None:
    names = [str(o.objective) for o in found.objectives]
    axes.barh(names, [0.0 if value is None else value for value in values], color=_COLOUR)
    axes.set_xlim(left=0.0, right=max(_LEAST_SPAN, axes.get_xlim()[1]))
    axes.invert_yaxis()
    axes.set_title(title, fontsize=10)
    axes.tick_params(labelsize=8)
    if line is not None:
        axes.axvline(line, color=_LINE, linewidth=1)
