"""D4: how a node of the tree divides what it holds among its children; exact, in rational numbers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np


@dataclass(frozen=True, slots=True)
class Claim:
    """One child that wants a part, in charged GPUs.

    Attributes
    ----------
    weight : Fraction
        Above 0.
    past : Fraction
        Usage over the horizon, u/H.
    floor, cap : Fraction
        The guarantee p, and the least of demand and limit; 0 <= floor <= cap.
    """

    weight: Fraction
    past: Fraction
    floor: Fraction
    cap: Fraction

    def at(self, level: Fraction) -> Fraction:
        """Return what the child gets at a level lambda."""
        return min(max(level * self.weight - self.past, self.floor), self.cap)


def scaled_floors(amount: Fraction, floors: Sequence[Fraction]) -> list[Fraction]:
    """Cut guarantees in proportion where together they exceed what there is."""
    total = sum(floors, Fraction(0))
    return list(floors) if total <= amount else [floor * amount / total for floor in floors]


def split(amount: Fraction, claims: Sequence[Claim]) -> list[Fraction]:
    """Divide an amount: every claim at one common level, such that all is given that is wanted.

    Parameters
    ----------
    amount : Fraction
        Charged GPUs to divide, 0 or more.
    claims : sequence of Claim
        Who wants them.

    Returns
    -------
    list of Fraction
        What each gets, in the same order.
    """
    floors = [claim.floor for claim in claims]
    if sum(floors, Fraction(0)) > amount:
        return scaled_floors(amount, floors)
    if sum((claim.cap for claim in claims), Fraction(0)) <= amount:
        return [claim.cap for claim in claims]
    level = _level(amount, claims)
    return [claim.at(level) for claim in claims]


def _level(amount: Fraction, claims: Sequence[Claim]) -> Fraction:
    """Find the level at which the claims sum to an amount between the sums of floors and caps.

    Between two corners (where a claim leaves its floor or reaches its cap) the sum is a straight line, so
    the level is exact on the first segment whose upper end reaches the amount.
    """
    corners = sorted(
        {(claim.floor + claim.past) / claim.weight for claim in claims}
        | {(claim.cap + claim.past) / claim.weight for claim in claims},
        key=lambda corner: (float(corner), corner),
    )
    sums: dict[int, Fraction] = {}

    def reached(corner: int) -> Fraction:
        if corner not in sums:
            sums[corner] = sum([claim.at(corners[corner]) for claim in claims], Fraction(0))
        return sums[corner]

    low, high = 0, len(corners) - 1
    middle = _guess(amount, claims, corners)
    while low < high:  # the first corner at which the claims reach the amount
        if reached(middle) >= amount:
            high, middle = middle, middle - 1 if high == len(corners) - 1 else (low + middle) // 2
        else:
            low, middle = middle + 1, (middle + 1 + high) // 2
    upper = corners[low]
    if low == 0:
        return upper
    lower, below, above = corners[low - 1], reached(low - 1), reached(low)
    return upper if above <= below else lower + (upper - lower) * (amount - below) / (above - below)


def _guess(amount: Fraction, claims: Sequence[Claim], corners: Sequence[Fraction]) -> int:
    """Say by floats where the corner probably is: a place to look at first, no more."""
    rows = [(float(one.weight), float(one.past), float(one.floor), float(one.cap)) for one in claims]
    weight, past, floor, cap = np.array(rows).T

    def reached(corner: Fraction) -> float:
        return float(np.clip(float(corner) * weight - past, floor, cap).sum())

    return min(bisect_left(corners, float(amount), key=reached), len(corners) - 1)
