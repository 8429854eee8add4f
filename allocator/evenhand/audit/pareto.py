"""T6: what the stated prices prove about throughput that a target leaves on the table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from evenhand.audit.numbers import close
from evenhand.audit.reading import Reading
from evenhand.audit.report import Finding
from evenhand.audit.target import Leaf, Target
from evenhand_models import Certificate


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
    if not close(seal.pareto_gap, true):
        yield Finding("T6", f"pareto_gap says {seal.pareto_gap:g}, its prices prove {true:g}.")


def proven_gap(reading: Reading, target: Target, prices: Mapping[str, float]) -> float:
    """Return the most that any division could bring with nobody worse off, as a share above the target.

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
    most += sum(_least(leaf, whole, value[leaf.group], there) for leaf in target.leaves)
    return max(0.0, most / total - 1.0)


def _least(leaf: Leaf, whole: int, value: float, prices: Mapping[str, float]) -> float:
    """Return a leaf's part of the bound: least over s >= 1 of the profit of its classes at s, less (s - 1) v.

    A class's profit is a maximum of straight lines in s, one for each type and 0, so the least is at 1 or where two
    of one class meet.
    """
    classes = [
        (min(one.gpus, whole), [(one.speed.get(kind, 0.0), price) for kind, price in prices.items()] + [(0.0, 0.0)])
        for one in leaf.classes
    ]
    places = {1.0}
    for _, lines in classes:
        for (steep, price), (flat, other) in combinations(lines, 2):
            if steep != flat:
                places.add(max(1.0, (price - other) / (steep - flat)))
    return min(
        sum(gpus * max(scale * speed - price for speed, price in lines) for gpus, lines in classes)
        - (scale - 1.0) * value
        for scale in places
    )
