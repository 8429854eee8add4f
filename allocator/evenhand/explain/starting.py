"""On what ground a job starts: guarantee, entitlement, spare GPUs, unallocated use (rules D2, D4, O3, U1)."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from evenhand.debug_runs import debug_runs
from evenhand.entitlement import Entitlement
from evenhand.explain.aftermath import Aftermath
from evenhand.explain.ranks import SLACK, Ranks
from evenhand.explain.words import by_type, gpus, named, number, reason
from evenhand.fairness.target import Target
from evenhand.outcome import Move
from evenhand_models import Reason, ReasonCode

_HARDLY_ANY = 0.005
"""Fewer GPUs of a target are not written: they would read 0."""


class Fares:
    """How the groups' own jobs fare under the plan, in words."""

    def __init__(self, aftermath: Aftermath, target: Target, ranks: Ranks) -> None:
        self._types = aftermath.snapshot.types
        self._ranks = ranks
        self._row = {int(g): i for i, g in enumerate(target.leaves)}
        self._x = target.x
        self._known: dict[int, str] = {}

    def of(self, group: int) -> str:
        """Return `group A holds 8 of its entitled 12 charged GPUs (fair target 10.5 h100)`."""
        if group not in self._known:
            r, side = self._ranks, self._ranks.leaf(group)
            does = "hold" if side >= r.groups else "holds"
            whose = "their" if side >= r.groups else "its"
            text = f"{r.name(side)} {does} {number(r.held[side])} of {whose} entitled "
            text += f"{number(r.entitled[side])} charged GPUs"
            if group in self._row:
                row = zip(self._types, self._x[self._row[group]], strict=True)
                parts = by_type([(t, float(x)) for t, x in row if x >= _HARDLY_ANY])
                text += f" (fair target {parts or 'none'})"
            self._known[group] = text
        return self._known[group]


class Starting:
    """Explains starts."""

    def __init__(self, aftermath: Aftermath, entitlement: Entitlement, ranks: Ranks, fares: Fares) -> None:
        self._a = aftermath
        self._s = aftermath.snapshot
        self._e = entitlement
        self._ranks = ranks
        self._fares = fares

    def explain(self, job: int) -> tuple[Reason, ...]:
        """Say on what ground, and for whom the job has to wait first."""
        s, d = self._s, self._a.decisions[job]
        g = int(s.group[job])
        group = s.tree.ids[g]
        on = f"Starts on {gpus(d.gpus, s.types[d.gpu_type])}"
        waits = [s.jobs[k].id for k in self._a.after.get(job, ())]
        left = "has" if len(waits) == 1 else "have"
        then = f"; it starts when {named('job', waits)} {left} left" if waits else ""
        if not s.budgeted[job]:
            why = "min_runtime_s 0"
            if not s.tree.claim[g]:
                why = f"group {group} has no claim beside siblings with a share"
            message = f"{on} that no allocated work takes, as unallocated use ({why}){then}."
            return (reason(ReasonCode.UNALLOCATED_FILL, message, [group, *waits[:10]]),)
        code, ground, refs = self._ground(job, g)
        return (reason(code, f"{on}: {ground}{then}.", [group, *refs, *waits[:10]]),)

    @cached_property
    def _debug(self) -> frozenset[int]:
        return frozenset(debug_runs(self._s))

    @cached_property
    def _with(self) -> dict[int, float]:
        """Charged GPUs that a leaf holds with each of its starts: what it keeps, then the eldest starts."""
        s, table = self._s, self._a.table
        chosen = np.flatnonzero(table.among(Move.START) & s.budgeted[table.job])
        jobs = table.job[chosen]
        charged = (table.gpus[chosen] * s.rate_milli[table.gpu_type[chosen]] / 1000).tolist()
        starts: dict[int, list[tuple[int, float]]] = {}
        for g, j, more in zip(s.group[jobs].tolist(), jobs.tolist(), charged, strict=True):
            starts.setdefault(g, []).append((j, more))
        found = {}
        for g, line in starts.items():
            held = float(self._a.own_held[g]) - sum(more for _, more in line)
            for j, more in sorted(line, key=lambda start: s.seniority(start[0])):
                held += more
                found[j] = held
        return found

    def _ground(self, job: int, group: int) -> tuple[ReasonCode, str, list[str]]:
        s, fares, held = self._s, self._fares.of(group), self._with[job]
        entitled = float(self._ranks.entitled[self._ranks.leaf(group)])
        covered = self._guaranteed(group, held)
        if covered is not None:
            c, text = covered
            return ReasonCode.GUARANTEED, f"{text}; {fares} after this round", [s.tree.ids[c]]
        if held <= entitled + SLACK:
            return ReasonCode.ENTITLED, f"{fares} after this round", []
        if job in self._debug:
            text = "a debug run is owed its start whatever its group holds"
            return ReasonCode.DEBUG_RUN, f"{text}; {fares} after this round", []
        if int(s.demand_milli[job]) / 1000 > entitled + SLACK:
            owed = self._owed(job, group, entitled)
            if owed is not None:
                return ReasonCode.ENTITLED, owed[0], owed[1]
        text = "more than its group is entitled to: targets are met as far as whole gangs and types allow"
        return ReasonCode.SPARE, f"{text}, and here the GPUs bring most; {fares} after this round", []

    def _guaranteed(self, group: int, held: float) -> tuple[int, str] | None:
        """The lowest group whose guarantee covers all it holds with this job, and what to say."""
        tree = self._s.tree
        for c in reversed(tree.path[group]):
            if tree.groups[c].guaranteed_gpus is None:
                continue
            promised = float(self._e.guaranteed[c])
            used = float(self._a.held[c]) if c != group or tree.children[c] else held
            if promised <= SLACK or used > promised + SLACK:
                continue
            text = f"the guarantee of group {tree.ids[c]} covers {number(promised)} charged GPUs"
            return c, f"{text}, of which {number(used)} are held with it"
        return None

    def _owed(self, job: int, group: int, entitled: float) -> tuple[str, list[str]] | None:
        """Where a gang larger than its leaf's entitlement counts: a group above, else the cluster (O3)."""
        s, r = self._s, self._ranks
        gang = f"a gang larger than the {number(entitled)} charged GPUs that its own group is entitled to"
        for c in reversed(s.tree.path[group]):
            if float(self._a.held[c]) <= float(self._e.entitled[c]) + SLACK:
                name = s.tree.ids[c]
                return f"{gang} counts at group {name}, which {r.fares(c)} after this round", [name]
        leavers = self._a.after.get(job, ())
        if any(not s.terminating[k] and not self._a.decisions[k].places for k in leavers):
            return f"{gang} has its turn in the whole cluster; {self._fares.of(group)} after this round", []
        return None
