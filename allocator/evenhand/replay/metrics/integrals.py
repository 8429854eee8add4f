"""Integrals over hours of what starts and stops at known seconds, exact in whole numbers."""

from __future__ import annotations

import numpy as np

from evenhand.replay.result import IntArray

HOUR_S = 3_600


def hours_of(end_s: int) -> int:
    """Hours a period has, the last one perhaps cut short."""
    return -(-end_s // HOUR_S)


def by_hour(start_s: IntArray, end_s: IntArray, amount: IntArray, row: IntArray, rows: int, until_s: int) -> IntArray:
    """Integrate amounts held over intervals, by row and hour.

    Parameters
    ----------
    start_s, end_s : half-open intervals in seconds, int [n]; cut to [0, until_s).
    amount : what is held meanwhile (GPUs), int [n].
    row : where it is counted, 0 to rows - 1, int [n].

    Returns
    -------
    int [rows, hours]
        Amount-seconds in every hour.
    """
    hours = hours_of(until_s)
    part = np.zeros((rows, hours + 1), dtype=np.int64)
    slope = np.zeros((rows, hours + 2), dtype=np.int64)
    for at, sign in ((start_s, 1), (end_s, -1)):
        when = np.clip(at, 0, until_s)
        hour = when // HOUR_S
        np.add.at(part, (row, hour), sign * amount * ((hour + 1) * HOUR_S - when))
        np.add.at(slope, (row, hour + 1), sign * amount)
    whole = part + np.cumsum(slope, axis=1)[:, : hours + 1] * HOUR_S
    return whole[:, :hours]


def hour_lengths(until_s: int) -> IntArray:
    """Seconds of each hour of a period: 3,600, the last one perhaps fewer, int [hours]."""
    lengths = np.full(hours_of(until_s), HOUR_S, dtype=np.int64)
    if until_s % HOUR_S:
        lengths[-1] = until_s % HOUR_S
    return lengths
