"""O3's owed gangs: larger than their leaf's entitlement, each owed at the lowest group that covers it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from math import fsum, inf

from evenhand.audit.amounts import TOLERANCE
from evenhand.audit.jobs import JobReading
from evenhand.audit.reading import MILLI, Reading


def owed_gangs(
    reading: Reading,
    usage: Mapping[str, float],
    entitled: Mapping[str, float],
    leaf: Mapping[str, float],
    wanted: Mapping[str, float],
) -> tuple[str, ...]:
    """Return the ids of the owed gangs.

    Parameters
    ----------
    reading : Reading
        The state.
    usage, entitled, leaf, wanted : mapping of str to float
        Charged GPU-hours below each group, what groups and their leaves are entitled to, and what leaves could hold,
        charged GPUs.
    """
    waiting: dict[str | None, list[JobReading]] = {}
    for group, members in reading.members.items():
        above = reading.tree.path(group)[0 if reading.tree.below(group) else 1 :]
        for job in members:
            size = job.demand / MILLI
            if size <= leaf[group] + TOLERANCE:
                continue
            covers = next((g for g in above if entitled[g] >= size - TOLERANCE), None)
            waiting.setdefault(covers, []).append(job)
    everybody = frozenset(reading.members)
    hungry = frozenset(group for group in everybody if wanted[group] > leaf[group] + TOLERANCE)
    firsts = {rivals: _first_leaves(reading, usage, rivals) for rivals in {hungry, everybody}}
    owed: list[str] = []
    whole = sum(reading.capacity[kind] * reading.charge[kind] for kind in reading.capacity) / MILLI
    content: dict[str | None, list[float]] = {}
    for group in everybody - hungry:
        for above_it in (None, *reading.tree.path(group)):
            content.setdefault(above_it, []).append(leaf[group])
    for at, jobs in waiting.items():
        beside = (whole if at is None else entitled[at]) - fsum(content.get(at, ()))
        fitting = [job for job in jobs if job.demand / MILLI <= beside + TOLERANCE]
        for rivals, gangs in ((hungry, fitting), (everybody, jobs)):
            asked = _asked(reading, usage, firsts[rivals], rivals, at, gangs)
            if asked is not None:
                owed.append(asked)
                break
    return tuple(sorted({*owed, *_robbed(reading)}))


def _asked(
    reading: Reading,
    usage: Mapping[str, float],
    firsts: Mapping[str | None, str],
    rivals: frozenset[str],
    at: str | None,
    gangs: list[JobReading],
) -> str | None:
    """Return the first gang of the leaf that stands first among rivals, if it still does with the gang charged."""
    mine = [job for job in gangs if job.group == firsts.get(at)]
    if not mine:
        return None
    now = reading.state.now
    job = min(mine, key=lambda j: (-j.job.priority, min(j.job.submitted_at, now), j.job.id))
    return job.job.id if _stays_first(reading, usage, firsts, rivals, at, job) else None


def _robbed(reading: Reading) -> list[str]:
    """Return the budgeted jobs that lost a node inside their contract."""
    return [
        job.job.id
        for members in reading.members.values()
        for job in members
        if job.hit
        and job.started_at is not None
        and reading.state.now < job.started_at + timedelta(seconds=job.length_s)
    ]


def _stays_first(
    reading: Reading,
    usage: Mapping[str, float],
    asked: Mapping[str | None, str],
    rivals: frozenset[str],
    at: str | None,
    job: JobReading,
) -> bool:
    """Say whether a job's leaf would still stand first below `at`, were one contract of the job charged."""
    tree, leaf = reading.tree, str(job.group)
    hours = job.demand / MILLI * job.length_s / 3600
    down = list(reversed(tree.path(leaf)))
    down = down if at is None else down[down.index(at) + 1 :]
    for above, child in zip([at, *down], [*down, None], strict=True):
        if child is None and not tree.below(leaf):
            break
        ranks: list[tuple[float, str, bool]] = []
        for other in tree.below(above):
            if other in asked:
                used = usage[other] + (hours if other == child else 0.0)
                weight = tree.weight[other]
                ranks.append((used / weight if weight > 0 else inf, other, other == child))
        if above is not None and above in rivals and tree.below(above):
            used = max(0.0, reading.usage[above]) + (hours if child is None else 0.0)
            ranks.append((used / tree.own_weight(above), above, child is None))
        if not min(ranks)[2]:
            return False
    return True


def _first_leaves(reading: Reading, usage: Mapping[str, float], rivals: frozenset[str]) -> dict[str | None, str]:
    """Return, by group (None: the cluster), the leaf below it that stands first of some."""
    tree = reading.tree
    first: dict[str | None, str] = {}
    for group in (*reversed(tree.order), None):
        ranked: list[tuple[float, str, str]] = []
        for child in tree.below(group):
            if child in first:
                weight = tree.weight[child]
                ranked.append((usage[child] / weight if weight > 0 else inf, child, first[child]))
        if group is not None and group in rivals:
            ranked.append((max(0.0, reading.usage[group]) / tree.own_weight(group), group, group))
        if ranked:
            first[group] = min(ranked)[2]
    return first
