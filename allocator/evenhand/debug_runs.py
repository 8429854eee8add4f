"""Debug runs: short jobs that are owed a start at once, whatever their group holds (rule O3)."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from evenhand.shapes import BoolArray
from evenhand.snapshot import Snapshot


def is_debug(snapshot: Snapshot) -> BoolArray:
    """Which jobs count as debug runs, bool [J].

    Budgeted, not resumable (what comes back after a stop would be owed again and again), with a contract of at most
    `debug_contract_s`, and no larger than the largest node. Without any contract (`max_protection_s` 0) nothing would tell who
    has had his start, and the next would be owed his in the same instant.
    """
    s = snapshot
    short = (s.contract_s > 0) & (s.contract_s <= s.policy.debug_contract_s)
    return s.budgeted & ~s.resumable & short & (s.size <= s.sites.largest_node)


def debug_runs(snapshot: Snapshot) -> list[int]:
    """Debug runs that wait, have lost a node, or are inside their contract: at most `debug_share` of the usable GPUs.

    Those inside their contract count first: nobody is owed more by sending others that go before them. Then groups take turns:
    who asks for least with it in its own group comes first, inside a group by priority, then age. Who finds too little left
    ends it: so a run that starts takes nothing from the others and leaves them nothing more, and asked again the same are owed.
    """
    s = snapshot
    may_start = (s.fits & (s.capacity > 0)).any(axis=1)  # who waits for nodes that are down takes nobody's turn
    owed_now = (~s.running & may_start) | s.hit | (s.now_s < np.nan_to_num(s.started_s) + s.contract_s)
    lines: dict[int, list[int]] = defaultdict(list)
    for j in np.flatnonzero(is_debug(s) & owed_now).tolist():
        lines[int(s.group[j])].append(j)
    turns = []
    for g, runs in lines.items():
        asked = 0
        for at, j in enumerate(sorted(runs, key=s.seniority)):
            asked += int(s.size[j])
            turns.append((asked, s.tree.ids[g], at, j))
    most = s.policy.debug_share * int(s.capacity.sum())
    line = [j for _, _, _, j in sorted(turns)]
    owed = [j for j in line if s.running[j] and not s.hit[j]]
    taken = int(s.size[owed].sum())
    for j in line:
        if (s.running[j] and not s.hit[j]) or s.size[j] > most:
            continue
        taken += int(s.size[j])
        if taken > most:
            break
        owed.append(j)
    return owed
