"""T: the fair target by GPU type: what entitlements ask of it, and the aims that follow from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import floor

import numpy as np
from numpy.typing import NDArray

from evenhand.audit.amounts import TOLERANCE, largest_subset
from evenhand.audit.classes import JobClass, Rates, alike_in, best_split, brought, cap_prices, classes_of, slope_of
from evenhand.audit.dues import Dues
from evenhand.audit.reading import MILLI, Reading
from evenhand.audit.transport import most_throughput

Bundle = Mapping[str, float]
"""GPUs by type, fractional."""
NO_ENTITLEMENT = 1e-9
"""Charged GPUs up to which an entitlement counts as 0."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One leaf with an entitlement.

    Attributes
    ----------
    group : str
        Its group.
    entitled : float
        `e_i`, charged GPUs, above 0.
    cap : int
        `cap_i`: GPUs its live budgeted jobs can hold.
    alike : mapping of tuple to int
        GPUs its jobs can hold, by their throughput on the types they can use.
    classes : tuple of JobClass
        Its job classes (T1).
    slice : mapping of str to float
        `s_i`: its part of the capacity in proportion to its entitlement (T2).
    floor : float
        `v_i(s_i)` (T2).
    prices : tuple of float
        `pi_ik`, by class (T3).
    slope : mapping of str to float
        `q_it`, by the types it can use (T3).
    base : float
        What its caps cost at these prices (T3).
    biggest : int
        Largest throughput of one of its gangs at its best type, thousandths (E1).
    """

    group: str
    entitled: float
    cap: int
    alike: Mapping[Rates, int]
    classes: tuple[JobClass, ...]
    slice: Bundle
    floor: float
    prices: tuple[float, ...]
    slope: Mapping[str, float]
    base: float
    biggest: int

    def value(self, bundle: Bundle) -> float:
        """Return `v_i`: the most throughput of a bundle, split among the classes (T1)."""
        return brought(self.classes, best_split(self.classes, bundle))

    def used(self, bundle: Bundle) -> dict[str, float]:
        """Return the part of a bundle that brings something where it is split best (T1)."""
        total: Counter[str] = Counter()
        for held in best_split(self.classes, bundle).held:
            total.update(held)
        return dict(total)

    def bound(self, bundle: Bundle, scale: float = 1.0) -> float:
        """Return `L_i` of a scaled bundle: a straight line above `v_i` that touches it at the slice (T3)."""
        return self.base + scale * sum(self.slope.get(kind, 0.0) * gpus for kind, gpus in bundle.items())


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a plan, and what it asks for.

    Attributes
    ----------
    leaves : tuple of Leaf
        Leaves with an entitlement, by group.
    bundle : mapping of str to Bundle
        `x_i` of each leaf, by group.
    brings : mapping of str to float
        `v_i(x_i)` (T1).
    value : mapping of str to float
        `V_i` (T5).
    aim : mapping of str to int
        `aim_i`, thousandths (T5).
    base : array of float, shape (leaves,)
        Sum of `pi_ik cap_ik`.
    slope : array of float, shape (leaves, types)
        `q_it`, types in the order of the reading.
    entitled : array of float, shape (leaves,)
        `e_i`.
    biggest : array of float, shape (leaves,)
        `big_i`, GPUs.
    """

    leaves: tuple[Leaf, ...]
    bundle: Mapping[str, Bundle]
    brings: Mapping[str, float]
    value: Mapping[str, float]
    aim: Mapping[str, int]
    base: NDArray[np.float64]
    slope: NDArray[np.float64]
    entitled: NDArray[np.float64]
    biggest: NDArray[np.float64]


def entitled_leaves(reading: Reading, dues: Dues) -> tuple[Leaf, ...]:
    """Return the leaves with an entitlement, by group."""
    groups = [group for group in sorted(reading.members) if dues.leaf[group] > NO_ENTITLEMENT]
    total = sum(dues.leaf[group] for group in groups)
    return tuple(_leaf(reading, group, dues.leaf[group], dues.leaf[group] / total) for group in groups)


def _leaf(reading: Reading, group: str, entitled: float, part: float) -> Leaf:
    """Work out one leaf's classes, slice, floor and prices."""
    kinds = reading.kinds[group]
    alike = alike_in(kinds)
    classes = classes_of(alike)
    own = {kind: part * gpus for kind, gpus in reading.capacity.items()}
    split = best_split(classes, own)
    prices = cap_prices(classes, split)
    return Leaf(
        group=group,
        entitled=entitled,
        cap=sum([one.gpus for one in classes]),
        alike=alike,
        classes=classes,
        slice=own,
        floor=brought(classes, split),
        prices=prices,
        slope=slope_of(classes, prices),
        base=sum([price * one.gpus for price, one in zip(prices, classes, strict=True)]),
        biggest=max([kind.gpus * kind.top_rate for kind in kinds]),
    )


def aim_at(
    reading: Reading, dues: Dues, bundle: Mapping[str, Bundle], leaves: tuple[Leaf, ...] | None = None
) -> Target:
    """Work out values and aims of a target (T5).

    Parameters
    ----------
    bundle : mapping of str to Bundle
        `x_i` by group of the leaf; a leaf left out has nothing.
    leaves : tuple of Leaf, optional
        `entitled_leaves`, if they are known.
    """
    leaves = entitled_leaves(reading, dues) if leaves is None else leaves
    value = {leaf.group: _drawn(reading, leaf, bundle.get(leaf.group, {})) for leaf in leaves}
    slope = [[leaf.slope.get(kind, 0.0) for kind in reading.types] for leaf in leaves]
    return Target(
        leaves=leaves,
        bundle={leaf.group: bundle.get(leaf.group, {}) for leaf in leaves},
        brings={leaf.group: leaf.value(bundle.get(leaf.group, {})) for leaf in leaves},
        value=value,
        aim={group: _aim(reading, group, drawn) for group, drawn in value.items()},
        base=np.array([leaf.base for leaf in leaves]),
        slope=np.array(slope).reshape(len(leaves), len(reading.types)),
        entitled=np.array([leaf.entitled for leaf in leaves]),
        biggest=np.array([leaf.biggest / MILLI for leaf in leaves]),
    )


def _drawn(reading: Reading, leaf: Leaf, bundle: Bundle) -> float:
    """Return `V_i`: the most throughput the group's own jobs could draw from a bundle, split at will."""
    kinds = [kind for kind in reading.types if bundle.get(kind, 0.0) > 0]
    if not kinds:
        return 0.0
    alike: dict[tuple[int, ...], int] = {}
    for rates, gpus in leaf.alike.items():
        pace = dict(rates)
        key = tuple([pace.get(kind, 0) for kind in kinds])
        alike[key] = alike.get(key, 0) + gpus
    return most_throughput(alike, [bundle[kind] for kind in kinds]) / MILLI


def _aim(reading: Reading, group: str, value: float) -> int:
    """Return `aim_i`: the largest sum of gangs at their best types not above V_i, thousandths."""
    gangs: dict[int, int] = {}
    for kind, count in reading.kinds[group].items():
        for part in kind.parts:
            milli = part * kind.top_rate
            gangs[milli] = gangs.get(milli, 0) + count
    return largest_subset(gangs, floor((value + TOLERANCE) * MILLI))
