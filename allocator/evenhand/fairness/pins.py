"""What protected jobs hold: the part of a division that no plan can change this round (rule P1)."""

from __future__ import annotations

import numpy as np

from evenhand.fairness.group_value import FloatArray, GroupValues
from evenhand.shapes import IntArray
from evenhand.snapshot import Snapshot


def pinned_split(snapshot: Snapshot, values: GroupValues, job_class: IntArray) -> FloatArray:
    """P_ik: GPUs by type that the pinned jobs of each class hold, float [K, T].

    Parameters
    ----------
    job_class : the class of each job, -1 for those of no leaf, int [J].
    """
    held = np.zeros(values.weights.shape)
    jobs = np.flatnonzero(snapshot.pinned & snapshot.budgeted & (job_class >= 0) & (snapshot.held_type >= 0))
    np.add.at(held, (job_class[jobs], snapshot.held_type[jobs]), snapshot.held[jobs])
    return held
