"""Why a running job is preempted: for whom, with what standing on both sides, at what loss (rule R1)."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from evenhand.debug_runs import debug_runs
from evenhand.explain.aftermath import Aftermath, FloatArray
from evenhand.explain.losses import lost_nodes
from evenhand.explain.ranks import Ranks
from evenhand.explain.words import gpus, named, number, reason, stamp_s
from evenhand_models import Reason, ReasonCode

_MOST_GROUPS = 3
"""So many groups that get the GPUs are described with their numbers."""


class Leaving:
    """Explains preemptions."""

    def __init__(self, aftermath: Aftermath, ranks: Ranks) -> None:
        self._a = aftermath
        self._s = aftermath.snapshot
        self._ranks = ranks

    @cached_property
    def _held(self) -> dict[int, int]:
        """GPUs that running jobs below each group held before the plan."""
        s = self._s
        jobs = np.flatnonzero(s.running & ~s.orphan)
        own = np.bincount(s.group[jobs], s.held[jobs], len(s.tree.ids)).astype(np.int64).tolist()
        found = dict.fromkeys(range(len(own)), 0)
        for g, held in enumerate(own):
            for c in s.tree.path[g]:
                found[c] += held
        return found

    @cached_property
    def _debug(self) -> frozenset[int]:
        return frozenset(debug_runs(self._s))

    def _limited_by(self, job: int) -> tuple[int, int] | None:
        """The lowest group above a job that held more than its limit before the plan, and its limit."""
        tree = self._s.tree
        for c in reversed(tree.path[int(self._s.group[job])]):
            limit = tree.groups[c].max_gpus
            if limit is not None and self._held[c] > limit:
                return c, limit
        return None

    def explain(self, job: int) -> tuple[Reason, ...]:
        """Reasons of a preempted job."""
        s = self._s
        back = "it is requeued" if s.jobs[job].contract.resumable else "it ends, as it cannot resume"
        if s.hit[job]:
            text, refs = lost_nodes(s, job)
            message = f"{text}, and there is no place for its {gpus(int(s.held[job]))} now: {back}."
            return (reason(ReasonCode.NODE_LOSS, message, refs),)
        found = []
        limited = self._limited_by(job)
        guests = self._guests(job)
        if guests:
            found.append(self._for(job, guests, back))
        if limited is not None:
            c, limit = limited
            message = (
                f"Group {s.tree.ids[c]} held {self._held[c]} GPUs, more than its max_gpus {limit}: "
                f"{self._loss(job)} and {back}."
            )
            found.append(reason(ReasonCode.LIMIT_LOWERED, message, [s.tree.ids[c]]))
        if not found:
            message = f"Its {gpus(int(s.held[job]))} are taken back (rule R1): {self._loss(job)} and {back}."
            found.append(reason(ReasonCode.PREEMPTED_FOR, message))
        return tuple(found)

    def _guests(self, job: int) -> list[int]:
        """Who comes onto its nodes; else who comes below a limit that has no room for both."""
        s = self._s
        found = self._a.newcomers(job)
        if not found:
            capped = [c for c in s.tree.path[int(s.group[job])] if s.tree.groups[c].max_gpus is not None]
            coming = {j for taken in self._a.coming.values() for j in taken}
            found = sorted(
                (
                    j for j in coming
                    if any(
                        c in s.tree.path[int(s.group[j])]
                        and self._a.below[c] + s.held[job] > (s.tree.groups[c].max_gpus or 0)
                        for c in capped
                    )
                ),
                key=lambda j: (s.submitted_s[j], j),
            )  # fmt: skip
        return [j for j in found if s.budgeted[j]] if s.budgeted[job] else found

    def _loss(self, job: int) -> str:
        s = self._s
        lost = number(int(s.held[job]) * float(s.lost_s[job]) / 3600)
        return f"{lost} GPU-hours of work are lost"

    def _for(self, job: int, guests: list[int], back: str) -> Reason:
        s = self._s
        names = [s.jobs[j].id for j in guests]
        mine = int(s.group[job])
        others = list(dict.fromkeys(int(s.group[j]) for j in guests if s.group[j] != mine))
        if s.budgeted[job]:
            start, contract = float(s.started_s[job]), float(s.contract_s[job])
            ended = f"its contract ended at {stamp_s(start + contract)}"
        else:
            ended = "it is unallocated use without protection"
        sides = [self._side(g, "has") for g in others[:_MOST_GROUPS]]
        own = [j for j in guests if s.group[j] == mine and j not in self._debug]
        if own:
            top = max(s.jobs[j].priority for j in own)
            sides.append(f"its own group gives priority {top} before its {s.jobs[job].priority}")
        debug = [s.jobs[j].id for j in guests if j in self._debug]
        if debug:
            owed = "is a debug run and owed its" if len(debug) == 1 else "are debug runs and owed their"
            sides.append(f"{named('job', debug)} {owed} start at once (rule O3)")
        message = (
            f"{named('Job', names)} {'gets' if len(names) == 1 else 'get'} its {self._gpus(job)} (rule R1): "
            f"{', '.join(sides)}; its {self._side(mine, 'had')}; {ended}, {self._loss(job)} and {back}."
        )
        refs = [*names[:10], *(s.tree.ids[g] for g in others[:_MOST_GROUPS]), s.tree.ids[mine]]
        if others:
            parting, sides_named = self._parting(mine, others[0])
            message, refs = f"{message[:-1]}{parting}.", refs + sides_named
        return reason(ReasonCode.PREEMPTED_FOR, message, refs)

    def _parting(self, mine: int, other: int) -> tuple[str, list[str]]:
        """How siblings stand where two groups part, unless these are the groups themselves, and their ids."""
        view, r = self._ranks.view(mine), self._ranks
        here, there = int(view.mine[other]), int(view.rival[other])
        if here == r.leaf(mine) and there == r.leaf(other):
            return "", []
        text = f"; where the two part, {r.name(there)} {r.fares(there)}, and {r.name(here)} {r.fares(here)}"
        return text, [r.ref(there), r.ref(here)]

    def _gpus(self, job: int) -> str:
        t = int(self._s.held_type[job])
        return gpus(int(self._s.held[job]), self._s.types[t] if t >= 0 else "")

    @cached_property
    def _charged_before(self) -> FloatArray:
        """Charged GPUs that the budgeted jobs of each group's own held before the plan, float [G]."""
        s = self._s
        jobs = np.flatnonzero(s.running & s.budgeted & (s.held_type >= 0))
        charged = s.held[jobs] * s.rate_milli[s.held_type[jobs]] / 1000
        return np.bincount(s.group[jobs], charged, len(s.tree.ids)).astype(np.float64)

    def _side(self, group: int, verb: str) -> str:
        """Return `group A had 4 of its entitled 3 charged GPUs, used 10 GPU-hours and stands 2 of 2`."""
        r, s = self._ranks, self._s
        side = r.leaf(group)
        held = float(self._charged_before[group]) if verb == "had" else float(r.held[side])
        when = "before" if verb == "had" else "after"
        return (
            f"group {s.tree.ids[group]} {verb} {number(held)} of its entitled {number(r.entitled[side])} "
            f"charged GPUs {when} this round, used {number(r.hours(side))} charged GPU-hours in the window "
            f"and stands {r.stands(group)}"
        )
