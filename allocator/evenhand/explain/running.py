"""Why a job starts, stays, moves, grows or shrinks."""

from __future__ import annotations

from functools import cached_property

from evenhand.entitlement import Entitlement
from evenhand.explain.aftermath import Aftermath
from evenhand.explain.claims import Claims
from evenhand.explain.ranks import SLACK, Ranks
from evenhand.explain.words import by_type, gpus, listed, named, number, reason, stamp_s
from evenhand.fairness.target import Target
from evenhand.outcome import Decision, Move
from evenhand.snapshot import Snapshot
from evenhand_models import NodeStatus, Reason, ReasonCode


class Running:
    """Explains everything that holds GPUs after the plan."""

    def __init__(self, aftermath: Aftermath, entitlement: Entitlement, target: Target, ranks: Ranks) -> None:
        self._a = aftermath
        self._s = aftermath.snapshot
        self._e = entitlement
        self._ranks = ranks
        self._claims = Claims(aftermath, ranks)
        self._row = {int(g): i for i, g in enumerate(target.leaves)}
        self._x = target.x
        self._fares: dict[int, str] = {}

    def _id(self, job: int) -> str:
        return self._s.jobs[job].id

    def _group(self, job: int) -> str:
        g = int(self._s.group[job])
        return self._s.tree.ids[g] if g >= 0 else self._s.jobs[job].group

    def fares(self, group: int) -> str:
        """Return `group A holds 8 of its entitled 12 charged GPUs (fair target 10.5 h100)`."""
        if group not in self._fares:
            r, side = self._ranks, self._ranks.leaf(group)
            text = f"{r.name(side)} {'hold' if side >= r.groups else 'holds'} {number(r.held[side])} of "
            text += (
                f"{'their' if side >= r.groups else 'its'} entitled {number(r.entitled[side])} charged GPUs"
            )
            if group in self._row:
                row = self._x[self._row[group]]
                parts = by_type(
                    [(t, float(x)) for t, x in zip(self._s.types, row, strict=True) if x >= 0.005]
                )
                text += f" (fair target {parts or 'none'})"
            self._fares[group] = text
        return self._fares[group]

    @cached_property
    def _before(self) -> dict[int, float]:
        """Charged GPUs that a leaf holds with each of its starts: what it kept, then the eldest starts."""
        s, a = self._s, self._a
        starts: dict[int, list[int]] = {}
        for j, d in a.decisions.items():
            if d.move is Move.START and s.budgeted[j]:
                starts.setdefault(int(s.group[j]), []).append(j)
        found = {}
        for g, line in starts.items():
            held = float(a.own_held[g]) - sum(self._charged(a.decisions[j]) for j in line)
            for j in sorted(line, key=s.seniority):
                held += self._charged(a.decisions[j])
                found[j] = held
        return found

    def _charged(self, d: Decision) -> float:
        return d.gpus * int(self._s.rate_milli[d.gpu_type]) / 1000

    def start(self, job: int) -> tuple[Reason, ...]:
        """Say on what ground a pending job starts (D2, D4, O3, U1), and for whom it has to wait."""
        s, d = self._s, self._a.decisions[job]
        g, group = int(s.group[job]), self._group(job)
        on = f"Starts on {gpus(d.gpus, s.types[d.gpu_type])}"
        waits = [self._id(k) for k in self._a.after.get(job, ())]
        then = (
            f"; it starts when {named('job', waits)} {'has' if len(waits) == 1 else 'have'} left"
            if waits
            else ""
        )
        if not s.budgeted[job]:
            why = (
                "min_runtime_s 0"
                if s.tree.claim[g]
                else f"group {group} has no claim beside siblings with a share"
            )
            message = f"{on} that no allocated work takes, as unallocated use ({why}){then}."
            return (reason(ReasonCode.UNALLOCATED_FILL, message, [*waits, group]),)
        code, ground, refs = self._ground(job, g)
        return (reason(code, f"{on}: {ground}{then}.", [group, *refs, *waits[:10]]),)

    def _ground(self, job: int, group: int) -> tuple[ReasonCode, str, list[str]]:
        s, r, e = self._s, self._ranks, self._e
        held, leaf = self._before[job], r.leaf(group)
        for c in reversed(s.tree.path[group]):
            promised = float(e.guaranteed[c])
            covered = float(self._a.held[c]) if c != group or s.tree.children[c] else held
            if (
                s.tree.groups[c].guaranteed_gpus is not None
                and promised > SLACK
                and covered <= promised + SLACK
            ):
                name = s.tree.ids[c]
                text = f"the guarantee of group {name} covers {number(promised)} charged GPUs, of which {number(covered)} are held with it"
                return ReasonCode.GUARANTEED, f"{text}; {self.fares(group)} after this round", [name]
        entitled = float(r.entitled[leaf])
        if held <= entitled + SLACK:
            return ReasonCode.ENTITLED, f"{self.fares(group)} after this round", []
        for c in reversed(s.tree.path[group]):
            if (
                int(s.demand_milli[job]) / 1000 > entitled + SLACK
                and float(self._a.held[c]) <= float(e.entitled[c]) + SLACK
            ):
                name = s.tree.ids[c]
                text = f"a gang larger than the {number(entitled)} charged GPUs its own group is entitled to counts at group {name}"
                return ReasonCode.ENTITLED, f"{text}, which {r.fares(c)} after this round", [name]
        text = "more than its group is entitled to, on GPUs that no entitled work takes"
        return ReasonCode.SPARE, f"{text}; {self.fares(group)} after this round", []

    def keep(self, job: int) -> tuple[Reason, ...]:
        """Say why a running job stays where it is (P1, R1)."""
        s, d = self._s, self._a.decisions[job]
        group, held = self._group(job), gpus(d.gpus, s.types[d.gpu_type]) if d.gpu_type >= 0 else gpus(d.gpus)
        if s.orphan[job]:
            message = f"Its group {group} is not in the tree: it stays on {held} and is counted nowhere."
            return (reason(ReasonCode.PROTECTED, message),)
        if s.hit[job]:
            lost = self.lost_nodes(job)
            message = f"{lost[0]}, but what is left still holds this job: it stays on {held}."
            return (reason(ReasonCode.NODE_LOSS, message, lost[1]),)
        if s.pinned[job]:
            end = stamp_s(self._a.protected_until(job))
            message = f"Protected until {end} by its contract of {int(s.contract_s[job])} s on {held}."
            return (reason(ReasonCode.PROTECTED, message),)
        if not s.budgeted[job]:
            message = f"Unallocated use of {held} that no allocated work takes."
            return (reason(ReasonCode.BEST_USE, message),)
        ended = stamp_s(float(s.started_s[job]) + float(s.contract_s[job]))
        better = "no other use of" if self._a.optimal else "no better use was found for"
        what = f"{better} its {held} is better" if self._a.optimal else f"{better} its {held}"
        message = f"Past its protection since {ended}, and {what}; {self.fares(int(s.group[job]))}."
        return (reason(ReasonCode.BEST_USE, message, [group]),)

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
        s = self._s
        count = sum(n for _, n in s.placement[job])
        names = [self._id(j) for j in self._awaited.get(job, ())]
        who = f" and {named('job', names)} {'waits' if len(names) == 1 else 'wait'} for them" if names else ""
        message = f"On its way out: its {gpus(count)} {'comes' if count == 1 else 'come'} free when it has left{who}."
        return (reason(ReasonCode.TERMINATING, message, names[:10]),)

    def lost_nodes(self, job: int) -> tuple[str, list[str]]:
        """Say which nodes were lost under a hit job (S9), and their names as far as they are listed."""
        s, told, refs = self._s, [], []
        for part, (n, _) in zip(
            sorted(s.jobs[job].placement, key=lambda p: s.node_index.get(p.node, -1)),
            s.placement[job],
            strict=True,
        ):
            if n < 0:
                told.append(f"node {part.node} is gone")
                continue
            node = s.nodes[n]
            if node.status is NodeStatus.DOWN:
                told.append(f"node {node.name} is down")
            elif s.room[n] == 0 and node.available_until_at is not None and node.available_until_at <= s.now:
                told.append(f"node {node.name} is in maintenance")
            elif s.overfull[n]:
                told.append(
                    f"node {node.name} has {max(0, node.usable_gpus)} usable GPUs left, fewer than jobs hold on it"
                )
            else:
                continue
            refs.append(node.name)
        text = listed(told) if told else "GPUs were lost under it"
        return text[0].upper() + text[1:], refs[:10]

    def _where(self, d: Decision) -> str:
        return named("node", [self._s.nodes[n].name for n, _ in d.places if n >= 0])

    def migrate(self, job: int) -> tuple[Reason, ...]:
        """Say why a running job moves (R2)."""
        s, d = self._s, self._a.decisions[job]
        waits = [self._id(k) for k in self._a.after.get(job, ())]
        then = f", when {named('job', waits)} {'has' if len(waits) == 1 else 'have'} left" if waits else ""
        nodes = [s.nodes[n].name for n, _ in d.places if n >= 0][:10]
        to = f"{gpus(d.gpus, s.types[d.gpu_type])} on {self._where(d)}{then}"
        if s.hit[job]:
            text, refs = self.lost_nodes(job)
            does = (
                "the lost GPUs are replaced and it goes on with" if d.move is Move.REPAIR else "it moves to"
            )
            return (reason(ReasonCode.NODE_LOSS, f"{text}: {does} {to}.", [*refs, *nodes, *waits[:10]]),)
        old, new = int(s.held_type[job]), d.gpu_type
        before, after = s.held_speed_milli(job) / 1000, int(s.speed_milli[job, new]) / 1000
        guests = [self._id(j) for j in self._a.newcomers(job)]
        place = f"; its place goes to {named('job', guests)}" if guests else ""
        refs = [*nodes, *guests[:10], *waits[:10]]
        if old != new and after > before:
            message = (
                f"Moves from {s.types[old]} to {to}, where a GPU brings it {number(after)} instead of {number(before)} "
                f"of a GPU of throughput{place}."
            )
            return (reason(ReasonCode.BETTER_TYPE, message, refs),)
        left = named("node", [s.nodes[n].name for n, _ in s.placement[job] if n >= 0])
        aim = (
            f" so that {named('job', guests)} {'fits' if len(guests) == 1 else 'fit'} there" if guests else ""
        )
        return (reason(ReasonCode.DEFRAGMENT, f"Moves from {left} to {to}{aim}.", refs),)

    def resize(self, job: int) -> tuple[Reason, ...]:
        """Say from what to what an elastic job goes, and for whom (G4)."""
        s, d = self._s, self._a.decisions[job]
        g, before, kind = int(s.group[job]), int(s.held[job]), s.types[d.gpu_type]
        change = f"from {before} to {gpus(d.gpus, kind)}"
        fares = self.fares(g) if s.budgeted[job] else "it is unallocated use"
        if d.gpus >= before:
            message = f"Grows {change} of the {int(s.size[job])} it wants; {fares}."
            return (reason(ReasonCode.GROWN, message, [s.tree.ids[g]]),)
        guests = [self._id(j) for j in self._a.newcomers(job)]
        aim = (
            f" so that {named('job', guests)} {'gets' if len(guests) == 1 else 'get'} the rest"
            if guests
            else ""
        )
        message = f"Shrinks {change}{aim}, its least being {int(s.least[job])}; {fares}."
        return (reason(ReasonCode.SHRUNK, message, [*guests[:10], s.tree.ids[g]]),)


def limited_by(snapshot: Snapshot, job: int, held: dict[int, int]) -> tuple[int, int] | None:
    """Return the lowest group above a running job that held more than its limit before the plan, and its limit."""
    g = int(snapshot.group[job])
    for c in reversed(snapshot.tree.path[g]) if g >= 0 else ():
        limit = snapshot.tree.groups[c].max_gpus
        if limit is not None and held[c] > limit:
            return c, limit
    return None
