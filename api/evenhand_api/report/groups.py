"""How the groups fare: the organisation tree with what each is owed and what it gets."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from evenhand_api.report.text import Column, by_type, heading, number, percent, plural, table
from evenhand_models import ClusterState, GroupReport, Plan

WIDE = 150
"""Columns from which one table holds everything about a group."""
DEEP = 60
"""Levels after which the indentation goes no further."""


def group_report(state: ClusterState, plan: Plan, width: int, idle: bool = False) -> Iterator[RenderableType]:
    """Yield the tree of groups, as one table where there is room for it and as two where not.

    Parameters
    ----------
    state : ClusterState
        The state the plan answers.
    plan : Plan
        The plan.
    width : int
        Columns there are.
    idle : bool
        Whether to list groups that want nothing and hold nothing; else they are counted.
    """
    if not plan.groups:
        return
    rows = [(name, report) for name, report in tree_rows(state, plan) if idle or not _is_idle(report)]
    yield from _tables(plan, rows, width)
    if len(rows) < len(plan.groups):
        left_out = plural(len(plan.groups) - len(rows), "more group")
        yield Text(f"and {left_out} without work; --rows 0 lists all", style="dim")


def _is_idle(report: GroupReport) -> bool:
    return not (report.demand_gpus or report.allocated or report.unallocated_use)


def _tables(plan: Plan, rows: list[tuple[str, GroupReport]], width: int) -> Iterator[RenderableType]:
    yield heading(
        "Groups",
        f"charged GPUs and GPU-hours; throughput in GPUs at each job's {plan.policy.throughput_unit} type",
    )
    owed_titles: tuple[Column, ...] = (
        ("share", "right"),
        ("usage", "right"),
        ("demand", "right"),
        ("entitled", "right"),
        ("standing", "right"),
    )
    got_titles: tuple[Column, ...] = (
        "target",
        "allocated",
        "unallocated",
        ("throughput", "right"),
        ("incentive", "right"),
    )
    if width >= WIDE:
        whole = table("group", *owed_titles, *got_titles)
        for name, report in rows:
            whole.add_row(Text(name), *_owed(report), *_got(report))
        yield whole
        return
    owed = table("group", *owed_titles)
    got = table("group", *got_titles)
    for name, report in rows:
        owed.add_row(Text(name), *_owed(report))
        got.add_row(Text(name), *_got(report))
    yield owed
    yield Text("")
    yield got


def tree_rows(state: ClusterState, plan: Plan) -> Iterator[tuple[str, GroupReport]]:
    """Yield the groups top down, siblings by standing, each name indented by its depth."""
    reports = {report.group: report for report in plan.groups}
    parents = {group.id: group.parent for group in state.groups}
    below: dict[str | None, list[str]] = {}
    for group in reports:
        parent = parents.get(group)
        below.setdefault(parent if parent in reports else None, []).append(group)
    for siblings in below.values():
        siblings.sort(key=lambda group: (reports[group].standing, group), reverse=True)
    stack = [(group, 0) for group in below.get(None, [])]
    while stack:
        group, depth = stack.pop()
        yield "  " * min(depth, DEEP) + group, reports[group]
        stack += [(child, depth + 1) for child in below.get(group, [])]


def _owed(report: GroupReport) -> list[Text]:
    cells = (
        number(report.share, 3),
        number(report.usage_gpu_hours),
        number(report.demand_gpus),
        number(report.entitled_gpus),
        f"{report.standing:,}",
    )
    return [Text(cell) for cell in cells]


def _got(report: GroupReport) -> list[Text]:
    throughput = f"{number(report.throughput)} of {number(report.throughput_target)}"
    if report.utilization is not None:
        throughput += f", {percent(report.utilization)} used"
    cells = (
        by_type(report.target),
        by_type(report.allocated),
        by_type(report.unallocated_use),
        throughput,
        number(report.sharing_incentive, 2),
    )
    return [Text(cell) for cell in cells]
