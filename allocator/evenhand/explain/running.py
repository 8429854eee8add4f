"""Why a running job stays, moves, grows or shrinks (rules P1, R1, R2, G4)."""

from __future__ import annotations

from functools import cached_property

from evenhand.explain.aftermath import Aftermath
from evenhand.explain.losses import lost_nodes
from evenhand.explain.starting import Fares
from evenhand.explain.words import gpus, named, number, reason, stamp_s
from evenhand.outcome import Decision, Move, arrivals
from evenhand_models import Reason, ReasonCode


class Running:
    """Explains what happens to jobs that run and go on, and to those already on their way out."""

    def __init__(self, aftermath: Aftermath, fares: Fares) -> None:
        self._a = aftermath
        self._s = aftermath.snapshot
        self._fares = fares

    def _ids(self, jobs: list[int]) -> list[str]:
        return [self._s.jobs[j].id for j in jobs]

    def _names(self, nodes: list[int]) -> list[str]:
        return [self._s.nodes[n].name for n in nodes if n >= 0]

    def _held(self, d: Decision) -> str:
        return gpus(d.gpus, self._s.types[d.gpu_type] if d.gpu_type >= 0 else "")

    def keep(self, job: int) -> tuple[Reason, ...]:
        """Say why it stays where it is."""
        s, d = self._s, self._a.decisions[job]
        held = self._held(d)
        if s.orphan[job]:
            message = f"Its group {s.jobs[job].group} is not in the tree: it stays on {held}, counted nowhere."
            return (reason(ReasonCode.PROTECTED, message),)
        if s.hit[job]:
            lost, refs = lost_nodes(s, job)
            message = f"{lost}, but what is left holds this job: it stays on {held}."
            return (reason(ReasonCode.NODE_LOSS, message, refs),)
        if s.pinned[job]:
            end, contract = stamp_s(self._a.protected_until(job)), int(s.contract_s[job])
            return (reason(ReasonCode.PROTECTED, f"Protected until {end} by its contract of {contract} s on {held}."),)
        if not s.budgeted[job]:
            return (reason(ReasonCode.BEST_USE, f"Unallocated use of {held} that no allocated work takes."),)
        ended = stamp_s(float(s.started_s[job]) + float(s.contract_s[job]))
        best = f"no other use of its {held} is better"
        if not self._a.optimal:
            best = f"no better use of its {held} was found"
        g = int(s.group[job])
        message = f"Past its protection since {ended}, and {best}; {self._fares.of(g)}."
        return (reason(ReasonCode.BEST_USE, message, [s.tree.ids[g]]),)

    @cached_property
    def _awaited(self) -> dict[int, list[int]]:
        """Arrivals that wait for each leaver."""
        found: dict[int, list[int]] = {}
        for j, waits in sorted(self._a.after.items()):
            for k in waits:
                found.setdefault(k, []).append(j)
        return found

    def terminating(self, job: int) -> tuple[Reason, ...]:
        """Say what becomes of the GPUs of a job on its way out (S11)."""
        count = sum(n for _, n in self._s.placement[job])
        names = self._ids(self._awaited.get(job, []))
        who = f" and {named('job', names)} {'waits' if len(names) == 1 else 'wait'} for them" if names else ""
        come = "comes" if count == 1 else "come"
        message = f"On its way out: its {gpus(count)} {come} free when it has left{who}."
        return (reason(ReasonCode.TERMINATING, message, names[:10]),)

    def migrate(self, job: int) -> tuple[Reason, ...]:
        """Say why it moves."""
        s, d = self._s, self._a.decisions[job]
        waits = self._ids(list(self._a.after.get(job, ())))
        then = f", when {named('job', waits)} {'has' if len(waits) == 1 else 'have'} left" if waits else ""
        if s.hit[job]:
            return (self._replaced(job, waits, then),)
        nodes = self._names([n for n, _ in d.places])
        to = f"{self._held(d)} on {named('node', nodes)}{then}"
        old, new = int(s.held_type[job]), d.gpu_type
        before, after = s.held_speed_milli(job) / 1000, int(s.speed_milli[job, new]) / 1000
        guests = self._ids(self._a.newcomers(job))
        refs = [*nodes[:10], *guests[:10], *waits[:10]]
        if old != new and after > before:
            place = f"; its place goes to {named('job', guests)}" if guests else ""
            message = (
                f"Moves from {s.types[old]} to {to}, where a GPU brings it the throughput of {number(after)} "
                f"instead of {number(before)}{place}."
            )
            return (reason(ReasonCode.BETTER_TYPE, message, refs),)
        left = named("node", self._names([n for n, _ in s.placement[job]]))
        fit = "fits" if len(guests) == 1 else "fit"
        aim = f" so that {named('job', guests)} {fit} there" if guests else ""
        return (reason(ReasonCode.DEFRAGMENT, f"Moves from {left} to {to}{aim}.", refs),)

    def _replaced(self, job: int, waits: list[str], then: str) -> Reason:
        """Node loss: only what was lost is replaced, or all of it moves."""
        s, d = self._s, self._a.decisions[job]
        lost, refs = lost_nodes(s, job)
        if d.move is Move.REPAIR:
            new = arrivals(s, job, d)
            nodes, count = self._names(sorted(new)), sum(new.values())
            are = "is" if count == 1 else "are"
            does = f"{count} of its {d.gpus} GPUs {are} replaced on {named('node', nodes)}{then}"
            does += f", the other {d.gpus - count} stay"
        else:
            nodes = self._names([n for n, _ in d.places])
            does = f"it moves to {self._held(d)} on {named('node', nodes)}{then}"
        return reason(ReasonCode.NODE_LOSS, f"{lost}: {does}.", [*refs, *nodes[:10], *waits[:10]])

    def resize(self, job: int) -> tuple[Reason, ...]:
        """Say from what to what it goes, and for whom."""
        s, d = self._s, self._a.decisions[job]
        g, before = int(s.group[job]), int(s.held[job])
        change = f"from {before} to {self._held(d)}"
        fares = self._fares.of(g) if s.budgeted[job] else "it is unallocated use"
        if d.gpus >= before:
            message = f"Grows {change} of the {int(s.size[job])} it wants; {fares}."
            return (reason(ReasonCode.GROWN, message, [s.tree.ids[g]]),)
        guests = self._ids(self._a.newcomers(job))
        get = "gets" if len(guests) == 1 else "get"
        aim = f" so that {named('job', guests)} {get} the rest" if guests else ""
        message = f"Shrinks {change}{aim}, its least being {int(s.least[job])}; {fares}."
        return (reason(ReasonCode.SHRUNK, message, [*guests[:10], s.tree.ids[g]]),)
