"""D4: how a node of the tree divides what it holds among its children; exact, in rational numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from math import lcm

_BITS = 64
"""Corners are told apart by whole parts of 1/2^64 before they are by fractions, which takes longer: a float cannot hold all."""


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
    if not claims:
        return []
    due = _Whole(amount, claims)
    if sum(due.floors) > due.amount:
        return scaled_floors(amount, [claim.floor for claim in claims])
    if sum(due.caps) <= due.amount:
        return [claim.cap for claim in claims]
    return due.parts_at(due.level())


class _Whole:
    """The same claims in whole numbers, which add up faster than fractions: amounts in the same small part of a GPU."""

    def __init__(self, amount: Fraction, claims: Sequence[Claim]) -> None:
        said = [amount, *chain.from_iterable([(claim.past, claim.floor, claim.cap) for claim in claims])]
        ratios = [number.as_integer_ratio() for number in said]
        self.unit = lcm(*[below for _, below in ratios])
        self.amount, *amounts = [above * (self.unit // below) for above, below in ratios]
        self.pasts, self.floors, self.caps = amounts[::3], amounts[1::3], amounts[2::3]
        ratios = [claim.weight.as_integer_ratio() for claim in claims]
        self.weigh = lcm(*[below for _, below in ratios])
        self.weights = [above * (self.weigh // below) for above, below in ratios]

    def held_at(self, level: Fraction) -> tuple[list[int], int]:
        """Return what all get at a level, in parts of a unit, and the parts in a unit."""
        up, down = level.numerator, level.denominator
        rows = zip(self.weights, self.pasts, self.floors, self.caps, strict=True)
        return [min(max(up * w - down * past, down * floor), down * cap) for w, past, floor, cap in rows], down

    def parts_at(self, level: Fraction) -> list[Fraction]:
        """Return what each gets at a level."""
        held, parts = self.held_at(level)
        return [Fraction(one, parts * self.unit) for one in held]

    def level(self) -> Fraction:
        """Find the level, in units for a whole weight, at which the claims sum to an amount between floors and caps.

        Between two corners (where a claim leaves its floor or reaches its cap) the sum is a straight line, so the level
        is exact on the first segment whose upper end reaches the amount.
        """
        rows = zip(chain(self.floors, self.caps), self.pasts * 2, self.weights * 2, strict=True)
        found = {Fraction(bend + past, weight) for bend, past, weight in rows}
        corners = sorted(
            found, key=lambda at: ((at.numerator * self.weigh << _BITS) // (at.denominator * self.unit), at)
        )
        low, high = 0, len(corners) - 1
        while low < high:  # the first corner at which the claims reach the amount
            middle = (low + high) // 2
            held, parts = self.held_at(corners[middle])
            if sum(held) >= parts * self.amount:
                high = middle
            else:
                low = middle + 1
        upper = corners[low]
        if low == 0:
            return upper
        lower = corners[low - 1]
        (held, parts), (held_above, parts_above) = self.held_at(lower), self.held_at(upper)
        below, above = Fraction(sum(held), parts), Fraction(sum(held_above), parts_above)
        return upper if above <= below else lower + (upper - lower) * (self.amount - below) / (above - below)
