"""What a round decides about every job, on which nodes: the currency between greedy, program, audit and words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import chain

import numpy as np

from evenhand.shapes import BoolArray, IntArray
from evenhand.snapshot import Snapshot

Places = tuple[tuple[int, int], ...]
"""Pairs (node index, GPUs), by node."""


class Move(StrEnum):
    """What happens to a job; finer than the plan's actions where prices differ."""

    START = "start"
    KEEP = "keep"
    MIGRATE = "migrate"
    REPAIR = "repair"
    RESIZE = "resize"
    PREEMPT = "preempt"
    WAIT = "wait"


ARRIVALS = frozenset({Move.START, Move.MIGRATE, Move.REPAIR})
"""Moves that pay a start (rule O5)."""


@dataclass(frozen=True)
class Decision:
    """One job's fate: where it ends up, or for a waiting one the type on which ending GPUs are reserved (O8)."""

    move: Move
    places: Places = ()
    gpu_type: int = -1
    reserved_type: int = -1

    @property
    def gpus(self) -> int:
        """GPUs the job holds once the plan is applied."""
        places = self.places
        return places[0][1] if len(places) == 1 else sum(gpus for _, gpus in places)


WAITS = Decision(Move.WAIT)
STOPS = Decision(Move.PREEMPT)


MOVES = tuple(Move)
_CODE = {move: code for code, move in enumerate(MOVES)}


@dataclass(frozen=True, eq=False)
class Table:
    """Decisions as arrays, by job; what is held, as rows by job, then node.

    Attributes
    ----------
    job, move, gpus, gpu_type, reserved_type : int [D]; `move` is a place in `MOVES`.
    at : of each row the place of its decision in the arrays above, int [R]; node, part : its node and GPUs.
    """

    job: IntArray
    move: IntArray
    gpus: IntArray
    gpu_type: IntArray
    reserved_type: IntArray
    at: IntArray
    node: IntArray
    part: IntArray

    def among(self, *moves: Move) -> BoolArray:
        """Which decisions are one of these moves, bool [D]."""
        return np.isin(self.move, [_CODE[m] for m in moves])


@dataclass(frozen=True)
class Outcome:
    """Decisions for all live and orphan jobs, by job index."""

    decisions: Mapping[int, Decision]
    optimal: bool = False

    @cached_property
    def table(self) -> Table:
        """The decisions as arrays, made once."""
        return tabulate(self.decisions)


def tabulate(decisions: Mapping[int, Decision]) -> Table:
    """Lay decisions out as arrays."""
    count = len(decisions)
    job = np.fromiter(decisions, dtype=np.int64, count=count)
    order = np.argsort(job)
    rank = np.empty(count, dtype=np.int64)
    rank[order] = np.arange(count)
    busy = [(i, d) for i, d in enumerate(decisions.values()) if d is not WAITS]  # most only wait
    place = rank[np.array([i for i, _ in busy], dtype=np.int64)]
    move, gpu_type, reserved = (np.full(count, value) for value in (_CODE[Move.WAIT], -1, -1))
    move[place] = [_CODE[d.move] for _, d in busy]
    gpu_type[place] = [d.gpu_type for _, d in busy]
    reserved[place] = [d.reserved_type for _, d in busy]
    at = np.repeat(place, np.array([len(d.places) for _, d in busy], dtype=np.int64))
    by_job = np.argsort(at, kind="stable")
    flat = list(chain.from_iterable(d.places for _, d in busy))
    at, (node, part) = at[by_job], np.array(flat, dtype=np.int64).reshape(-1, 2)[by_job].T
    return Table(
        job=job[order],
        move=move,
        gpus=np.bincount(at, part, count).astype(np.int64),
        gpu_type=gpu_type,
        reserved_type=reserved,
        at=at,
        node=node,
        part=part,
    )


def kept(snapshot: Snapshot, job: int) -> Decision:
    """The decision that leaves a running job as it is."""
    return Decision(Move.KEEP, snapshot.placement[job], int(snapshot.held_type[job]))


def arrivals(snapshot: Snapshot, job: int, decision: Decision) -> dict[int, int]:
    """GPUs by node on which the decision has the job arrive: all of a start or move, the growth of the rest."""
    if decision.move in {Move.START, Move.MIGRATE}:
        return dict(decision.places)
    return exchanged(snapshot, job, decision)[0]


def exchanged(snapshot: Snapshot, job: int, decision: Decision) -> tuple[dict[int, int], dict[int, int]]:
    """GPUs by node that the decision newly takes, and that it gives back; a node it stays on counts the difference."""
    before = dict(snapshot.placement[job]) if snapshot.running[job] else {}
    after = dict(decision.places)
    gains = {n: g - before.get(n, 0) for n, g in after.items() if g > before.get(n, 0)}
    losses = {n: g - after.get(n, 0) for n, g in before.items() if n >= 0 and g > after.get(n, 0)}
    return gains, losses
