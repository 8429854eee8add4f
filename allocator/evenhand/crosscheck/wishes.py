"""O: what is wanted, goal by goal, with its weight (A4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from evenhand.audit.jobs import MILLI
from evenhand.crosscheck.draft import RUNS, STAYS, Act, Draft, Way
from evenhand.crosscheck.facts import GRAIN, grains_held
from evenhand.crosscheck.sheet import Follow, Terms, amount
from evenhand_models import Group

LEAF = 300.0
"""What a GPU short weighs at most (O1)."""


def add_wishes(draft: Draft) -> None:
    """Add all goals."""
    for way in draft.ways:
        if way.job.live:
            _pay_way(draft, way)
    _add_shortfalls(draft)
    _add_owed(draft)
    _add_handovers(draft)


def _pay_way(draft: Draft, way: Way) -> None:
    """O4 to O7 of one way."""
    facts, job, sheet = draft.facts, way.job, draft.sheet
    order = work = cost = 0.0
    if way.act in RUNS:
        order = facts.order(job, way.gpus)
        work = facts.pace(job, way.kind, way.gpus) * facts.ahead(job, stays=way.act in STAYS)
    if way.act is Act.PREEMPT:
        work -= facts.lost(job) + facts.ended(job)
        cost = job.held_gpus * (1 / 16 + (0.0 if job.hit else (1 - job.level) / 2))
    elif way.act is Act.MIGRATE:
        work -= facts.lost(job)
        cost = job.held_gpus / 16
    elif way.act is Act.REPAIR:
        cost = (job.held_gpus - way.stays) / 16
    elif way.act in (Act.GROW, Act.SHRINK):
        cost = abs(way.gpus - job.held_gpus) / 256
    if job.budgeted:
        sheet.pay("order", way.column, order)
        sheet.pay("work", way.column, work)
        sheet.pay("least_change", way.column, -cost)
    else:
        sheet.pay("unallocated_use", way.column, facts.epsilon * (order + work - cost))


def holding(draft: Draft, groups: Iterable[str], count: Callable[[Way], int]) -> Terms:
    """Return what budgeted jobs of some groups hold, run or reserved, counted one way at a time."""
    return [
        (way.column, float(count(way)))
        for group in groups
        for way in draft.budgeted(group)
        if way.act in RUNS or way.act is Act.RESERVE
    ]


def _add_shortfalls(draft: Draft) -> None:
    """O1 to O3: what is missing of guarantees, at inner levels and at leaves."""
    facts = draft.facts
    tree, reading = facts.reading.tree, facts.reading
    named: dict[str, Group] = {group.id: group for group in reading.state.groups}
    for group in tree.order:
        below = [member for member in reading.members if group in tree.path(member)]
        held = holding(draft, below, lambda way: grains_held(way.gpus * reading.charge[way.kind or ""]))
        promised = facts.dues.guarantee[group]
        if named[group].guaranteed_gpus is not None and promised > 0:
            need, weight = facts.within(group, promised), 2 * LEAF * 2.0 ** min(10, tree.top)
            _short(draft, "guarantees", f"O1_group_{group}", held, need, weight)
        if tree.below(group):
            need = facts.within(group, facts.dues.entitled[group])
            weight = facts.dues.claim.get(group, 1.0) * 2.0 ** min(10, tree.height[group])
            _short(draft, "inner_levels", f"O2_group_{group}", held, need, weight)
    for leaf in facts.target.leaves:
        used = holding(draft, [leaf.group], lambda way: grains_held(way.gpus * way.job.rates.get(way.kind or "", 0)))
        weight = facts.dues.leaf_claim.get(leaf.group, 1.0)
        _short(draft, "leaves", f"O3_group_{leaf.group}", used, facts.aim(leaf.group), weight)


def _short(draft: Draft, goal: str, name: str, held: Terms, need: int, weight: float) -> None:
    """Pay for what is missing of a need, in sixteenths."""
    if need <= 0:
        return
    sheet = draft.sheet
    column = sheet.follows(f"short_{name}", need, lambda values: max(0.0, need - amount(held, values)))
    enough = [(c, min(counted, float(need))) for c, counted in held]  # one that is enough is enough
    sheet.row(name, [(column, 1.0), *enough], low=float(need))
    sheet.pay(goal, column, -weight / GRAIN)


def _add_owed(draft: Draft) -> None:
    """O3: owed gangs that neither run nor are reserved."""
    for crew in draft.crews:
        job = crew.first
        if job.job.id not in draft.facts.dues.owed:
            continue
        weight = draft.facts.dues.gang_weight(draft.facts.reading, job)
        draft.sheet.add("leaves", -weight * job.job.gpus)
        for way in draft.of(crew):
            if way.act is not Act.PREEMPT:
                draft.sheet.pay("leaves", way.column, weight * job.job.gpus)


def _add_handovers(draft: Draft) -> None:
    """O4: at each cut between priorities of a leaf, GPUs that pass from below to above it."""
    for group, levels in draft.facts.reading.levels.items():
        ways = draft.budgeted(group)
        for cut in range(1, len(levels)):
            started: Terms = [
                (way.column, float(way.gpus))
                for way in ways
                if (way.act is Act.START or (way.job.hit and way.act in (Act.MIGRATE, Act.REPAIR)))
                and way.job.job.priority >= levels[cut]
            ]
            stopped: Terms = [
                (way.column, float(way.job.held_gpus))
                for way in ways
                if way.act is Act.PREEMPT and not way.job.hit and way.job.job.priority < levels[cut]
            ]
            if not started or not stopped:
                continue
            name = f"O4_handover_{group}_cut_{cut}"
            most = sum(gpus for _, gpus in stopped)
            column = draft.sheet.follows(name, most, _least(started, stopped))
            for side, terms in (("started", started), ("stopped", stopped)):
                draft.sheet.row(f"{name}_{side}", [(column, 1.0), *((c, -g) for c, g in terms)], high=0.0)
            draft.sheet.pay("order", column, 1 / 2 / (len(levels) - 1))


def _least(one: Terms, other: Terms) -> Follow:
    """Return what takes the smaller of two sums."""
    return lambda values: min(amount(one, values), amount(other, values))


def add_envy(draft: Draft) -> None:
    """E1: what each leaf holds beyond what every other one accepts; a row for each pair that could ever bind."""
    target, kinds = draft.facts.target, draft.facts.reading.types
    groups = [leaf.group for leaf in target.leaves]
    if len(groups) < 2:
        return
    reached = [_reached(draft, group) for group in groups]
    runs = [{kind: _runs(draft, group, kind) for kind in kinds} for group in groups]
    for envied, group in enumerate(groups):
        pairs: list[tuple[str, Terms, float, float]] = []
        for envier, other in enumerate(groups):
            if envier == envied:
                continue
            ratio = float(target.entitled[envied] / target.entitled[envier])
            start = float(target.base[envier] - target.biggest[envier]) * ratio
            terms: Terms = [
                (column, float(target.slope[envier, place]))
                for place, kind in enumerate(kinds)
                if (column := runs[envied][kind]) is not None
            ]
            most = sum(slope * draft.sheet.columns[column].upper for column, slope in terms)
            if start + most > 0:
                if (column := reached[envier]) is not None:
                    terms.append((column, -ratio))
                pairs.append((other, terms, start, max(1.0, ratio)))
        if pairs:
            _excess(draft, group, pairs)


def _excess(draft: Draft, group: str, pairs: list[tuple[str, Terms, float, float]]) -> None:
    """Pay for the largest excess any pair finds in what a group holds, in GPUs of the envied."""
    sheet = draft.sheet
    column = sheet.follows(
        f"excess_of_{group}",
        float("inf"),
        lambda values: max(0.0, *(start + amount(terms, values) for _, terms, start, _ in pairs)),
    )
    for other, terms, start, scale in pairs:
        row = [(column, 1 / scale), *((c, -value / scale) for c, value in terms)]
        sheet.row(f"E1_{other}_envies_{group}", row, low=start / scale)
    sheet.pay("envy", column, -1 / 16)


def _total(draft: Draft, name: str, terms: Terms) -> int | None:
    """Add a column for a sum, None for a sum of nothing."""
    if not terms:
        return None
    most = sum(value * draft.sheet.columns[column].upper for column, value in terms)
    total = draft.sheet.follows(name, most, lambda values: amount(terms, values))
    draft.sheet.row(f"E1_{name}", [(total, 1.0), *((c, -value) for c, value in terms)], 0.0, 0.0)
    return total


def _reached(draft: Draft, group: str) -> int | None:
    """Add a column for thr_i: throughput of a leaf, not rounded, reservations included."""
    terms = holding(draft, [group], lambda way: way.gpus * way.job.rates.get(way.kind or "", 0))
    return _total(draft, f"throughput_of_{group}", [(c, milli / MILLI) for c, milli in terms if milli])


def _runs(draft: Draft, group: str, kind: str) -> int | None:
    """Add a column for X_lt: GPUs of a type on which budgeted jobs of a leaf run."""
    terms: Terms = [
        (way.column, float(way.gpus)) for way in draft.budgeted(group) if way.act in RUNS and way.kind == kind
    ]
    return _total(draft, f"gpus_of_{group}_{kind}", terms)
