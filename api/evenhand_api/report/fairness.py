"""All objectives side by side, for people: what fairness costs, and what each objective keeps of it."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from evenhand_api.report.text import Column, by_type, heading, instant, number, percent, plural, table
from evenhand_models import Objective, ObjectiveComparison, ObjectiveOutcome

NARROW, ROOMY = 78, 110
"""Columns from which the ratio to the equal split is shown, and the groups' throughput under every objective."""
_LEGEND = (
    "to equal: throughput over that of fair_share, the equal split; incentive: the least value over floor of any group "
    "(sharing incentive: 1 or more); envy: the largest, as a share of the floor; Pareto: at most so much more value "
    "with no group worse off; idle: GPUs"
)


def fairness_report(found: ObjectiveComparison, width: int, rows: int = 20) -> Iterator[RenderableType]:
    """Yield the comparison as tables.

    Parameters
    ----------
    found : ObjectiveComparison
        The comparison.
    width : int
        Columns there are.
    rows : int
        Most groups to list; 0: all.
    """
    yield Text.assemble(
        ("Objectives side by side", "bold"), f"  {instant(found.now)}, {by_type(found.capacity)}, fractions of GPUs"
    )
    yield Text(f"throughput in GPUs at each job's {found.throughput_unit} type", style="dim")
    yield _objectives(found, width >= NARROW)
    yield Text(_LEGEND, style="dim")
    yield Text(
        f"equal split (the sum of the floors) {number(found.equal_split, 2)}; "
        f"no division brings more than {number(found.upper_bound, 2)}"
    )
    unproven = [str(o.objective) for o in found.objectives if not o.proven]
    if unproven:
        yield Text(f"not proven best within time_limit_s: {', '.join(unproven)} (the slices are shown)", style="bold")
    if found.owed:
        yield from _groups(found, width, rows)


def _objectives(found: ObjectiveComparison, roomy: bool) -> RenderableType:
    titles = ("throughput", *(["to equal"] if roomy else []), "incentive", "envy", "Pareto", "idle")
    listed = table(("objective", "fixed"), *((title, "right") for title in titles))
    for outcome in found.objectives:
        listed.add_row(Text(str(outcome.objective)), *_figures(outcome, roomy))
    return listed


def _figures(outcome: ObjectiveOutcome, roomy: bool) -> tuple[str, ...]:
    return (
        number(outcome.throughput, 2),
        *([number(outcome.over_equal_split, 3)] if roomy else []),
        number(outcome.least_sharing_incentive, 3),
        percent(outcome.max_envy),
        percent(outcome.pareto_gap),
        number(outcome.idle_gpus, 2),
    )


def _groups(found: ObjectiveComparison, width: int, rows: int) -> Iterator[RenderableType]:
    yield heading("Groups", "throughput under each objective; --json has the GPUs by type")
    chosen = tuple(Objective) if width >= ROOMY else (Objective.ENVY_FREE, Objective.NASH, Objective.MAX_THROUGHPUT)
    columns: list[Column] = ["group", ("entitled", "right"), ("floor", "right")]
    listed = table(*columns, *((str(objective), "right") for objective in chosen))
    by_group = [{g.group: g.throughput for g in found.outcome(objective).groups} for objective in chosen]
    some = found.owed[:rows] if rows else found.owed
    for owed in some:
        listed.add_row(
            Text(owed.group),
            number(owed.entitled_gpus, 2),
            number(owed.floor, 2),
            *(number(outcome[owed.group], 2) for outcome in by_group),
        )
    yield listed
    if len(some) < len(found.owed):
        left = plural(len(found.owed) - len(some), "more group")
        yield Text(f"and {left}; --rows 0 lists all", style="dim")
