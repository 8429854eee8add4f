"""From what was reported to who held what when: one function of the set of facts.

The order in which facts arrived, and how often each did, makes no difference: nothing here knows it. The rules
(docs/service.md has them in words):

* An incarnation of a job is one start, known by its instant. What was reported first about it holds back to its start.
* It ends at the earliest end reported for it. Where nobody reported one and a later round or a later start
  shows that it is gone, it ended when it was last known to hold its GPUs. The job's next start ends it in any case.
* GPUs of a node that went down after the start stop counting then, until the node is reported up again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from evenhand_api.ledger.holding import Holding
from evenhand_api.ledger.instants import HOUR

LONGEST_PAST = 366 * 24 * HOUR
"""What was held longer ago than that when a job is first reported is not charged: more likely a slip than a start."""
Downs: TypeAlias = Mapping[str, Sequence[tuple[int, int | None]]]
"""By node the periods in which it was down, [from, to) in microseconds, to None: still is."""


@dataclass(frozen=True, slots=True)
class Report:
    """A holding, reported for an instant."""

    at_us: int
    from_event: bool
    holding: Holding


@dataclass(frozen=True, slots=True)
class Incarnation:
    """What is known of one start of a job.

    Attributes
    ----------
    reports : holdings reported by events, and by rounds wherever a round's differed from the round before.
    present : whether the latest round shows it.
    seen_us : the last round that showed it, if there was one and it is not the latest.
    """

    started_us: int
    reports: tuple[Report, ...]
    present: bool
    seen_us: int | None


@dataclass(frozen=True, slots=True)
class Key:
    """What one line of the ledger is about; lines of one key add up."""

    started_us: int
    group: str | None
    user: str | None
    gpu_type: str
    charged: bool
    rate_m: int


@dataclass(frozen=True, slots=True)
class Piece:
    """GPUs of one key over [from, to); to None: goes on."""

    key: Key
    gpus: int
    from_us: int
    to_us: int | None


def ends(
    incarnations: Sequence[Incarnation],
    reported: Sequence[tuple[int | None, int]],
    last_now_us: int | None,
) -> dict[int, int | None]:
    """Return the end of each incarnation by its start; None: goes on.

    Parameters
    ----------
    incarnations : those of one job, any order.
    reported : (start or None, end) of every end that was reported; without a start it means the last one before.
    last_now_us : the latest round, if there was one.
    """
    starts = sorted(i.started_us for i in incarnations)
    told: dict[int, int] = {}
    for start, end in reported:
        meant = start if start is not None else max((s for s in starts if s <= end), default=None)
        if meant is not None:
            told[meant] = min(end, told.get(meant, end))
    found: dict[int, int | None] = {}
    for incarnation in incarnations:
        start = incarnation.started_us
        known = _last_known(incarnation, last_now_us)
        later = [s for s in starts if s > start]
        gone = bool(later) or (not incarnation.present and last_now_us is not None and last_now_us > known)
        if start in told:
            found[start] = max(start, min([told[start], *later]))
        else:
            found[start] = max(start, min([known, *later])) if gone else None
    return found


def _last_known(incarnation: Incarnation, last_now_us: int | None) -> int:
    """When it was last known to hold its GPUs: seen by a round, or told by an event."""
    known = [incarnation.started_us, *(r.at_us for r in incarnation.reports if r.from_event)]
    seen = last_now_us if incarnation.present else incarnation.seen_us
    return max(known if seen is None else [*known, seen])


def pieces(incarnation: Incarnation, end_us: int | None, downs: Downs) -> list[Piece]:
    """Return what an incarnation held over time, in order, pieces of equal terms joined."""
    reports = sorted(incarnation.reports, key=lambda r: (r.at_us, r.from_event, r.holding.on, r.holding.written()))
    if not reports:
        return []
    start = max(incarnation.started_us, reports[0].at_us - LONGEST_PAST)
    if end_us is not None and end_us <= start:
        return []
    lost = {
        node: [(d, u) for d, u in downs.get(node, ()) if d >= start]
        for node in {node for report in reports for node, _ in report.holding.on}
    }
    cuts = {start, *(r.at_us for r in reports[1:])}
    cuts |= {cut for periods in lost.values() for period in periods for cut in period if cut is not None}
    inside = sorted(cut for cut in cuts if cut >= start and (end_us is None or cut < end_us))
    found: list[Piece] = []
    for begin, finish in zip(inside, [*inside[1:], end_us], strict=True):
        known = [r for r in reports if r.at_us <= begin]
        holding = (known or reports)[-1 if known else 0].holding
        gpus = sum(gpus for node, gpus in holding.on if not _is_down(lost[node], begin))
        if not gpus:
            continue
        key = Key(
            incarnation.started_us, holding.group, holding.user, holding.gpu_type, holding.charged, holding.rate_m
        )
        if found and found[-1].key == key and found[-1].gpus == gpus and found[-1].to_us == begin:
            found[-1] = Piece(key, gpus, found[-1].from_us, finish)
        else:
            found.append(Piece(key, gpus, begin, finish))
    return found


def down_periods(facts: Sequence[tuple[int, bool]]) -> list[tuple[int, int | None]]:
    """Return the periods in which a node was down, from (instant, whether up) in any order.

    Each instant at which it was said to be down begins a period that lasts until the next one at which it
    was said to be up. Periods may lie inside one another: a start between two of them ends neither.
    """
    ups = sorted(at for at, up in facts if up)
    downs = sorted({at for at, up in facts if not up})
    return [(at, next((up for up in ups if up > at), None)) for at in downs]


def _is_down(periods: Sequence[tuple[int, int | None]], at_us: int) -> bool:
    return any(begin <= at_us and (end is None or at_us < end) for begin, end in periods)
