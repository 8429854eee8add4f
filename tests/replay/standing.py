"""A stand-in world for a snapshot: just what entitlements between rounds look at."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from evenhand.entitlement import _usage
from evenhand.snapshot import Snapshot


def world_of(s: Snapshot) -> Any:
    wanted: dict[tuple[int, ...], list[int]] = {}
    for j in np.flatnonzero(s.budgeted).tolist():
        fits = s.fits[j].copy()
        if not fits.any() and s.held_type[j] >= 0:
            fits[s.held_type[j]] = True
        row = wanted.setdefault(tuple(np.flatnonzero(fits).tolist()), [0] * len(s.tree.ids))
        row[int(s.group[j])] += int(s.demand_milli[j])
    own = _usage(s)[0]
    return SimpleNamespace(
        tree=s.tree, policy=s.policy, now_s=0, rates=s.rate_milli.tolist(), types=s.types, wanted_milli=wanted,
        ground=SimpleNamespace(capacity=s.capacity.tolist()), window=SimpleNamespace(gpu_hours=lambda _: own),
    )  # fmt: skip
