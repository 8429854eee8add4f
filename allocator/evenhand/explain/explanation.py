"""The words of a plan: for every job why, from when on, and what would change it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from evenhand.entitlement import Entitlement
from evenhand.explain.aftermath import Aftermath
from evenhand.explain.answer import Explanation
from evenhand.explain.impossible import Impossible
from evenhand.explain.leaving import Leaving
from evenhand.explain.ranks import Ranks
from evenhand.explain.running import Running
from evenhand.explain.starting import Fares, Starting
from evenhand.explain.waiting import Waiting
from evenhand.fairness.target import Target
from evenhand.outcome import Move, Outcome
from evenhand.program.index import Index
from evenhand.snapshot import Snapshot
from evenhand_models import Reason


def explain(
    snapshot: Snapshot,
    entitlement: Entitlement,
    target: Target,
    index: Index,
    outcome: Outcome,
    *,
    after: Mapping[int, tuple[int, ...]] | None = None,
) -> dict[int, Explanation]:
    """Explain every job of the state, by job index; equal states and outcomes give equal words.

    Parameters
    ----------
    after : leavers that each arrival waits for, if they are decided already (rule A2); else worked out here.
    """
    aftermath = Aftermath(snapshot, outcome, after)
    ranks = Ranks(aftermath, entitlement)
    waiting = Waiting(aftermath, index, ranks)
    fares = Fares(aftermath, target, ranks)
    starting = Starting(aftermath, entitlement, ranks, fares)
    running = Running(aftermath, fares)
    leaving = Leaving(aftermath, ranks)
    impossible = Impossible(snapshot)
    by_move: dict[Move, Callable[[int], tuple[Reason, ...]]] = {
        Move.START: starting.explain, Move.KEEP: running.keep, Move.MIGRATE: running.migrate,
        Move.REPAIR: running.migrate, Move.RESIZE: running.resize, Move.PREEMPT: leaving.explain,
    }  # fmt: skip
    found = dict(waiting.explain())
    for j in np.flatnonzero(snapshot.infeasible).tolist():
        found[j] = Explanation(impossible.explain(j))
    for j in np.flatnonzero(snapshot.terminating).tolist():
        found[j] = Explanation(running.terminating(j))
    others = aftermath.table.job[~aftermath.table.among(Move.WAIT)]
    for j in others[~snapshot.terminating[others]].tolist():
        found[j] = Explanation(by_move[aftermath.decisions[j].move](j))
    return found
