"""When how many GPUs come out of protection under a plan (rules S10, P1)."""

from __future__ import annotations

from collections import Counter

import numpy as np

from evenhand.explain.aftermath import NEVER, Aftermath
from evenhand.explain.words import instant
from evenhand.outcome import Outcome
from evenhand.snapshot import Snapshot
from evenhand_models import Unlock
from evenhand_models.made import made


def unlocks(snapshot: Snapshot, outcome: Outcome) -> tuple[Unlock, ...]:
    """Count GPUs by type and end of protection, what starts in this plan included; by time, then type.

    What a protected job grew by is not protected; orphans have no known end.
    """
    held = Aftermath(snapshot, outcome).holdings
    found: Counter[tuple[float, int]] = Counter()
    rows = np.flatnonzero((held.until_s > snapshot.now_s) & (held.until_s < NEVER))
    until, kind = held.until_s[rows].tolist(), snapshot.node_type[held.node[rows]].tolist()
    for at, t, count in zip(until, kind, held.gpus[rows].tolist(), strict=True):
        found[at, t] += count
    ends = [(instant(at), t, count) for (at, t), count in sorted(found.items())]
    return tuple(
        made(Unlock, {"gpu_type": snapshot.types[t], "at": at, "gpus": count})
        for at, t, count in ends
        if at is not None
    )
