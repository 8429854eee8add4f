"""T: the fair target by GPU type: what entitlements ask of it, and the aims that follow from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import floor

import numpy as np
from numpy.typing import NDArray

from evenhand.audit.amounts import TOLERANCE, largest_subset
from evenhand.audit.dues import Dues
from evenhand.audit.reading import MILLI, Reading
from evenhand.audit.shape import parts
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
    speed : mapping of str to float
        `W_it`: throughput of one GPU by type, 0 where none of its jobs can run.
    order : tuple of str
        The types with W above 0, best first.
    slice : mapping of str to float
        `s_i`: its part of the capacity in proportion to its entitlement (T2).
    floor : float
        `v_i(s_i)` (T2).
    price : float
        `pi_i` (T3).
    biggest : int
        Largest throughput of one of its gangs at its best type, thousandths (E1).
    """

    group: str
    entitled: float
    cap: int
    speed: Mapping[str, float]
    order: tuple[str, ...]
    slice: Bundle
    floor: float
    price: float
    biggest: int

    def value(self, bundle: Bundle) -> float:
        """Return `v_i`: the throughput of a bundle, best types first, at most cap GPUs (T1)."""
        return sum(self.speed[kind] * gpus for kind, gpus in take(self.order, self.cap, bundle).items())

    def bound(self, bundle: Bundle, scale: float = 1.0) -> float:
        """Return `L_i` of a scaled bundle: a straight line above `v_i` that touches it at the slice (T3)."""
        extra = sum(
            max(self.speed[kind] - self.price, 0.0) * gpus for kind, gpus in bundle.items() if kind in self.speed
        )
        return self.price * self.cap + scale * extra


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a plan, and what it asks for.

    Attributes
    ----------
    leaves : tuple of Leaf
        Leaves with an entitlement, by group.
    bundle : mapping of str to Bundle
        `x_i` of each leaf, by group.
    value : mapping of str to float
        `V_i` (T5).
    aim : mapping of str to int
        `aim_i`, thousandths (T5).
    base : array of float, shape (leaves,)
        `pi_i cap_i`.
    slope : array of float, shape (leaves, types)
        `max(W_it - pi_i, 0)`, types in the order of the reading.
    entitled : array of float, shape (leaves,)
        `e_i`.
    biggest : array of float, shape (leaves,)
        `big_i`, GPUs.
    """

    leaves: tuple[Leaf, ...]
    bundle: Mapping[str, Bundle]
    value: Mapping[str, float]
    aim: Mapping[str, int]
    base: NDArray[np.float64]
    slope: NDArray[np.float64]
    entitled: NDArray[np.float64]
    biggest: NDArray[np.float64]


def take(order: tuple[str, ...], cap: float, bundle: Bundle) -> dict[str, float]:
    """Take from a bundle in an order of types, at most cap GPUs (T1)."""
    left, taken = float(cap), {}
    for kind in order:
        part = min(left, max(0.0, bundle.get(kind, 0.0)))
        taken[kind] = part
        left -= part
    return taken


def entitled_leaves(reading: Reading, dues: Dues) -> tuple[Leaf, ...]:
    """Return the leaves with an entitlement, by group."""
    groups = [group for group in sorted(reading.members) if dues.leaf[group] > NO_ENTITLEMENT]
    total = sum(dues.leaf[group] for group in groups)
    return tuple(_leaf(reading, group, dues.leaf[group], dues.leaf[group] / total) for group in groups)


def _leaf(reading: Reading, group: str, entitled: float, part: float) -> Leaf:
    """Work out one leaf's speeds, slice, floor and price."""
    members = reading.members[group]
    cap = sum(job.job.gpus for job in members)
    total = dict.fromkeys(reading.types, 0)
    for job in members:
        for kind, rate in job.rates.items():
            total[kind] += job.job.gpus * rate
    speed = {kind: gpus / (cap * MILLI) for kind, gpus in total.items()}
    order = tuple(sorted((kind for kind in speed if speed[kind] > 0), key=lambda kind: (-speed[kind], kind)))
    own = {kind: part * gpus for kind, gpus in reading.capacity.items()}
    taken = take(order, cap, own)
    price = 0.0
    if sum(own[kind] for kind in order) > cap + NO_ENTITLEMENT:
        price = speed[[kind for kind in order if taken[kind] > NO_ENTITLEMENT][-1]]
    return Leaf(
        group=group,
        entitled=entitled,
        cap=cap,
        speed=speed,
        order=order,
        slice=own,
        floor=sum(speed[kind] * gpus for kind, gpus in taken.items()),
        price=price,
        biggest=max(job.job.gpus * job.top_rate for job in members),
    )


def aim_at(reading: Reading, dues: Dues, bundle: Mapping[str, Bundle]) -> Target:
    """Work out values and aims of a target (T5).

    Parameters
    ----------
    bundle : mapping of str to Bundle
        `x_i` by group of the leaf; a leaf left out has nothing.
    """
    leaves = entitled_leaves(reading, dues)
    value = {leaf.group: _drawn(reading, leaf.group, bundle.get(leaf.group, {})) for leaf in leaves}
    slope = [[max(leaf.speed[kind] - leaf.price, 0.0) for kind in reading.types] for leaf in leaves]
    return Target(
        leaves=leaves,
        bundle={leaf.group: bundle.get(leaf.group, {}) for leaf in leaves},
        value=value,
        aim={group: _aim(reading, group, drawn) for group, drawn in value.items()},
        base=np.array([leaf.price * leaf.cap for leaf in leaves]),
        slope=np.array(slope).reshape(len(leaves), len(reading.types)),
        entitled=np.array([leaf.entitled for leaf in leaves]),
        biggest=np.array([leaf.biggest / MILLI for leaf in leaves]),
    )


def _drawn(reading: Reading, group: str, bundle: Bundle) -> float:
    """Return `V_i`: the most throughput the group's own jobs could draw from a bundle, split at will."""
    kinds = [kind for kind in reading.types if bundle.get(kind, 0.0) > 0]
    if not kinds:
        return 0.0
    classes: Counter[tuple[int, ...]] = Counter()
    for job in reading.members[group]:
        classes[tuple(job.rates.get(kind, 0) for kind in kinds)] += job.job.gpus
    return most_throughput(classes, [bundle[kind] for kind in kinds]) / MILLI


def _aim(reading: Reading, group: str, value: float) -> int:
    """Return `aim_i`: the largest sum of gangs at their best types not above V_i, thousandths."""
    gangs = Counter(part * job.top_rate for job in reading.members[group] for part in parts(job.job))
    return largest_subset(gangs, floor((value + TOLERANCE) * MILLI))
