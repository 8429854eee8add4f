"""Nobody stops for nothing: victims whose place nobody needs stay after all (rules R1, U1).

An optimal answer needs no such mending; one that was cut short may.
"""

from __future__ import annotations

from collections import defaultdict

from evenhand.outcome import STOPS, WAITS, Decision, Move, Outcome, kept
from evenhand.snapshot import Snapshot


def restore(snapshot: Snapshot, outcome: Outcome) -> Outcome:
    """Keep every preempted job that still fits where it was, budgeted ones before unallocated arrivals."""
    s = snapshot
    decisions = dict(outcome.decisions)
    victims = [j for j, d in decisions.items() if d.move is Move.PREEMPT and not s.hit[j] and s.live[j]]
    if not victims:
        return outcome
    left = [int(r) for r in s.room]
    below: dict[int, int] = defaultdict(int)
    limits = _limits(s)
    for j, d in decisions.items():
        _count(s, j, d, left, below, 1)
    guests = _guests_by_node(s, decisions)
    for j in sorted(victims, key=lambda j: (not s.budgeted[j], s.seniority(j))):
        back = kept(s, j)
        _count(s, j, back, left, below, 1)
        for guest in _in_the_way(s, decisions, guests, left, j) if s.budgeted[j] else []:
            if _fits(s, j, left, below, limits):
                break
            _count(s, guest, decisions[guest], left, below, -1)
            decisions[guest] = WAITS if s.pending[guest] else STOPS
        if _fits(s, j, left, below, limits):
            decisions[j] = back
        else:
            _count(s, j, back, left, below, -1)
    return Outcome(decisions, outcome.optimal)


def _limits(snapshot: Snapshot) -> dict[int, int]:
    """L1's bound of each group with a limit."""
    s = snapshot
    found = {}
    for c, group in enumerate(s.tree.groups):
        if group.max_gpus is not None:
            pinned = sum(
                int(s.held[j])
                for j in range(len(s.jobs))
                if s.pinned[j] and s.group[j] >= 0 and c in s.tree.path[int(s.group[j])]
            )
            found[c] = max(group.max_gpus, pinned)
    return found


def _count(s: Snapshot, job: int, d: Decision, left: list[int], below: dict[int, int], sign: int) -> None:
    for n, gpus in d.places:
        if n >= 0:
            left[n] -= sign * gpus
    if s.group[job] >= 0:
        for c in s.tree.path[int(s.group[job])]:
            below[c] += sign * d.gpus


def _fits(s: Snapshot, job: int, left: list[int], below: dict[int, int], limits: dict[int, int]) -> bool:
    """Whether nodes and limits hold with the job counted in."""
    nodes = all(left[n] >= 0 for n, _ in s.placement[job])
    return nodes and all(below[c] <= limits[c] for c in s.tree.path[int(s.group[job])] if c in limits)


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
