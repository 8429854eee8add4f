"""Usage recomputed plainly: minute by minute over whatever was told, with none of the ledger's tables or arithmetic.

A world is told in whole minutes. `charged` asks of each job and each minute: what did it hold, was it charged?
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction


@dataclass(frozen=True)
class Told:
    """An event: what, when (minutes), about which job or node, which start, on what."""

    kind: str
    at: int
    job: str = ""
    node: str = ""
    start: int | None = None
    on: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Seen:
    """A round: when, who holds what by (job, start), which nodes are down since when."""

    now: int
    holds: Mapping[tuple[str, int], tuple[tuple[str, int], ...]]
    down: Mapping[str, int]


@dataclass
class World:
    """Everything that was told, and who pays at what rate."""

    events: list[Told] = field(default_factory=list)
    rounds: list[Seen] = field(default_factory=list)
    group: Mapping[str, str] = field(default_factory=dict)
    charged: Mapping[str, bool] = field(default_factory=dict)
    rate: Fraction = Fraction(1)


def used(world: World, begin: int, end: int) -> dict[str, Fraction]:
    """Charged GPU-hours by group over the minutes in [begin, end)."""
    found: dict[str, Fraction] = {}
    starts = {(t.job, t.at) for t in world.events if t.kind == "started"}
    starts |= {(t.job, t.start) for t in world.events if t.kind == "resized" and t.start is not None}
    starts |= {key for r in world.rounds for key in r.holds}
    for job, start in sorted(starts):
        if not world.charged[job]:
            continue
        last = _end(world, job, start, sorted(s for j, s in starts if j == job))
        for minute in range(max(begin, start), end if last is None else min(end, last)):
            gpus = sum(g for node, g in _held(world, job, start, minute) if not _lost(world, node, start, minute))
            group = world.group[job]
            found[group] = found.get(group, Fraction(0)) + gpus * world.rate / 60
    return {group: hours for group, hours in found.items() if hours}


def _end(world: World, job: str, start: int, starts: Sequence[int]) -> int | None:
    """When a start of a job ended: as told, else when it was last known to hold its GPUs; None: goes on."""
    later = [s for s in starts if s > start]
    told = []
    for t in world.events:
        if t.kind == "ended" and t.job == job:
            meant = t.start if t.start is not None else max((s for s in starts if s <= t.at), default=None)
            if meant == start:
                told.append(t.at)
    if told:
        return min([*told, *later])
    seen = [r.now for r in world.rounds if (job, start) in r.holds]
    known = max([start, *seen, *(t.at for t in _told_held(world.events, job, start))])
    missed = [r.now for r in world.rounds if r.now > known]
    return min([known, *later]) if later or missed else None


def _told_held(events: Iterable[Told], job: str, start: int) -> list[Told]:
    return [
        t
        for t in events
        if t.job == job and ((t.kind == "started" and t.at == start) or (t.kind == "resized" and t.start == start))
    ]


def _held(world: World, job: str, start: int, minute: int) -> tuple[tuple[str, int], ...]:
    """What a start held in a minute: the last thing said; the first thing said holds back to the start."""
    said: list[tuple[int, int, str, tuple[tuple[str, int], ...]]] = []
    before = None
    for r in world.rounds:
        now = r.holds.get((job, start))
        if now is not None and now != before:
            said.append((r.now, 0, str(now), now))
            before = now
    said += [(t.at, 1, str(t.on), t.on) for t in _told_held(world.events, job, start)]
    said.sort(key=lambda one: (one[0], one[1], one[3]))
    past = [one for one in said if one[0] <= minute]
    return (past[-1] if past else said[0])[3]


def _lost(world: World, node: str, start: int, minute: int) -> bool:
    """Whether a node's GPUs were lost to a start: it went down after the start and was not up again since."""
    downs = [t.at for t in world.events if t.kind == "node_down" and t.node == node]
    ups = [t.at for t in world.events if t.kind == "node_up" and t.node == node]
    before: int | None = None
    for r in world.rounds:
        since = r.down.get(node)
        if since is not None and since != before:
            downs += [since, r.now]
        if since is None and before is not None:
            ups.append(r.now)
        before = since
    return any(start <= d <= minute and not any(d < u <= minute for u in ups) for d in downs)
