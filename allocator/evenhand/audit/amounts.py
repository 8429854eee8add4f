"""Two exact little sums: the largest flow of demands into types (D1) and the largest subset sum (O, T5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import gcd

import networkx as nx

TOLERANCE = 1e-6
"""GPUs by which a sum may pass what is owed, so that rounding decides nothing."""
CUT_TYPES = 8
"""Up to so many types every cut is looked at; beyond, networkx finds the largest flow."""


def largest_flow(demands: Mapping[tuple[str, ...], int], capacity: Mapping[str, int]) -> int:
    """Return the largest flow from demands, each through any of its types, into the types' capacities (D1).

    Parameters
    ----------
    demands : mapping of tuple of str to int
        Demand by the types it may use, thousandths of a charged GPU.
    capacity : mapping of str to int
        Charged capacity by type, thousandths.
    """
    kinds = sorted({kind for reach in demands for kind in reach})
    total = sum([demand for reach, demand in demands.items() if reach])
    if total <= min([capacity[kind] for kind in kinds], default=0):
        return total  # any type alone could hold all
    if len(kinds) > CUT_TYPES:
        return _network_flow(demands, capacity)
    bit = {kind: 1 << place for place, kind in enumerate(kinds)}
    asked = [(sum(map(bit.__getitem__, reach)), demand) for reach, demand in demands.items()]
    full = [0]  # by set of types, as bits: what they hold
    for kind in kinds:
        full += [held + capacity[kind] for held in full]
    return min(held + sum([demand for reach, demand in asked if reach & ~types]) for types, held in enumerate(full))


def _network_flow(demands: Mapping[tuple[str, ...], int], capacity: Mapping[str, int]) -> int:
    """Return the same flow by networkx."""
    graph = nx.DiGraph()
    graph.add_nodes_from(("source", "sink"))
    for reach, demand in demands.items():
        graph.add_edge("source", ("demand", reach), capacity=demand)
        for kind in reach:
            graph.add_edge(("demand", reach), ("type", kind))
            graph.add_edge(("type", kind), "sink", capacity=capacity[kind])
    return int(nx.maximum_flow_value(graph, "source", "sink"))


def largest_subset(counts: Mapping[int, int], limit: int) -> int:
    """Return the largest sum, not above a limit, of a subset of whole amounts.

    Parameters
    ----------
    counts : mapping of int to int
        How often each amount may be taken.
    limit : int
        What the sum may not exceed.
    """
    if limit <= 0:
        return 0
    usable = {amount: count for amount, count in counts.items() if 0 < amount <= limit and count > 0}
    if (total := sum(amount * count for amount, count in usable.items())) <= limit:
        return total
    unit = gcd(*usable)
    top = limit // unit
    mask = (1 << (top + 1)) - 1
    reached = 1  # bit s: the sum s can be reached
    for step in _steps({amount // unit: count for amount, count in usable.items()}, top):
        reached |= (reached << step) & mask
        if reached >> top:
            return top * unit
    return (reached.bit_length() - 1) * unit


def _steps(counts: Mapping[int, int], top: int) -> Iterable[int]:
    """Split repeated amounts into steps of one, two, four ... of them, from the largest amount down."""
    for amount in sorted(counts, reverse=True):
        left, chunk = min(counts[amount], top // amount), 1
        while left > 0:
            yield amount * min(chunk, left)
            left -= chunk
            chunk *= 2
