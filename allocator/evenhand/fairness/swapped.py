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


def envy_of(values: GroupValues, bundles: FloatArray) -> FloatArray:
    """By how much v_i of the others' scaled bundles exceeds v_i of the own, at least 0 (T3).

    Parameters
    ----------
    bundles : GPUs, float [L, T].

    Returns
    -------
    Throughput, the envious first, float [L, L].
    """
    envy = np.maximum(value_of_others(values, bundles) - value_of(values, bundles)[:, None], 0.0)
    np.fill_diagonal(envy, 0.0)
    return envy


def over_floor(values: GroupValues, amounts: FloatArray) -> FloatArray:
    """Throughput of each pair as a share of the first one's floor, float [L, L]; 0 where that is 0."""
    safe = np.where(values.floor > 0, values.floor, np.inf)
    return np.asarray(amounts / safe[:, None])
