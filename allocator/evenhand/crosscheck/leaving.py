"""R1, U1, L1: limits of groups, and nobody preempted who is not in the way of what takes the place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evenhand.audit.jobs import JobReading
from evenhand.crosscheck.draft import RUNS, Act, Draft, Way
from evenhand.crosscheck.sheet import Follow, Terms, amount


class Limits:
    """L1: how much each group with a limit may hold."""

    def __init__(self, draft: Draft) -> None:
        reading = draft.facts.reading
        self.draft = draft
        self.bound = {group.id: group.max_gpus for group in reading.state.groups if group.max_gpus is not None}
        for group in self.bound:
            pinned = sum(j.held_gpus for j in reading.jobs.values() if j.pinned and group in self.over(j))
            self.bound[group] = max(self.bound[group], pinned)

    def over(self, job: JobReading) -> list[str]:
        """Return the groups with a limit that a job counts in."""
        if job.group is None:
            return []
        return [group for group in self.draft.facts.reading.tree.path(job.group) if group in self.bound]

    def held(self, group: str) -> list[Way]:
        """Return the ways after which jobs below a group hold GPUs."""
        return [way for way in self.draft.ways if way.act in RUNS and group in self.over(way.job)]


def add_limits(draft: Draft) -> None:
    """L1: no group over its limit, or over what is pinned there."""
    limits = Limits(draft)
    for group, bound in sorted(limits.bound.items()):
        terms = [(way.column, float(way.gpus)) for way in limits.held(group)]
        draft.sheet.row(f"L1_group_{group}", terms, high=float(bound))


def add_victims(draft: Draft) -> None:
    """R1 and U1: a preempted job, put back, would overfill a node or break a limit.

    For a budgeted one only budgeted arrivals count; of unallocated ones what stays where it was. One witness, a
    column of 0 or 1 for each place where it might be in the way, has to be found.
    """
    victims = [way for way in draft.ways if way.act is Act.PREEMPT and not way.job.hit]
    if not victims:
        return
    scene = _Scene(draft)
    for victim in victims:
        job = victim.job
        witnesses: Terms = []
        for name, terms, room, gpus in scene.places(job):
            column = draft.sheet.follows(f"in_the_way_{job.job.id}_{name}", 1.0, _full(terms, room, gpus), whole=True)
            needed = float(room + 1 - gpus)
            if needed > 0:
                draft.sheet.row(f"R1_{job.job.id}_{name}", [*terms, (column, -needed)], low=0.0)
            witnesses.append((column, 1.0))
        draft.sheet.row(f"R1_job_{job.job.id}", [*witnesses, (victim.column, -1.0)], low=0.0)


def _full(terms: Terms, room: int, gpus: int) -> Follow:
    """Return what says whether so many GPUs more would be too many."""
    return lambda values: float(amount(terms, values) + gpus > room + 0.5)


class _Scene:
    """What nodes and groups hold, as victims of either kind see it."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.limits = Limits(draft)
        self.rests: dict[str, Terms] = {}
        self.rests_below: dict[str, Terms] = {group: [] for group in self.limits.bound}
        for crew in draft.crews:
            if crew.first.running and crew.first.live and not crew.first.budgeted:
                for node in crew.first.held:
                    self._rest(crew.first, node)

    def _rest(self, job: JobReading, node: str) -> None:
        """Add a column for what an unallocated job that moves holds on a node where it was."""
        healthy = node in self.draft.facts.reading.healthy
        moved = (Act.MIGRATE,) if healthy else (Act.MIGRATE, Act.REPAIR)
        terms = [
            (columns[node], float(unit))
            for spot, stand in self.draft.stands.items()
            if spot[0] == job.job.id and spot[1] in moved
            for unit, columns in stand.unit.items()
            if node in columns
        ]
        if not terms:
            return
        most = job.held[node]
        sheet = self.draft.sheet
        column = sheet.follows(
            f"rests_{job.job.id}_{node}",
            most,
            lambda values: min(float(most), amount(terms, values)),
            whole=True,
        )
        sheet.row(f"R1_rests_{job.job.id}_{node}", [(column, 1.0), *((c, -g) for c, g in terms)], high=0.0)
        self.rests.setdefault(node, []).append((column, 1.0))
        for group in self.limits.over(job):
            self.rests_below[group].append((column, 1.0))

    def places(self, victim: JobReading) -> Iterator[tuple[str, Terms, int, int]]:
        """Return where a victim might be in the way: name, what is held there, its room, the victim's GPUs."""
        reading = self.draft.facts.reading
        for node, gpus in victim.held.items():
            yield f"node_{node}", self._on(node, victim.budgeted), reading.room[node], gpus
        for group in self.limits.over(victim):
            terms = self._below(group, victim.budgeted)
            yield f"group_{group}", terms, self.limits.bound[group], victim.held_gpus

    def _on(self, node: str, budgeted: bool) -> Terms:
        """Return what a node holds: all of it, or without unallocated arrivals."""
        loads = self.draft.loads.get(node, ())
        seen = [load for load in loads if not (budgeted and load.arrives and not load.crew.first.budgeted)]
        terms = [term for load in seen for term in load.terms]
        return terms + self.rests.get(node, []) if budgeted else terms

    def _below(self, group: str, budgeted: bool) -> Terms:
        """Return what a group holds: all of it, or without unallocated arrivals."""
        ways: Sequence[Way] = self.limits.held(group)
        if not budgeted:
            return [(way.column, float(way.gpus)) for way in ways]
        terms = [(w.column, float(w.gpus if w.job.budgeted else w.stays)) for w in ways]
        return terms + self.rests_below[group]
