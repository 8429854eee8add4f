"""Runs side by side as one HTML file: no scripts, no network, readable in light and in dark, and printed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from typing import Any

from evenhand_api.report import plots
from evenhand_api.report.comparison import Cell, Comparison, Figure, Result
from evenhand_api.report.comparison_table import direction, written, written_difference
from evenhand_api.report.text import number, percent, plural

STYLE = """
:root { color-scheme: light dark; --ink: #1d2430; --soft: #5a6472; --ground: #ffffff; --card: #f6f7f9; --line: #dfe3e8;
  --grid: #d9dde3; --good: #17704a; --bad: #b3322e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ee; --soft: #9aa5b4; --ground: #14181e; --card: #1c222a;
  --line: #303843; --grid: #333c48; --good: #5fcf9b; --bad: #f08a86; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1120px; padding: 28px 20px 60px; background: var(--ground); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
h1 { font-size: 25px; line-height: 1.2; margin: 0 0 4px; } h2 { font-size: 18px; margin: 38px 0 6px; }
h3 { font-size: 14px; margin: 10px 0 0; font-weight: 600; } p { margin: 4px 0; } .soft, .note { color: var(--soft); }
.note { font-size: 13px; max-width: 78ch; } .tiles { display: flex; flex-wrap: wrap; gap: 10px; margin: 18px 0 4px; }
.tile { flex: 1 1 150px; background: var(--card); border: 1px solid var(--line); border-radius: 9px; padding: 11px 14px; }
.tile b { display: block; font-size: 23px; line-height: 1.25; font-variant-numeric: tabular-nums; }
.tile span { font-size: 12.5px; color: var(--soft); } .scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: 14px; }
th, td { text-align: right; padding: 4px 10px; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; padding-left: 0; white-space: normal; }
thead th { border-bottom: 2px solid var(--line); vertical-align: bottom; white-space: normal; font-weight: 600; }
tbody th { font-weight: 400; } td small { display: block; color: var(--soft); line-height: 1.2; }
td small.good { color: var(--good); } td small.bad { color: var(--bad); }
.dot { display: inline-block; width: 10px; height: 10px; border-radius: 50%; margin-right: 6px; vertical-align: baseline; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 460px), 1fr)); gap: 8px 26px;
  align-items: start; }
figure { margin: 8px 0 0; } svg { width: 100%; height: auto; display: block; } .keys { font-size: 13px; margin: 6px 0 2px; }
.keys span { white-space: nowrap; margin-right: 14px; } details { border-top: 1px solid var(--line); padding: 8px 0; }
summary { cursor: pointer; font-weight: 600; } code { font-size: 12.5px; overflow-wrap: anywhere; }
footer { margin-top: 44px; color: var(--soft); font-size: 12.5px; }
@media print { body { max-width: none; padding: 0; } details { break-inside: avoid; } .tile, figure { break-inside: avoid; } }
"""
TILES = ("delivered", "delivered_worst", "occupancy", "lost", "jct_p50")


def comparison_page(comparison: Comparison) -> str:
    """Write the page; equal comparisons, equal bytes.

    Raises
    ------
    Failure
        If matplotlib is not installed.
    """
    first = comparison.results[0][0]
    title = f"Replay of {first['trace']}"
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    parts = [
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>",
        *_head(comparison, title),
        *_figures(comparison),
        *_over_time(comparison),
        *_by_group_and_kind(comparison),
        *_who_had_what(comparison),
        *_each_run(comparison),
        *_foot(comparison),
        "</body></html>\n",
    ]
    return "\n".join(parts)


def _head(comparison: Comparison, title: str) -> Iterator[str]:
    first = comparison.results[0][0]
    gpus = ", ".join(f"{count:,} {kind}" for kind, count in first["gpus"].items())
    days = number(first["metrics"]["simulated_s"] / 86_400, 1)
    came = sum(first["metrics"]["jobs"].values())
    yield f"<header><h1>{escape(title)}</h1>"
    yield f"<p>{days} days from {escape(first['t0'])} on {escape(gpus)}: {plural(came, 'job')}.</p>"
    if first["credit"]:
        yield f'<p class="note">{escape(first["credit"])}</p>'
    yield "</header>"
    yield '<div class="tiles">'
    for figure, row in zip(comparison.figures, comparison.cells, strict=True):
        if figure.key in TILES:
            yield f'<div class="tile"><b>{escape(written(figure, row[0].value))}</b><span>{escape(figure.title)}</span></div>'
    yield f'</div><p class="note">Of {escape(comparison.labels[0])}, the first run.</p>'


def _run_name(comparison: Comparison, j: int) -> str:
    return f'<span class="dot" style="background:{plots.COLOURS[j]}"></span>{escape(comparison.labels[j])}'


def _figures(comparison: Comparison) -> Iterator[str]:
    yield "<h2>Figures</h2>"
    seeds = max(len(results) for results in comparison.results)
    notes = []
    if len(comparison.labels) > 1:
        notes.append(f"Small print: difference to {comparison.labels[0]}; coloured where it is better or worse.")
    if seeds > 1:
        notes.append(f"Means over {plural(seeds, 'seed')}; ± is half of the 95 % confidence interval.")
    yield f'<p class="note">{escape(" ".join(notes))}</p>' if notes else ""
    names = "".join(f"<th>{_run_name(comparison, j)}</th>" for j in range(len(comparison.labels)))
    yield f'<div class="scroll"><table><thead><tr><th></th>{names}</tr></thead><tbody>'
    for figure, row in zip(comparison.figures, comparison.cells, strict=True):
        cells = "".join(_cell(figure, cell) for cell in row)
        yield f"<tr><th>{escape(figure.title)}</th>{cells}</tr>"
    yield "</tbody></table></div>"


def _cell(figure: Figure, cell: Cell) -> str:
    value = escape(written(figure, cell.value))
    if cell.difference is None:
        return f"<td>{value}</td>"
    kind = {1: ' class="good"', -1: ' class="bad"', 0: ""}[direction(figure, cell.difference)]
    return f"<td>{value}<small{kind}>{escape(written_difference(figure, cell.difference))}</small></td>"


def _over_time(comparison: Comparison) -> Iterator[str]:
    yield "<h2>Over time</h2>"
    yield f"<figure>{plots.occupancy(comparison)}</figure>"
    note = (
        "A group's slice is its product of shares of every type of GPU; what its jobs of the hour would do there is what "
        "sharing must not fall short of. Throughput above the slice is not counted."
    )
    yield f'<p class="note">{note}</p><figure>{plots.incentive(comparison)}</figure>'


def _by_group_and_kind(comparison: Comparison) -> Iterator[str]:
    yield "<h2>By group and by kind of job</h2>"
    note = (
        "Owed in an hour: what a group's jobs wanted, at most its product of shares times the GPUs there. Delivered: what "
        "its charged jobs held of that over the whole period. A wait is from submission to the first start; whoever still "
        "waits at the end counts with what it has waited."
    )
    yield f'<p class="note">{note}</p>'
    yield f'<div class="pair"><figure>{plots.delivered(comparison)}</figure><figure>{plots.waits(comparison)}</figure></div>'


def _who_had_what(comparison: Comparison) -> Iterator[str]:
    colours = plots.colours_of_groups(comparison)
    if not colours:
        return
    yield "<h2>Who had the GPUs</h2>"
    yield '<p class="note">Charged GPUs received by group, stacked. Dashed: what all of them together were owed.</p>'
    keys = (
        f'<span><i class="dot" style="background:{colour}"></i>{escape(name)}</span>'
        for name, colour in colours.items()
    )
    yield f'<p class="keys">{"".join(keys)}</p><div class="pair">'
    firsts = [results[0] for results in comparison.results]
    most = 1.05 * max((max(result["series"]["capacity"], default=1.0) for result in firsts), default=1.0)
    for j, result in enumerate(firsts):
        drawn = plots.shares(result, colours, f"shares-{j}", most or 1.0)
        yield f"<figure><h3>{_run_name(comparison, j)}</h3>{drawn}</figure>"
    yield "</div>"


def _each_run(comparison: Comparison) -> Iterator[str]:
    yield "<h2>Each run</h2>"
    base = comparison.results[0][0]
    for j, results in enumerate(comparison.results):
        result = results[0]
        yield f"<details><summary>{_run_name(comparison, j)}</summary>"
        if result["scenario"].get("description"):
            yield f"<p>{escape(result['scenario']['description'])}</p>"
        yield f'<p class="note">{escape(". ".join(_facts(result, base)))}.</p>'
        yield from _groups(result)
        yield "</details>"


def _facts(result: Result, base: Result) -> Iterator[str]:
    """What sets a run apart, in words."""
    yield f"Scheduler {result['scheduler']}"
    gpus = ", ".join(f"{count:,} {kind}" for kind, count in result["gpus"].items())
    yield f"{gpus} at the beginning, {plural(sum(result['metrics']['jobs'].values()), 'job')}"
    other = {
        name: value for name, value in result["policy"].items() if value != base["policy"][name] and name != "seed"
    }
    if other:
        yield "policy " + ", ".join(f"{name} {value}" for name, value in other.items())
    rounds: dict[str, Any] = result["metrics"]["rounds"]
    yield f"{rounds['events']:,} events, {rounds['rounds']:,} rounds, {rounds['full_rounds']:,} of them solved in full"


def _groups(result: Result) -> Iterator[str]:
    """The account of every group, level by level."""
    columns = "".join(f"<th>{name}</th>" for name in ("demanded", "owed", "received", "delivered", "in the hour"))
    yield f'<div class="scroll"><table><thead><tr><th>group, charged GPU-hours</th>{columns}</tr></thead><tbody>'
    for level in result["metrics"]["delivery"]:
        for group in sorted(level["groups"], key=lambda one: (-one["owed_gpu_hours"], one["group"])):
            amounts = (group["demanded_gpu_hours"], group["owed_gpu_hours"], group["received_gpu_hours"])
            cells = [
                *(number(amount, 0) for amount in amounts),
                percent(group["over_period"]),
                percent(group["in_hour"]),
            ]
            indent = f' style="padding-left:{1.2 * level["level"]:g}em"' if level["level"] else ""
            yield f"<tr><td{indent}>{escape(group['group'])}</td>{_cells(cells)}</tr>"
    yield "</tbody></table></div>"


def _cells(texts: Iterable[str]) -> str:
    return "".join(f"<td>{escape(text)}</td>" for text in texts)


def _foot(comparison: Comparison) -> Iterator[str]:
    versions = sorted({result["engine_version"] for results in comparison.results for result in results})
    yield f"<footer><p>evenhand {escape(', '.join(versions))}. Runs by content:</p>"
    for label, results in zip(comparison.labels, comparison.results, strict=True):
        keys = ", ".join(result["key"] for result in results)
        yield f"<p>{escape(label)}: <code>{escape(keys)}</code></p>"
    yield "</footer>"
