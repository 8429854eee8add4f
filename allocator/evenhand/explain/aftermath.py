"""The cluster once a plan is applied: who holds what until when, what is free, who comes and who goes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from evenhand.outcome import ARRIVALS, WAITS, Decision, Move, Outcome, Table, arrivals, kept, tabulate
from evenhand.placement import floor_under
from evenhand.shapes import BoolArray, IntArray
from evenhand.snapshot import Snapshot

FloatArray = npt.NDArray[np.float64]
PAST = float("-inf")
"""Not protected at all."""
NEVER = float("inf")
"""No end is known."""


@dataclass(frozen=True, eq=False)
class Holdings:
    """GPUs of one job on one node each; R rows by job, then node.

    Attributes
    ----------
    job, node, gpus : int [R].
    new : whether the job arrives there in this plan, bool [R].
    until_s : end of protection in seconds since 1970, `PAST` without, `NEVER` for orphans, float [R].
    end_s : expected end of the job if it lies ahead, else `NEVER`, float [R].
    """

    job: IntArray
    node: IntArray
    gpus: IntArray
    new: BoolArray
    until_s: FloatArray
    end_s: FloatArray


class Aftermath:
    """What a plan leaves behind; G groups, n nodes, J jobs.

    Attributes
    ----------
    decisions, table : of all live and orphan jobs, one by one and as arrays.
    free : GPUs that no job of the plan holds, terminating ones aside, on open nodes, int [n].
    held, own_held : charged GPUs of budgeted jobs of each group with all below, of its own jobs, float [G].
    below, pinned_below : GPUs of all jobs below each group, of the pinned ones, int [G] (L1).
    """

    def __init__(
        self, snapshot: Snapshot, outcome: Outcome, after: Mapping[int, tuple[int, ...]] | None = None
    ) -> None:
        s = self.snapshot = snapshot
        self.optimal = outcome.optimal
        self.decisions, self.table = _all_decided(s, outcome)
        floor = floor_under(s, self.table.node, self.table.part)
        self.free: IntArray = np.maximum(np.array(floor.free, dtype=np.int64), 0)
        self._at_once = floor.at_once
        self._after = after
        self._until = self._protection()
        self._add_up()

    def _add_up(self) -> None:
        s, groups = self.snapshot, len(self.snapshot.tree.ids)
        rows = np.flatnonzero((self.table.gpus > 0) & (s.group[self.table.job] >= 0))
        jobs, gpus, kind = self.table.job[rows], self.table.gpus[rows], self.table.gpu_type[rows]
        group = s.group[jobs]
        below = np.bincount(group, gpus, groups).astype(np.int64)
        pinned = np.bincount(group, np.where(s.pinned[jobs], s.held[jobs], 0), groups).astype(np.int64)
        charged = s.budgeted[jobs] & (kind >= 0)
        own = np.bincount(group[charged], gpus[charged] * s.rate_milli[kind[charged]], groups)
        self.own_held: FloatArray = own / 1000
        total = own.copy()
        for c in s.tree.bottom_up:
            parent = s.tree.parent[c]
            if parent >= 0:
                total[parent] += total[c]
                below[parent] += below[c]
                pinned[parent] += pinned[c]
        self.held: FloatArray = total / 1000
        self.below: IntArray = below
        self.pinned_below: IntArray = pinned

    def _protection(self) -> FloatArray:
        """End of protection of every decision under the plan, seconds since 1970, float [J]."""
        s, table = self.snapshot, self.table
        jobs = table.job
        started = np.where(s.orphan[jobs], NEVER, s.started_s[jobs] + s.contract_s[jobs])
        until = np.where(s.pinned[jobs], started, PAST)
        comes = np.where(s.budgeted[jobs], s.now_s + s.contract_s[jobs], PAST)
        until = np.where(table.among(*ARRIVALS), comes, until)
        found = np.full(len(s.jobs), PAST)
        found[jobs] = np.where(table.gpus > 0, until, PAST)
        return found

    def decision(self, job: int) -> Decision:
        """What is decided about a live or orphan job."""
        return self.decisions[job]

    def protected_until(self, job: int) -> float:
        """End of protection under the plan, seconds since 1970; `PAST` without, `NEVER` for orphans."""
        return float(self._until[job])

    @cached_property
    def holdings(self) -> Holdings:
        """Everything held after the plan on listed nodes."""
        s, table = self.snapshot, self.table
        rows = np.flatnonzero(table.node >= 0)
        at = table.at[rows]
        job, node, gpus = table.job[at], table.node[rows], table.part[rows].copy()
        new = table.among(*ARRIVALS)[at]
        until = self._until[job]
        place = 2 * np.arange(len(rows))
        grown: list[tuple[int, int, int]] = []
        for i in np.flatnonzero(table.among(Move.RESIZE)[at]).tolist():
            more = arrivals(s, int(job[i]), self.decisions[int(job[i])]).get(int(node[i]), 0)
            if more:
                gpus[i] -= more
                grown.append((i, int(node[i]), more))
        if grown:  # what a job grew by is a row of its own, after what it kept there
            i, there, more = np.array(grown, dtype=np.int64).T
            job, node, gpus = np.append(job, job[i]), np.append(node, there), np.append(gpus, more)
            new, until = np.append(new, new[i]), np.append(until, np.full(len(i), PAST))
            order = np.argsort(np.append(place, 2 * i + 1), kind="stable")
            order = order[gpus[order] > 0]
            job, node, gpus, new, until = job[order], node[order], gpus[order], new[order], until[order]
        ahead = ~s.pending[job] & (s.left_s[job] > 0)
        return Holdings(job, node, gpus, new, until, np.where(ahead, s.now_s + s.left_s[job], NEVER))

    @cached_property
    def used(self) -> IntArray:
        """GPUs held on each node after the plan, int [n]."""
        held = self.holdings
        return np.bincount(held.node, held.gpus, len(self.snapshot.nodes)).astype(np.int64)

    @cached_property
    def _changed(self) -> list[int]:
        """Jobs that do not just stay as they are or wait, ascending."""
        found: list[int] = self.table.job[~self.table.among(Move.KEEP, Move.WAIT)].tolist()
        return found

    @cached_property
    def coming(self) -> dict[int, dict[int, int]]:
        """GPUs newly taken on each node, by job."""
        s = self.snapshot
        found: dict[int, dict[int, int]] = defaultdict(dict)
        for j in self._changed:
            d = self.decisions[j]
            if d.places:
                before = dict(s.placement[j]) if d.move is Move.MIGRATE else {}
                for n, count in arrivals(s, j, d).items():
                    if count > before.get(n, 0):
                        found[n][j] = count - before.get(n, 0)
        return found

    @cached_property
    def leaving(self) -> dict[int, list[int]]:
        """Jobs that give back GPUs on each node, terminating ones included."""
        s = self.snapshot
        found: dict[int, list[int]] = defaultdict(list)
        for j in sorted([*np.flatnonzero(s.terminating).tolist(), *self._changed]):
            before = s.placement[j]
            if not before:
                continue
            d = WAITS if s.terminating[j] else self.decisions[j]
            after = dict(d.places)
            for n, held in before:
                if n >= 0 and held > after.get(n, 0):
                    found[n].append(j)
        return found

    @cached_property
    def after(self) -> Mapping[int, tuple[int, ...]]:
        """Leavers each arrival has to wait for (rule A2): the eldest arrivals take what is free at once."""
        if self._after is not None:
            return self._after
        s = self.snapshot
        found: dict[int, set[int]] = defaultdict(set)
        for n, taken in self.coming.items():
            left = self._at_once[n]
            for j in sorted(taken, key=lambda j: (s.submitted_s[j], j)):
                if taken[j] <= left:
                    left -= taken[j]
                else:
                    found[j].update(k for k in self.leaving.get(n, ()) if k != j)
        return {j: tuple(sorted(waits)) for j, waits in found.items() if waits}

    def newcomers(self, job: int) -> list[int]:
        """Jobs that newly take GPUs on nodes where this one runs now, the eldest first."""
        s = self.snapshot
        found = {k for n, _ in s.placement[job] for k in self.coming.get(n, ()) if k != job}
        return sorted(found, key=lambda k: (s.submitted_s[k], k))


def _all_decided(snapshot: Snapshot, outcome: Outcome) -> tuple[dict[int, Decision], Table]:
    """Decisions of all live and orphan jobs, ascending: who is not mentioned goes on as before."""
    s, decided = snapshot, outcome.decisions
    jobs = np.flatnonzero(s.live | s.orphan)
    if np.array_equal(jobs, outcome.table.job):
        return {j: decided[j] for j in jobs.tolist()}, outcome.table
    decisions = {j: decided.get(j) or (WAITS if s.pending[j] else kept(s, j)) for j in jobs.tolist()}
    return decisions, tabulate(decisions)
