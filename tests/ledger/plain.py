"""Usage recomputed plainly: minute by minute over whatever was told, with none of the ledger's tables or arithmetic.

A world is told in whole minutes. `charged` asks of each job and each minute: what did it hold, was it charged?
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

On: TypeAlias = tuple[tuple[str, int], ...]
"""GPUs by node."""


@dataclass(frozen=True)
class Told:
    """An event: what, when (minutes), about which job or node, which start, on what."""

    kind: str
    at: int
    job: str = ""
    node: str = ""
    start: int | None = None
    on: On = ()


@dataclass(frozen=True)
class Seen:
    """A round: when, who holds what by (job, start), which nodes are down since when."""

    now: int
    holds: Mapping[tuple[str, int], On]
    down: Mapping[str, int]


@dataclass
class World:
    """Everything that was told, and who pays at what rate."""

    events: list[Told] = field(default_factory=list)
    rounds: list[Seen] = field(default_factory=list)
    group: Mapping[str, str] = field(default_factory=dict)
    charged: Mapping[str, bool] = field(default_factory=dict)
    rate: Fraction = Fraction(1)


class Shelves:
    """The same world sorted by job and by node, so that a month of it is read once."""

    def __init__(self, world: World) -> None:
        self.last_round = max((r.now for r in world.rounds), default=None)
        self.events: dict[str, list[Told]] = defaultdict(list)
        self.seen: dict[tuple[str, int], list[tuple[int, On]]] = defaultdict(list)
        for t in world.events:
            self.events[t.job].append(t)
        for r in world.rounds:
            for key, on in r.holds.items():
                self.seen[key].append((r.now, on))
        starts = {(t.job, t.at) for t in world.events if t.kind == "started"}
        starts |= {(t.job, t.start) for t in world.events if t.kind == "resized" and t.start is not None}
        self.starts: dict[str, list[int]] = defaultdict(list)
        for job, start in sorted(starts | self.seen.keys()):
            self.starts[job].append(start)
        self.downs, self.ups = _nodes(world)


def used(
    world: World, begin: int, end: int, weigh: Callable[[int], float | Fraction] = lambda _: Fraction(1, 60)
) -> dict[str, Any]:
    """Charged GPU-hours by group over the minutes in [begin, end); `weigh` says what a minute counts, in hours."""
    found: dict[str, Any] = {}
    shelves = Shelves(world)
    for job, starts in shelves.starts.items():
        if not world.charged[job]:
            continue
        for start in starts:
            last = _end(shelves, job, start)
            for minute in range(max(begin, start), end if last is None else min(end, last)):
                held = _held(shelves, job, start, minute)
                gpus = sum(g for node, g in held if not _lost(shelves, node, start, minute))
                group = world.group[job]
                found[group] = found.get(group, Fraction(0)) + gpus * world.rate * weigh(minute)
    return {group: hours for group, hours in found.items() if hours}


def _end(shelves: Shelves, job: str, start: int) -> int | None:
    """When a start of a job ended: as told, else when it was last known to hold its GPUs; None: goes on."""
    starts = shelves.starts[job]
    later = [s for s in starts if s > start]
    told = []
    for t in shelves.events[job]:
        if t.kind == "ended":
            meant = t.start if t.start is not None else max((s for s in starts if s <= t.at), default=None)
            if meant == start:
                told.append(t.at)
    if told:
        return min([*told, *later])
    seen = [now for now, _ in shelves.seen[job, start]]
    known = max([start, *seen, *(t.at for t in _told_held(shelves.events[job], start))])
    missed = shelves.last_round is not None and shelves.last_round > known
    return min([known, *later]) if later or missed else None


def _told_held(events: Sequence[Told], start: int) -> list[Told]:
    return [t for t in events if (t.kind == "started" and t.at == start) or (t.kind == "resized" and t.start == start)]


def _held(shelves: Shelves, job: str, start: int, minute: int) -> On:
    """What a start held in a minute: the last thing said; the first thing said holds back to the start."""
    said: list[tuple[int, int, str, On]] = []
    before = None
    for now, on in shelves.seen[job, start]:
        if on != before:
            said.append((now, 0, str(on), on))
            before = on
    said += [(t.at, 1, str(t.on), t.on) for t in _told_held(shelves.events[job], start)]
    said.sort(key=lambda one: (one[0], one[1], one[3]))
    past = [one for one in said if one[0] <= minute]
    return (past[-1] if past else said[0])[3]


def _nodes(world: World) -> tuple[Mapping[str, list[int]], Mapping[str, list[int]]]:
    """When nodes went down, and when they came back, as events and rounds say."""
    downs: dict[str, list[int]] = defaultdict(list)
    ups: dict[str, list[int]] = defaultdict(list)
    for t in world.events:
        if t.kind in ("node_down", "node_up"):
            (downs if t.kind == "node_down" else ups)[t.node].append(t.at)
    for node in {name for r in world.rounds for name in r.down}:
        before: int | None = None
        for r in world.rounds:
            since = r.down.get(node)
            if since is not None and since != before:
                downs[node] += [since, r.now]
            if since is None and before is not None:
                ups[node].append(r.now)
            before = since
    return downs, ups


def _lost(shelves: Shelves, node: str, start: int, minute: int) -> bool:
    """Whether a node's GPUs were lost to a start: it went down after the start and was not up again since."""
    downs, ups = shelves.downs.get(node, ()), shelves.ups.get(node, ())
    return any(start <= d <= minute and not any(d < u <= minute for u in ups) for d in downs)
