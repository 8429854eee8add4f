"""What each leaf would have of another's GPUs, scaled to its own entitlement (rule T1 over pairs)."""

from __future__ import annotations

import numpy as np

from evenhand.fairness.group_value import FloatArray, GroupValues, value_of


def value_of_others(values: GroupValues, bundles: FloatArray) -> FloatArray:
    """v_i((e_i/e_l) x_l): throughput, float [L, L]; whose value it is first, whose GPUs second.

    Parameters
    ----------
    bundles : GPUs, float [L, T].
    """
    e, count = values.entitled, len(values.entitled)
    found = np.zeros((count, count))
    for other in range(count):
        found[:, other] = value_of(values, (e / e[other])[:, None] * bundles[other])
    return found


def over_floor(values: GroupValues, amounts: FloatArray) -> FloatArray:
    """Throughput of each pair as a share of the first one's floor, float [L, L]; 0 where that is 0."""
    safe = np.where(values.floor > 0, values.floor, np.inf)
    return np.asarray(amounts / safe[:, None])
