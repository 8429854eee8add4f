"""Leaves drawn at random, fed to the fair target directly."""

from __future__ import annotations

import numpy as np

from evenhand.fairness.group_value import GroupValues, values_of


def values(seed: int, leaves: int, types: int, *, caps: str = "some", twins: bool = False) -> GroupValues:
    """Random W, e, caps and capacity.

    Parameters
    ----------
    caps : "none", "some" (1 to 4 times what is owed) or "tight" (0.3 to 1.5 times); twins : few different leaves.
    """
    rng = np.random.default_rng(seed)
    kinds = max(1, leaves // 3) if twins else leaves
    weights = rng.uniform(0.1, 1.0, (kinds, types))
    weights[rng.random((kinds, types)) < 0.15] = 0.0
    weights[np.arange(kinds), rng.integers(0, types, kinds)] = 1.0
    entitled = rng.lognormal(1.5, 1.0, kinds)
    factor = {"none": np.full(kinds, 1e6), "some": rng.uniform(1, 4, kinds), "tight": rng.uniform(0.3, 1.5, kinds)}
    cap = np.ceil(entitled * factor[caps]).astype(np.int64)
    pick = rng.integers(0, kinds, leaves) if twins else np.arange(leaves)
    capacity = rng.multinomial(max(1, int(entitled[pick].sum())), np.full(types, 1 / types))
    return values_of(np.arange(leaves), entitled[pick], weights[pick], cap[pick], capacity.astype(np.int64))


def plain(weights: list[list[float]], capacity: list[int], entitled: list[float] | None = None) -> GroupValues:
    """Values without caps that matter, equal entitlements by default."""
    table = np.array(weights, dtype=np.float64)
    owed = np.ones(len(table)) if entitled is None else np.array(entitled, dtype=np.float64)
    cap = np.full(len(table), 10**6, dtype=np.int64)
    return values_of(np.arange(len(table)), owed, table, cap, np.array(capacity, dtype=np.int64))


def class_values(seed: int, leaves: int, types: int, *, caps: str = "some") -> GroupValues:
    """Random values of leaves with 1 to 5 job classes each, some of which can use few types.

    Parameters
    ----------
    caps : as for `values`, of all classes of a leaf together.
    """
    rng = np.random.default_rng(seed)
    count = rng.integers(1, 6, leaves)
    of = np.repeat(np.arange(leaves), count)
    weights = rng.uniform(0.1, 1.0, (len(of), types))
    weights[rng.random((len(of), types)) < 0.3] = 0.0
    weights[np.arange(len(of)), rng.integers(0, types, len(of))] = 1.0
    entitled = rng.lognormal(1.5, 1.0, leaves)
    factor = {"none": np.full(leaves, 1e6), "some": rng.uniform(1, 4, leaves), "tight": rng.uniform(0.3, 1.5, leaves)}
    part = rng.uniform(0.1, 1.0, len(of))
    part /= np.bincount(of, weights=part)[of]
    cap = np.ceil((entitled * factor[caps])[of] * part).astype(np.int64)
    capacity = rng.multinomial(max(1, int(entitled.sum())), np.full(types, 1 / types)).astype(np.int64)
    return values_of(np.arange(leaves), entitled, weights, cap, capacity, of)
