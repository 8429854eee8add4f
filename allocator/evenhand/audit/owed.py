"""O3's owed gangs: larger than their leaf's entitlement, each owed at the lowest group that covers it."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from evenhand.audit.amounts import TOLERANCE
from evenhand.audit.jobs import JobReading
from evenhand.audit.reading import MILLI, Reading


def owed_gangs(
    reading: Reading, usage: Mapping[str, float], entitled: Mapping[str, float], leaf: Mapping[str, float]
) -> tuple[str, ...]:
    """Return the ids of the owed gangs.

    Parameters
    ----------
    reading : Reading
        The state.
    usage, entitled, leaf : mapping of str to float
        Charged GPU-hours below each group, and what groups and their leaves are entitled to, charged GPUs.
    """
    asked = _first_leaves(reading, usage)
    waiting: dict[str | None, list[JobReading]] = {}
    for group, members in reading.members.items():
        above = reading.tree.path(group)[0 if reading.tree.below(group) else 1 :]
        for job in members:
            size = job.demand / MILLI
            if size <= leaf[group] + TOLERANCE:
                continue
            covers = next((g for g in above if entitled[g] >= size - TOLERANCE), None)
            if asked.get(covers) == group:
                waiting.setdefault(covers, []).append(job)
    now = reading.state.now
    first = (
        min(jobs, key=lambda j: (-j.job.priority, min(j.job.submitted_at, now), j.job.id))
        for jobs in waiting.values()
    )
    return tuple(sorted(job.job.id for job in first))


def _first_leaves(reading: Reading, usage: Mapping[str, float]) -> dict[str | None, str]:
    """Return, by group (None: the cluster), the leaf below it that stands first of those with work."""
    tree = reading.tree
    first: dict[str | None, str] = {}
    for group in (*reversed(tree.order), None):
        ranked: list[tuple[float, str, str]] = []
        for child in tree.below(group):
            if child in first:
                weight = tree.weight[child]
                ranked.append((usage[child] / weight if weight > 0 else inf, child, first[child]))
        if group is not None and group in reading.members:
            ranked.append((max(0.0, reading.usage[group]) / tree.own_weight(group), group, group))
        if ranked:
            first[group] = min(ranked)[2]
    return first
