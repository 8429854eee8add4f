"""A2, R1, U1, L1: who leaves, for whom, in which order, and under which limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from evenhand.audit.jobs import JobReading
from evenhand.audit.outcomes import Outcome
from evenhand.audit.reading import Reading
from evenhand.audit.report import Finding
from evenhand_models import Action

PREEMPT = Action.PREEMPT  # to look an enum's member up for every job takes long
NOBODY: frozenset[str] = frozenset()


def check_order(reading: Reading, listed: Sequence[Outcome]) -> Iterator[Finding]:
    """A2: who counts on GPUs of leavers names them all; the others fit at once."""
    leavers: dict[str, set[str]] = {}
    free = dict(reading.room)
    for outcome in listed:
        if outcome.job.pending:
            continue
        for name, gpus in outcome.job.held.items():
            free[name] = free.get(name, 0) - gpus
        for name in outcome.leaves:
            leavers.setdefault(name, set()).add(outcome.job.job.id)
    all_leavers = set().union(*leavers.values())
    at_once: dict[str, int] = {}
    for outcome in listed:
        after, arrives = outcome.answer.after, outcome.arrives
        if not after and not arrives:
            continue
        job, named = outcome.job.job.id, set(after)
        if named and not arrives:
            yield Finding("A2", f"job {job!r} waits for others to leave, but comes to no node.", (job,))
        for stranger in sorted(named - all_leavers | named & {job}) if named else ():
            yield Finding("A2", f"job {job!r} waits for {stranger!r}, which does not leave.", (job, stranger))
        for name, gpus in arrives.items():
            others = leavers.get(name, NOBODY) - {job}
            if not others or not others <= named:
                at_once[name] = at_once.get(name, 0) + gpus
    for name in sorted(at_once):
        if at_once[name] > free.get(name, 0):
            message = (
                f"node {name!r} has {max(0, free.get(name, 0))} GPUs free at once, but {at_once[name]} are "
                "given to jobs that do not wait for all who leave it."
            )
            yield Finding("A2", message, (name,))


@dataclass(frozen=True, slots=True)
class Held:
    """What jobs hold by node and by group with a limit, once the plan is applied.

    Attributes
    ----------
    nodes, groups : mapping of str to int
        GPUs by node, and by group with `max_gpus`, everything below it included.
    """

    nodes: Mapping[str, int]
    groups: Mapping[str, int]


class _Limits:
    """L1's bounds: what each group with a limit may hold."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        most = {group.id: group.max_gpus for group in reading.state.groups if group.max_gpus is not None}
        pinned: Counter[str] = Counter()
        self.above = {group: [g for g in reading.tree.path(group) if g in most] for group in reading.tree.order}
        for job in reading.holding if most else ():
            if job.pinned:
                for group in self.over(job):
                    pinned[group] += job.held_gpus
        self.bound = {group: max(gpus, pinned[group]) for group, gpus in most.items()}

    def over(self, job: JobReading) -> list[str]:
        """Return the groups with a limit that a job counts in."""
        return [] if job.group is None else self.above[job.group]

    def held(self, listed: Sequence[Outcome], *, budgeted_only: bool) -> Held:
        """Count what is held: what is kept, and the arrivals (all, or the budgeted ones only)."""
        nodes: dict[str, int] = {}
        groups: dict[str, int] = {}
        for outcome in listed:
            after: Mapping[str, int] = outcome.after
            if budgeted_only and not outcome.job.budgeted:
                after = {name: gpus - outcome.arrives.get(name, 0) for name, gpus in after.items()}
            for name, gpus in after.items():
                nodes[name] = nodes.get(name, 0) + gpus
            for group in self.over(outcome.job):
                groups[group] = groups.get(group, 0) + sum(after.values())
        return Held(nodes, groups)


def check_limits_and_victims(reading: Reading, listed: Sequence[Outcome]) -> Iterator[Finding]:
    """L1, R1, U1: limits hold, and whoever is preempted was in the way of what takes its place."""
    victims = [o.job for o in listed if o.action is PREEMPT and not o.job.hit]
    limits = _Limits(reading)
    if not victims and not limits.bound:
        return
    everything = limits.held(listed, budgeted_only=False)
    for group, bound in limits.bound.items():
        if everything.groups.get(group, 0) > bound:
            message = f"group {group!r} is to hold {everything.groups[group]} GPUs, above its limit of {bound}."
            yield Finding("L1", message, (group,))
    if not victims:
        return
    budgeted = limits.held(listed, budgeted_only=True)
    for victim in victims:
        name = victim.job.id
        if not _in_the_way(reading, limits, victim, everything):
            yield Finding("R1", f"job {name!r} is preempted, but nothing in the plan needs its GPUs.", (name,))
        elif victim.budgeted and not _in_the_way(reading, limits, victim, budgeted):
            yield Finding("U1", f"budgeted job {name!r} is preempted for unallocated work.", (name,))


def _in_the_way(reading: Reading, limits: _Limits, victim: JobReading, held: Held) -> bool:
    """Say whether a victim, put back where it was, would overfill a node or break a limit."""
    overfills = any(held.nodes.get(name, 0) + gpus > reading.room.get(name, 0) for name, gpus in victim.held.items())
    return overfills or any(
        held.groups.get(group, 0) + victim.held_gpus > limits.bound[group] for group in limits.over(victim)
    )
