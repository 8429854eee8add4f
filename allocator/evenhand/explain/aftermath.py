"""The cluster once a plan is applied: who holds what until when, what is free, who comes and who goes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from evenhand.outcome import ARRIVALS, WAITS, Decision, Move, Outcome, arrivals, kept
from evenhand.placement import open_floor
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
    decisions : of all live and orphan jobs.
    free : GPUs that no job of the plan holds, terminating ones aside, on open nodes, int [n].
    held, own_held : charged GPUs of budgeted jobs of each group with all below, of its own jobs, float [G].
    below, pinned_below : GPUs of all jobs below each group, of the pinned ones, int [G] (L1).
    """

    def __init__(
        self, snapshot: Snapshot, outcome: Outcome, after: Mapping[int, tuple[int, ...]] | None = None
    ) -> None:
        s = self.snapshot = snapshot
        self.optimal = outcome.optimal
        self.decisions: dict[int, Decision] = {
            int(j): outcome.decisions.get(int(j)) or (WAITS if s.pending[j] else kept(s, int(j)))
            for j in np.flatnonzero(s.live | s.orphan)
        }
        stays = {j: d.places for j, d in self.decisions.items() if d.places}
        floor = open_floor(s, stays)
        self.free: IntArray = np.maximum(np.array(floor.free, dtype=np.int64), 0)
        self._at_once = floor.at_once
        self._after = after
        self._add_up()

    def _add_up(self) -> None:
        s, groups = self.snapshot, len(self.snapshot.tree.ids)
        own, below, pinned = (
            np.zeros(groups),
            np.zeros(groups, dtype=np.int64),
            np.zeros(groups, dtype=np.int64),
        )
        for j, d in self.decisions.items():
            g = int(s.group[j])
            if g < 0 or not d.places:
                continue
            below[g] += d.gpus
            pinned[g] += int(s.held[j]) if s.pinned[j] else 0
            if s.budgeted[j] and d.gpu_type >= 0:
                own[g] += d.gpus * int(s.rate_milli[d.gpu_type])
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

    def decision(self, job: int) -> Decision:
        """What is decided about a live or orphan job."""
        return self.decisions[job]

    def protected_until(self, job: int) -> float:
        """End of protection under the plan, seconds since 1970; `PAST` without, `NEVER` for orphans."""
        s, d = self.snapshot, self.decisions[job]
        if not d.places:
            return PAST
        if d.move in ARRIVALS:
            return s.now_s + float(s.contract_s[job]) if s.budgeted[job] else PAST
        if not s.pinned[job]:
            return PAST
        return NEVER if s.orphan[job] else float(s.started_s[job]) + float(s.contract_s[job])

    @cached_property
    def holdings(self) -> Holdings:
        """Everything held after the plan on listed nodes."""
        s = self.snapshot
        rows: list[tuple[int, int, int, bool, float, float]] = []
        for j, d in sorted(self.decisions.items()):
            if not d.places:
                continue
            until, new = self.protected_until(j), d.move in ARRIVALS
            ahead = not s.pending[j] and s.left_s[j] > 0
            end = s.now_s + float(s.left_s[j]) if ahead else NEVER
            grown = arrivals(s, j, d) if d.move is Move.RESIZE else {}
            for n, held in d.places:
                if n < 0:
                    continue
                more = grown.get(n, 0)
                if held > more:
                    rows.append((j, n, held - more, new, until, end))
                if more:
                    rows.append((j, n, more, new, PAST, end))
        table = np.array([r[:4] for r in rows], dtype=np.int64).reshape(len(rows), 4)
        times = np.array([r[4:] for r in rows], dtype=np.float64).reshape(len(rows), 2)
        return Holdings(table[:, 0], table[:, 1], table[:, 2], table[:, 3].astype(bool), times[:, 0], times[:, 1])

    @cached_property
    def used(self) -> IntArray:
        """GPUs held on each node after the plan, int [n]."""
        found = np.zeros(len(self.snapshot.nodes), dtype=np.int64)
        np.add.at(found, self.holdings.node, self.holdings.gpus)
        return found

    @cached_property
    def coming(self) -> dict[int, dict[int, int]]:
        """GPUs newly taken on each node, by job."""
        s = self.snapshot
        found: dict[int, dict[int, int]] = defaultdict(dict)
        for j, d in sorted(self.decisions.items()):
            if d.places and d.move is not Move.KEEP:
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
        for j in np.flatnonzero(s.running | s.terminating):
            before = dict(s.placement[j])
            d = WAITS if s.terminating[j] else self.decisions[int(j)]
            after = dict(d.places)
            for n, held in before.items():
                if n >= 0 and held > after.get(n, 0):
                    found[n].append(int(j))
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
