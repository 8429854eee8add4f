"""What protected jobs hold: the part of a division that no plan can change this round (rule P1)."""

from __future__ import annotations

import numpy as np

from evenhand.fairness.group_value import FloatArray
from evenhand.shapes import IntArray
from evenhand.snapshot import Snapshot


def pinned_bundles(snapshot: Snapshot, leaves: IntArray) -> FloatArray:
    """P_i: GPUs by type that the pinned budgeted jobs of each leaf hold, float [L, T].

    Parameters
    ----------
    leaves : group indices, int [L].
    """
    held = np.zeros((len(leaves), len(snapshot.types)))
    place = {int(g): i for i, g in enumerate(leaves)}
    for j in np.flatnonzero(snapshot.pinned & snapshot.budgeted):
        i = place.get(int(snapshot.group[j]))
        if i is not None and snapshot.held_type[j] >= 0:
            held[i, int(snapshot.held_type[j])] += int(snapshot.held[j])
    return held
