"""When how many GPUs come out of protection under a plan (rules S10, P1)."""

from __future__ import annotations

from collections import Counter

from evenhand.explain.aftermath import NEVER, PAST, Aftermath
from evenhand.explain.words import instant
from evenhand.outcome import Outcome
from evenhand.snapshot import Snapshot
from evenhand_models import Unlock


def unlocks(snapshot: Snapshot, outcome: Outcome) -> tuple[Unlock, ...]:
    """Count GPUs by type and end of protection, what starts in this plan included; by time, then type.

    What a protected job grew by is not protected; orphans have no known end.
    """
    held = Aftermath(snapshot, outcome).holdings
    found: Counter[tuple[float, int]] = Counter()
    for node, count, until in zip(held.node, held.gpus, held.until_s, strict=True):
        if PAST < until < NEVER and until > snapshot.now_s:
            found[float(until), int(snapshot.node_type[node])] += int(count)
    ends = [(instant(at), t, count) for (at, t), count in sorted(found.items())]
    return tuple(Unlock(gpu_type=snapshot.types[t], at=at, gpus=count) for at, t, count in ends if at is not None)
