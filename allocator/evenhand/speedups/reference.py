"""Which type the others are compared with, and what should be measured to compare more (rule V2)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence

from evenhand.speedups.evidence import Cell, GroupEvidence
from evenhand_models import GroupSpeedup, HintCode, ProfileHint, SpeedupFlag, SpeedupPolicy

_OFTEN = 0.5
"""Types observed together with others in at least so much of the most gangs of any type may be the reference."""
_SCATTERED, _REPEATS = 3.0, 4
"""So many times the expected noise, known to so many degrees of freedom, is scatter worth a word."""
_WRONG = (SpeedupFlag.OVERDECLARED, SpeedupFlag.UNDERDECLARED)


def reference_of(evidence: GroupEvidence, policy: SpeedupPolicy) -> str:
    """The type a group's others are compared with: the policy's, or of those most observed the slowest.

    One convention for all, since two types alone cannot say which of them is wrong: that the fast one is declared
    ten times too high is the same as that the slow one is declared ten times too low. Slow by what was observed:
    what is declared must not choose what it is judged by.
    """
    linked: dict[str, int] = defaultdict(int)
    pace: dict[str, list[float]] = defaultdict(list)
    for gang in evidence.gangs:
        rates = {name: cell.rate for name, cell in gang.items() if cell.declared}
        mean = sum(rates.values()) / max(1, len(rates))
        for name, value in rates.items():
            linked[name] += len(rates) > 1
            pace[name].append(value - mean)
    if policy.reference_type in linked:
        return policy.reference_type
    if not linked:
        names = {cell.gpu_type for gang in evidence.gangs for cell in gang.values()}
        return policy.reference_type or min(names)
    most = max(linked.values())
    often = [name for name, count in linked.items() if count >= _OFTEN * most]
    return min(often, key=lambda name: (round(sum(pace[name]) / len(pace[name]), 9), name))


def own_references(evidence: GroupEvidence, reference: str) -> dict[str, GroupEvidence]:
    """What was observed of each job that cannot be compared with its group's reference type, but with another.

    Else leaving out a type that the rest of the group declares would be a way round the audit.
    """
    able: set[str] = set()
    gangs: dict[str, list[Mapping[str, Cell]]] = defaultdict(list)
    for gang in evidence.gangs:
        declared = {name for name, cell in gang.items() if cell.declared}
        job = next(iter(gang.values())).job
        if len(declared) > 1:
            gangs[job].append(gang)
            if reference in declared:
                able.add(job)
    return {
        job: GroupEvidence(evidence.group, tuple(own), evidence.noise)
        for job, own in sorted(gangs.items())
        if job not in able
    }


def hints_of(
    evidence: GroupEvidence,
    reference: str,
    entries: Sequence[GroupSpeedup],
    policy: SpeedupPolicy,
    apart: Container[str] = (),
) -> list[ProfileHint]:
    """What should be measured of a group, the reference type above all; jobs that stand apart are judged without it."""
    wanted = policy.reference_type or reference
    group = evidence.group
    hints = []
    if lone := [job for job in _never_on(evidence, wanted) if job not in apart]:
        message = (
            f"{len(lone)} of the observed jobs of group {group!r} were never observed on the reference type {wanted!r} "
            f"at the same size as on another: nothing they declare can be checked until they are."
        )
        hints.append(_hint(group, wanted, HintCode.REFERENCE_UNMEASURED, lone, message))
    short = _short_of(evidence, reference, policy)
    if short and any(not entry.enough and _lacks_reference(entry, policy) for entry in entries):
        message = (
            f"group {group!r} needs {policy.min_observations} observations and {policy.min_seconds} s on the "
            f"reference type {reference!r} for a finding; some types are compared with less."
        )
        hints.append(_hint(group, reference, HintCode.REFERENCE_SHORT, short, message))
    if alike := _off_alike(entries):
        off = ", ".join(f"{entry.gpu_type!r}" for entry in alike)
        message = (
            f"the types {off} of group {group!r} are all {alike[0].flag} against {reference!r} by about the "
            f"same: rather what is declared for {reference!r} is wrong."
        )
        jobs = sorted({cell.job for gang in evidence.gangs for cell in gang.values() if reference in gang})
        hints.append(_hint(group, reference, HintCode.REFERENCE_SUSPECT, jobs, message))
    if wild := _scattered(evidence, policy):
        most = max(evidence.noise[job].scatter for job in wild)
        message = (
            f"observations of {len(wild)} jobs of group {group!r} scatter by up to {most:.2f} in logarithms, where "
            f"{policy.noise:g} is expected: a wrong number can hide under that."
        )
        hints.append(_hint(group, reference, HintCode.SCATTERED, wild, message))
    return hints


def _hint(group: str, gpu_type: str, code: HintCode, jobs: Iterable[str], message: str) -> ProfileHint:
    return ProfileHint(group=group, gpu_type=gpu_type, code=code, jobs=tuple(jobs), message=message)


def _never_on(evidence: GroupEvidence, reference: str) -> list[str]:
    """Jobs that could be compared with the reference, had they been observed on it."""
    there: set[str] = set()
    elsewhere: set[str] = set()
    for gang in evidence.gangs:
        cells: list[Cell] = list(gang.values())
        (there if reference in gang else elsewhere).update(cell.job for cell in cells)
    return sorted(elsewhere - there)


def _short_of(evidence: GroupEvidence, reference: str, policy: SpeedupPolicy) -> list[str]:
    """Jobs with less than enough on the reference type."""
    count: dict[str, int] = defaultdict(int)
    seconds: dict[str, float] = defaultdict(float)
    for gang in evidence.gangs:
        if reference in gang:
            count[gang[reference].job] += gang[reference].count
            seconds[gang[reference].job] += gang[reference].seconds
    return sorted(j for j in count if count[j] < policy.min_observations or seconds[j] < policy.min_seconds)


def _lacks_reference(entry: GroupSpeedup, policy: SpeedupPolicy) -> bool:
    return entry.reference_observations < policy.min_observations or entry.reference_seconds < policy.min_seconds


def _scattered(evidence: GroupEvidence, policy: SpeedupPolicy) -> list[str]:
    """Jobs whose observations scatter far more than expected."""
    far = _SCATTERED * policy.noise
    return [job for job, n in sorted(evidence.noise.items()) if n.repeats >= _REPEATS and n.scatter > far]


def _off_alike(entries: Sequence[GroupSpeedup]) -> list[GroupSpeedup]:
    """Two types or more, if all that are judged are off to the same side by intervals with a point in common."""
    judged = [entry for entry in entries if entry.enough]
    if len(judged) < 2 or len({entry.flag for entry in judged}) > 1 or judged[0].flag not in _WRONG:
        return []
    lows = [entry.low for entry in judged if entry.low is not None]
    highs = [entry.high for entry in judged if entry.high is not None]
    return judged if max(lows) <= min(highs) else []
