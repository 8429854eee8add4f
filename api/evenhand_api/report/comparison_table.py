"""Runs side by side, for terminals."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from evenhand_api.report.comparison import Cell, Comparison, Estimate, Figure
from evenhand_api.report.text import NONE, Column, duration, heading, number, plural, table

GAP = 2
"""Columns between columns."""


def comparison_table(comparison: Comparison, width: int) -> Iterator[RenderableType]:
    """Yield the figures of all runs, in as many tables as the width asks for; the first run stands in each."""
    first = comparison.results[0][0]
    gpus = ", ".join(f"{count:,} {kind}" for kind, count in first["gpus"].items())
    days = number(first["metrics"]["simulated_s"] / 86_400, 1)
    yield Text.assemble(("Replay of " + first["trace"], "bold"), f"  {days} days on {gpus}")
    if first["credit"]:
        yield Text(first["credit"], style="dim")
    for runs in _chunks(comparison, width):
        yield Text("")
        yield _table(comparison, runs)
    seeds = max(len(own) for own in comparison.results)
    notes = [f"Differences are to {comparison.labels[0]}."] if len(comparison.labels) > 1 else []
    if seeds > 1:
        notes.append(f"Means over {plural(seeds, 'seed')}, ± half of the 95 % confidence interval.")
    if notes:
        yield heading("", " ".join(notes))


def _chunks(comparison: Comparison, width: int) -> Iterator[list[int]]:
    """Runs that fit beside the first, table by table; one by one where there is no room for two."""
    rows = list(zip(comparison.figures, comparison.cells, strict=True))
    used = [
        max([len(label), *(len(written_cell(figure, row[j]).plain) for figure, row in rows)]) + GAP
        for j, label in enumerate(comparison.labels)
    ]
    least = max((len(figure.title) for figure, _ in rows), default=0) + GAP + used[0]
    if len(used) > 1 and least + max(used[1:]) > width:
        yield from ([j] for j in range(len(used)))  # too narrow for two side by side
        return
    chunk, taken = [0], least
    for j in range(1, len(used)):
        if taken + used[j] > width and len(chunk) > 1:
            yield chunk
            chunk, taken = [0], least
        chunk.append(j)
        taken += used[j]
    yield chunk


def _table(comparison: Comparison, runs: list[int]) -> RenderableType:
    columns: list[Column] = [("", "fixed"), *((comparison.labels[j], "right") for j in runs)]
    listed = table(*columns)
    for figure, row in zip(comparison.figures, comparison.cells, strict=True):
        listed.add_row(Text(figure.title), *(written_cell(figure, row[j]) for j in runs))
    return listed


def written_cell(figure: Figure, cell: Cell) -> Text:
    """Write a figure and, coloured by which way is better, its difference."""
    text = Text(written(figure, cell.value))
    if cell.difference is not None:
        style = {1: "green", -1: "red", 0: "dim"}[direction(figure, cell.difference)]
        text.append(f" ({written_difference(figure, cell.difference)})", style=style)
    return text


def direction(figure: Figure, difference: Estimate) -> int:
    """1: better, -1: worse, 0: neither, or not to be told from chance."""
    if abs(difference.mean) <= (difference.half_width or 0.0) or not difference.mean:
        return 0
    return figure.better if difference.mean > 0 else -figure.better


def written(figure: Figure, estimate: Estimate | None) -> str:
    """Write a value in its unit, with its confidence if there is any."""
    if estimate is None:
        return NONE
    spread = "" if not estimate.half_width else f" ± {_plain(figure, estimate.half_width)}"
    return f"{_plain(figure, estimate.mean)}{spread}"


def written_difference(figure: Figure, estimate: Estimate) -> str:
    """Write a difference with its sign."""
    size = _plain(figure, abs(estimate.mean)).replace(" %", " points")
    if size in {"0", "0 points", "0 s"}:
        return "="
    spread = "" if not estimate.half_width else f" ± {_plain(figure, estimate.half_width).replace(' %', '')}"
    return ("+" if estimate.mean > 0 else "-") + size + spread


def _plain(figure: Figure, value: float) -> str:
    match figure.unit:
        case "share":
            return f"{number(100 * value, 2)} %"
        case "s":
            return duration(value)
        case "ratio":
            return number(value, 2)
        case _:
            return number(value, 1)
