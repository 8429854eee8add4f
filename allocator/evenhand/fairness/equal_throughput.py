"""Equal throughput for what is owed (rule T4, non-cooperative OEF, filled up where someone cannot follow)."""

from __future__ import annotations

from evenhand.fairness.group_value import FloatArray, GroupValues
from evenhand.fairness.max_min import water_filled


def equal_throughput(values: GroupValues, iterations: int = 100_000) -> tuple[FloatArray, bool]:
    """Throughput over entitlement as high as can be, the least first: bundles, float [L, T], and if proven.

    Where all leaves can use all types and no cap is in the way, all are level: who is above could hand some
    of its GPUs to those below. Who is held back by its cap, or by types that only few can use, stays where
    it is and the others rise on together.
    """
    return water_filled(values, values.entitled, iterations)
