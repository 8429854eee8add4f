"""Nobody stops for nothing: victims whose place nobody needs stay after all (rules R1, U1).

An optimal answer needs no such mending; one that was cut short may.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from evenhand.outcome import STOPS, WAITS, Decision, Move, Outcome, Places, kept
from evenhand.shapes import IntArray
from evenhand.snapshot import Snapshot


def restore(snapshot: Snapshot, outcome: Outcome) -> Outcome:
    """Keep every preempted job that still fits where it was, budgeted ones before unallocated arrivals."""
    s, all_ = snapshot, outcome.table
    victims = all_.job[all_.among(Move.PREEMPT) & ~s.hit[all_.job] & s.live[all_.job]]
    if not victims.size:
        return outcome
    decisions, room = dict(outcome.decisions), _Room(s, outcome)
    guests = _guests_by_node(s, decisions)
    for j in victims[
        np.lexsort((victims, s.submitted_s[victims], -s.priority[victims], ~s.budgeted[victims]))
    ].tolist():
        back, held = s.placement[j], int(s.held[j])
        room.take(j, back, held)
        for guest in _in_the_way(s, decisions, guests, room.left, j) if s.budgeted[j] and not room.holds(j) else []:
            room.take(guest, decisions[guest].places, decisions[guest].gpus, -1)
            decisions[guest] = WAITS if s.pending[guest] else STOPS
            if room.holds(j):
                break
        if room.holds(j):
            decisions[j] = kept(s, j)
        else:
            room.take(j, back, held, -1)
    return Outcome(decisions, outcome.optimal)


class _Room:
    """GPUs left on nodes, and held below groups with a limit (L1)."""

    def __init__(self, snapshot: Snapshot, outcome: Outcome) -> None:
        self._s, all_ = snapshot, outcome.table
        s, listed = snapshot, all_.node >= 0
        used = np.bincount(all_.node[listed], all_.part[listed], len(s.nodes)).astype(np.int64)
        self.left: list[int] = (s.room - used).tolist()
        capped = {c for c, group in enumerate(s.tree.groups) if group.max_gpus is not None}
        self._above = [tuple(c for c in path if c in capped) for path in s.tree.path]
        self._below, pinned = self._sums(all_.job, all_.gpus), np.flatnonzero(s.pinned)
        bound = self._sums(pinned, s.held[pinned])
        self._limit = {c: max(s.tree.groups[c].max_gpus or 0, bound[c]) for c in capped}

    def _sums(self, jobs: IntArray, gpus: IntArray) -> dict[int, int]:
        """GPUs below each group with a limit."""
        found: dict[int, int] = defaultdict(int)
        known = self._s.group[jobs] >= 0
        own = np.bincount(self._s.group[jobs[known]], gpus[known], len(self._above)).astype(np.int64)
        for g, held in enumerate(own.tolist()):
            for c in self._above[g]:
                found[c] += held
        return found

    def take(self, job: int, places: Places, gpus: int, sign: int = 1) -> None:
        """Count a job in, or out again."""
        for n, part in places:
            if n >= 0:
                self.left[n] -= sign * part
        g = int(self._s.group[job])
        for c in self._above[g] if g >= 0 else ():
            self._below[c] += sign * gpus

    def holds(self, job: int) -> bool:
        """Whether nodes and limits hold with the job counted in."""
        return all(self.left[n] >= 0 for n, _ in self._s.placement[job]) and all(
            self._below[c] <= self._limit[c] for c in self._above[int(self._s.group[job])]
        )


def _guests_by_node(s: Snapshot, decisions: dict[int, Decision]) -> dict[int, list[int]]:
    """Unallocated jobs that newly come to each node."""
    found: dict[int, list[int]] = defaultdict(list)
    for j, d in decisions.items():
        if d.move in {Move.START, Move.MIGRATE} and s.live[j] and not s.budgeted[j]:
            for n, _ in d.places:
                found[n].append(j)
    return found


def _in_the_way(
    s: Snapshot, decisions: dict[int, Decision], guests: dict[int, list[int]], left: list[int], victim: int
) -> list[int]:
    """Guests still on the victim's overfull nodes, the youngest first."""
    found = {
        j
        for n, _ in s.placement[victim]
        if left[n] < 0
        for j in guests.get(n, ())
        if decisions[j].move in {Move.START, Move.MIGRATE}
    }
    return sorted(found, key=lambda j: (-s.submitted_s[j], -j))
