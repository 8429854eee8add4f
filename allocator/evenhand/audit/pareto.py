"""T6: what the stated prices prove about throughput that a target leaves on the table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf, isfinite

import numpy as np

from evenhand.audit.numbers import close
from evenhand.audit.reading import Reading
from evenhand.audit.report import Finding
from evenhand.audit.target import Leaf, Target
from evenhand_models import Certificate

_AT_ONCE = 256
"""So many leaves are looked at together."""


def check_pareto(reading: Reading, target: Target, seal: Certificate) -> Iterator[Finding]:
    """Check that the stated gap is what the stated prices prove (T6)."""
    if seal.pareto_gap is None:
        if seal.pareto_prices:
            yield Finding("T6", "there are prices, but no Pareto gap that they prove.")
        return
    odd = [kind for kind, price in seal.pareto_prices.items() if price < 0 or kind not in reading.types]
    if odd:
        yield Finding("T6", f"a price is below 0, or of no type of the cluster: {', '.join(odd)}.", tuple(odd))
        return
    true = proven_gap(reading, target, seal.pareto_prices)
    if true == inf or not close(seal.pareto_gap, true):
        yield Finding("T6", f"pareto_gap says {seal.pareto_gap:g}, its prices prove {true:g}.")


def proven_gap(reading: Reading, target: Target, prices: Mapping[str, float]) -> float:
    """Return the most that any division could bring with nobody worse off, as a share above the target.

    Infinite where the prices are so high that they cannot be reckoned with.

    Parameters
    ----------
    prices : mapping of str to float
        Throughput per GPU by type, 0 or more; a type left out costs nothing.
    """
    value = target.brings
    total = sum(value.values())
    if total <= 0:
        return 0.0
    most = sum(prices.get(kind, 0.0) * gpus for kind, gpus in reading.capacity.items())
    there = {kind: prices.get(kind, 0.0) for kind, gpus in reading.capacity.items() if gpus > 0}
    whole = sum(reading.capacity.values())
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(target.leaves), _AT_ONCE):
            most += _least(target.leaves[start : start + _AT_ONCE], whole, value, there)
    return max(0.0, most / total - 1.0) if isfinite(most) else inf


def _least(leaves: Sequence[Leaf], whole: int, value: Mapping[str, float], prices: Mapping[str, float]) -> float:
    """Return the part of the bound of some leaves: least over s >= 1 of the profit of a leaf's classes at s, less (s - 1) v.

    A class's profit is a maximum of straight lines in s, one for each type and 0, so the least is at 1 or where two
    of one class meet.
    """
    price = np.array([*prices.values(), 0.0])
    places = max([len(leaf.classes) for leaf in leaves], default=0)
    speed = np.zeros((len(leaves), places, len(price)))
    gpus = np.zeros((len(leaves), places, 1))
    for row, leaf in enumerate(leaves):
        for place, one in enumerate(leaf.classes):
            gpus[row, place] = min(one.gpus, whole)
            speed[row, place, :-1] = [one.speed.get(kind, 0.0) for kind in prices]
    first, second = np.triu_indices(len(price), 1)
    steeper = speed[:, :, first] - speed[:, :, second]
    meet = np.divide(price[first] - price[second], steeper, out=np.ones_like(steeper), where=steeper != 0)
    scales = np.maximum(meet, 1.0).reshape(len(leaves), -1)
    scales = np.concatenate([np.ones((len(leaves), 1)), scales], axis=1)
    profit = np.zeros_like(scales)
    for place in range(places):
        best = (scales[:, :, None] * speed[:, place, None, :] - price).max(axis=2)
        profit += gpus[:, place] * best
    floors = np.array([[value[leaf.group]] for leaf in leaves])
    return float((profit - (scales - 1.0) * floors).min(axis=1).sum())
