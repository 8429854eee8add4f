"""What O3 owes whole: gangs larger than their leaf's entitlement at the lowest group that covers it, debug runs, jobs robbed
of a node."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from math import fsum, inf

from evenhand.audit.amounts import TOLERANCE
from evenhand.audit.jobs import JobReading
from evenhand.audit.reading import MILLI, Reading


def owed_gangs(
    reading: Reading,
    part: Mapping[str, float],
    entitled: Mapping[str, float],
    leaf: Mapping[str, float],
    wanted: Mapping[str, float],
) -> tuple[str, ...]:
    """Return the ids of what is owed whole.

    Parameters
    ----------
    reading : Reading
        The state.
    part : mapping of str to float
        What the shares on the way down make of the whole for each leaf that may hold anything.
    entitled, leaf, wanted : mapping of str to float
        What groups and their leaves are entitled to, and what leaves could hold, charged GPUs.
    """
    waiting: dict[str | None, list[JobReading]] = {}
    for group, members in reading.members.items():
        most = leaf[group] + TOLERANCE
        large = {kind for kind in reading.kinds[group] if kind.demand / MILLI > most}
        larger = [job for job in members if job.kind in large] if large else []
        above = reading.tree.path(group)[0 if reading.tree.below(group) else 1 :] if larger else ()
        for job in larger:
            size = job.demand / MILLI
            covers = next((g for g in above if entitled[g] >= size - TOLERANCE), None)
            waiting.setdefault(covers, []).append(job)
    below: dict[str | None, list[str]] = {}
    content: dict[str | None, list[float]] = {}
    for group in reading.members:
        full = wanted[group] <= leaf[group] + TOLERANCE
        for above_it in waiting.keys() & {None, *reading.tree.path(group)}:
            below.setdefault(above_it, []).append(group)
            if full:
                content.setdefault(above_it, []).append(leaf[group])
    owed: list[str] = []
    whole = sum(reading.capacity[kind] * reading.charge[kind] for kind in reading.capacity) / MILLI
    for at, jobs in waiting.items():
        beside = (whole if at is None else entitled[at]) - fsum(content.get(at, ()))
        fitting = [job for job in jobs if job.demand / MILLI <= beside + TOLERANCE]
        hungry = [group for group in below[at] if wanted[group] > leaf[group] + TOLERANCE]
        for rivals, gangs in ((hungry, fitting), (below[at], jobs)):
            asked = _asked(reading, part, rivals, gangs)
            if asked is not None:
                owed.append(asked)
                break
    return tuple(sorted({*owed, *_robbed(reading), *_debug_runs(reading)}))


def _asked(reading: Reading, part: Mapping[str, float], rivals: list[str], gangs: list[JobReading]) -> str | None:
    """Return the first gang of the leaf that stands first among rivals, if it still does with the gang charged."""

    def stands(group: str, hours: float = 0.0) -> tuple[float, str]:
        used = max(0.0, reading.usage[group]) + hours
        return float(f"{used / part[group]:.8e}") if part.get(group, 0.0) > 0 else inf, group

    first = min(rivals, key=stands, default=None)
    mine = [job for job in gangs if job.group == first]
    if first is None or not mine:
        return None
    now = reading.state.now
    job = min(mine, key=lambda j: (-j.job.priority, min(j.job.submitted_at, now), j.job.id))
    charged = stands(first, job.demand / MILLI * job.length_s / 3600)
    return job.job.id if all(charged < stands(other) for other in rivals if other != first) else None


def is_debug(reading: Reading, job: JobReading) -> bool:
    """Return whether a job counts as a debug run: short contract, not resumable, no larger than the largest node (O3)."""
    short = job.budgeted and 0 < job.length_s <= reading.policy.debug_contract_s
    return short and not job.job.contract.resumable and job.gpus <= reading.largest_node


def _inside(reading: Reading, job: JobReading) -> bool:
    """Return whether a budgeted job that has started is inside its contract."""
    return job.ends_at is not None and reading.state.now < job.ends_at


def _claims_a_turn(reading: Reading, job: JobReading) -> bool:
    """Return whether a debug run is hit, inside its contract, or waits and fits a type of which any GPU is usable."""
    if job.pending:
        return any(reading.capacity[kind] > 0 for kind in job.fits)
    return job.hit or _inside(reading, job)


def _debug_runs(reading: Reading) -> list[str]:
    """Return the debug runs that are owed, who asks for least in its own group first, up to `debug_share` of all GPUs."""
    now = reading.state.now
    turns: list[tuple[int, str, int, JobReading]] = []
    longest_s = reading.policy.debug_contract_s
    for group, members in reading.members.items():
        short = [job for job in members if job.length_s <= longest_s]  # most are not
        runs = [job for job in short if is_debug(reading, job) and _claims_a_turn(reading, job)]
        runs.sort(key=lambda j: (-j.priority, min(j.job.submitted_at, now), j.job.id))
        asked = accumulate(job.gpus for job in runs)
        turns += [(sum_, group, at, job) for at, (sum_, job) in enumerate(zip(asked, runs, strict=True))]
    most = reading.policy.debug_share * sum(reading.capacity.values())
    begun = [job for *_, job in turns if not job.pending and not job.hit]
    waits = [job for *_, job in sorted(turns, key=lambda turn: turn[:3]) if job.pending or job.hit]
    waits = [job for job in waits if job.gpus <= most]
    sums = accumulate((job.gpus for job in waits), initial=sum(job.gpus for job in begun))
    next(sums)
    return [job.job.id for job in begun] + [job.job.id for job, taken in zip(waits, sums, strict=True) if taken <= most]


def _robbed(reading: Reading) -> list[str]:
    """Return the budgeted jobs that lost a node inside their contract."""
    return [job.job.id for job in reading.holding if job.hit and job.budgeted and _inside(reading, job)]
