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
    for j in sorted(victims, key=lambda j: (not s.budgeted[j], s.seniority(j))):
        back = kept(s, j)
        _count(s, j, back, left, below, 1)
        for guest in _guests(s, decisions, left, j) if s.budgeted[j] else []:
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


def _guests(s: Snapshot, decisions: dict[int, Decision], left: list[int], victim: int) -> list[int]:
    """Unallocated jobs that newly come to the victim's overfull nodes, the youngest first."""
    nodes = {n for n, _ in s.placement[victim] if left[n] < 0}
    found = [
        j
        for j, d in decisions.items()
        if s.live[j] and not s.budgeted[j] and d.move in {Move.START, Move.MIGRATE}
        and any(n in nodes for n, _ in d.places)
    ]  # fmt: skip
    return sorted(found, key=lambda j: (-s.submitted_s[j], -j))
