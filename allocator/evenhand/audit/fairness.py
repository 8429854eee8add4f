"""T2 to T4: whether a target fits the cluster and its users, and floors, envy and claims hold."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from evenhand.audit.classes import best_split, brought, gain_of_more, most_held
from evenhand.audit.dues import Dues
from evenhand.audit.envy import PairEnvy
from evenhand.audit.numbers import slack
from evenhand.audit.reading import Reading
from evenhand.audit.report import Finding
from evenhand.audit.target import Bundle, Leaf, Target
from evenhand_models import Objective, Plan

_RISING = (Objective.NASH, Objective.EQUAL_THROUGHPUT, Objective.MAX_MIN)
"""Objectives that leave no GPU to a leaf where another, below its cap, should have it."""
ROUGH = 0.01
"""Share of its floor by which a leaf may envy another under a target that is not called proven."""
_TRIFLE = 1e-6
"""Throughput of a GPU up to which it counts as of no use."""
_NEGLIGIBLE = 1e-9
"""Part of all entitlements up to which a leaf is given its slice."""


def bundles_of(reading: Reading, plan: Plan) -> dict[str, dict[str, float]]:
    """Return the target of each group's own leaf: what its report says, less those of its child groups."""
    said = {report.group: report.target for report in plan.groups}
    found: dict[str, dict[str, float]] = {}
    for group in reading.tree.order:
        own = dict(said[group])
        for child in reading.tree.below(group):
            for kind, gpus in said[child].items():
                own[kind] = own.get(kind, 0.0) - gpus
        found[group] = own
    return found


def check_target(
    reading: Reading, dues: Dues, target: Target, given: dict[str, dict[str, float]], *, proven: bool = True
) -> Iterator[Finding]:
    """Check a target.

    Parameters
    ----------
    given : dict
        What the plan gives to every group's own leaf.
    proven : bool
        Whether the plan calls it best by its objective; one that is not may leave a little envy and claims.
    """
    yield from _check_capacity(reading, given)
    listed = {leaf.group for leaf in target.leaves}
    for group, bundle in given.items():
        if group not in listed and any(abs(gpus) > slack() for gpus in bundle.values()):
            yield Finding("T4", f"group {group!r} has a target, but its own jobs are owed nothing.", (group,))
    for leaf in target.leaves:
        yield from _check_usable(leaf, target.bundle[leaf.group])
        yield from _check_floor(leaf, target, reading.policy.objective)
    if reading.policy.objective is Objective.ENVY_FREE:
        yield from _check_envy(reading, target, 0.0 if proven else ROUGH)
    if reading.policy.objective in _RISING and proven:
        yield from _check_rise(reading, target, given)


def _check_capacity(reading: Reading, given: dict[str, dict[str, float]]) -> Iterator[Finding]:
    """No more of a type in the targets than there is (T4)."""
    total: dict[str, float] = {}
    for bundle in given.values():
        for kind, gpus in bundle.items():
            total[kind] = total.get(kind, 0.0) + gpus
    for kind, gpus in sorted(total.items()):
        there = reading.capacity.get(kind, 0)
        if gpus > there + slack(there):
            yield Finding("T4", f"targets hold {gpus:g} GPUs of {kind!r}, the cluster {there}.", (kind,))


def _check_usable(leaf: Leaf, bundle: Bundle) -> Iterator[Finding]:
    """A target holds only what the leaf can use (T4)."""
    for kind, gpus in bundle.items():
        if gpus < -slack(leaf.cap):
            yield Finding("T4", f"the target of {leaf.group!r} holds {gpus:g} GPUs of {kind!r}.", (leaf.group, kind))
        if gpus > slack() and kind not in leaf.slope:
            message = f"the target of {leaf.group!r} holds {gpus:g} GPUs of {kind!r}, of no use to it."
            yield Finding("T4", message, (leaf.group, kind))
    total, used = sum(bundle.values()), most_held(leaf.classes, bundle)
    if total > used + slack(leaf.cap):
        message = f"the target of {leaf.group!r} holds {total:g} GPUs, its jobs can hold {used:g} of them."
        yield Finding("T4", message, (leaf.group,))


def _check_floor(leaf: Leaf, target: Target, objective: Objective) -> Iterator[Finding]:
    """Sharing incentive under `envy_free` and `max_min`, the slice itself under `fair_share` (T2, T4)."""
    bundle, value = target.bundle[leaf.group], target.brings[leaf.group]
    if objective in (Objective.ENVY_FREE, Objective.MAX_MIN) and value < leaf.floor - slack(leaf.floor):
        message = f"the target of {leaf.group!r} brings {value:g}, less than its floor of {leaf.floor:g}."
        yield Finding("T2", message, (leaf.group,))
    if objective is Objective.FAIR_SHARE:
        over = any(gpus > leaf.slice.get(kind, 0.0) + slack(gpus) for kind, gpus in bundle.items())
        if over or abs(value - leaf.floor) > slack(leaf.floor):
            yield Finding("T4", f"the target of {leaf.group!r} is not its slice.", (leaf.group,))


def missed_by_envy(reading: Reading, target: Target) -> float:
    """Return by how much leaves would gain from each other's scaled bundles, in sum over pairs (T3)."""
    envy = PairEnvy.of_target(reading, target)
    if envy is None:
        return 0.0
    floors = np.array([leaf.floor for leaf in target.leaves])
    rounding = np.divide(slack(), floors, out=np.ones_like(floors), where=floors > 0)
    return float(sum(envy.most[row, column] * floors[row] for row, column in envy.beyond(rounding[:, None])))


def _check_envy(reading: Reading, target: Target, share: float) -> Iterator[Finding]:
    """No leaf would gain more than a share of its floor from another's target scaled to its entitlement (T3, T4)."""
    envy = PairEnvy.of_target(reading, target)
    if envy is None:
        return
    floors = np.array([leaf.floor for leaf in target.leaves])[:, None]
    rounding = slack() * np.maximum(np.maximum(1.0, target.entitled[:, None] / target.entitled[None, :]), floors)
    limits = share + np.divide(rounding, floors, out=np.ones_like(rounding), where=floors > 0)
    for envious, envied in envy.beyond(limits):
        one, other = target.leaves[envious], target.leaves[envied]
        by = envy.most[envious, envied] * one.floor
        message = f"the target leaves {one.group!r} envious of {other.group!r} by {by:g}."
        yield Finding("T3", message, (one.group, other.group))


def _check_rise(reading: Reading, target: Target, given: dict[str, dict[str, float]]) -> Iterator[Finding]:
    """Necessary for the best, and no program needed: no leaf has a claim to a sliver of a type (T4)."""
    objective, total = reading.policy.objective, float(target.entitled.sum())
    splits = {leaf.group: best_split(leaf.classes, target.bundle[leaf.group]) for leaf in target.leaves}
    value = {leaf.group: brought(leaf.classes, splits[leaf.group]) for leaf in target.leaves}
    used = {kind: sum(bundle.get(kind, 0.0) for bundle in given.values()) for kind in reading.types}
    best_off = {kind: _best_off(objective, target, value, kind) for kind in reading.types}
    for leaf in target.leaves:
        if leaf.entitled <= _NEGLIGIBLE * total:
            continue
        own, split = value[leaf.group], splits[leaf.group]
        room = min(split.spare) > slack(leaf.cap)
        if objective is Objective.NASH and room and own < leaf.floor - slack(leaf.floor):
            message = f"the target of {leaf.group!r} brings {own:g}, less than its floor of {leaf.floor:g}."
            yield Finding("T2", message, (leaf.group,))
        for kind, gain in gain_of_more(leaf.classes, split).items():
            there = reading.capacity.get(kind, 0)
            if gain <= _TRIFLE or there == 0:
                continue
            if used[kind] < there - slack(there):
                message = f"the target leaves GPUs of {kind!r} free that {leaf.group!r} could use."
                yield Finding("T4", message, (leaf.group, kind))
            due = best_off[kind][0] * _measure(objective, leaf, gain)
            if own < due - 10 * slack(due):
                other = best_off[kind][1]
                message = f"the target brings {leaf.group!r} {own:g}; {other!r} holds {kind!r}, at whose level it has {due:g}."
                yield Finding("T4", message, (leaf.group, other))


def _measure(objective: Objective, leaf: Leaf, gain: float) -> float:
    """Return what values are held against where a type is divided: who has least for it has a claim (T4).

    Parameters
    ----------
    gain : float
        What a sliver of the type is worth to the leaf.
    """
    if objective is Objective.MAX_MIN:
        return leaf.floor
    return leaf.entitled * (gain if objective is Objective.NASH else 1.0)


def _best_off(objective: Objective, target: Target, value: dict[str, float], kind: str) -> tuple[float, str]:
    """Return the highest level of those who hold a type, and whose it is; 0 if nobody holds it."""
    levels = [
        (value[leaf.group] / measure, leaf.group)
        for leaf in target.leaves
        if target.bundle[leaf.group].get(kind, 0.0) > 10 * slack(leaf.cap)
        and (worth := max(one.speed.get(kind, 0.0) for one in leaf.classes)) > 0
        and (measure := _measure(objective, leaf, worth)) > 0
    ]
    return max(levels, default=(0.0, ""))
