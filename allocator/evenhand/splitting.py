"""One amount among siblings: a water level in exact numbers (rule D4)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cmp_to_key


def split(
    amount: Fraction,
    floors: Sequence[int],
    caps: Sequence[int],
    weights: Sequence[float],
    usage: Sequence[float],
    *,
    horizon_s: int,
) -> list[Fraction]:
    """Divide an amount among siblings (rule D4), exactly.

    Parameters
    ----------
    amount : what there is, in thousandths of a charged GPU.
    floors, caps : guarantees and most they can use, whole thousandths, floors <= caps, caps > 0.
    weights : above 0, any scale.
    usage : charged GPU-hours, 0 or more.
    horizon_s : seconds over which past imbalance is paid back.

    Returns
    -------
    list of Fraction
        Thousandths for each; they sum to the lesser of `amount` and the sum of caps.
    """
    if sum(caps) <= amount:
        return [Fraction(c) for c in caps]
    if sum(floors) >= amount:
        return [f * amount / sum(floors) if f else Fraction(0) for f in floors]
    # What stands below a float is a power of two: the largest is a multiple of all.
    used, shares = [u.as_integer_ratio() for u in usage], [w.as_integer_ratio() for w in weights]
    unit = math.lcm(amount.denominator, horizon_s * max(below for _, below in used))
    scale = max(below for _, below in shares)
    level = _Level(
        target=amount.numerator * (unit // amount.denominator),
        low=[f * unit for f in floors],
        high=[c * unit for c in caps],
        owed=[3_600_000 * above * (unit // (horizon_s * below)) for above, below in used],
        weight=[above * (scale // below) for above, below in shares],
    )
    top, bottom = level.solve()
    return [Fraction(part, bottom * unit) for part in level.parts(top, bottom)]


def _compare(a: tuple[int, int], b: tuple[int, int]) -> int:
    """Compare ratios with denominators above 0."""
    return a[0] * b[1] - b[0] * a[1]


@dataclass(frozen=True)
class _Level:
    """One water level in whole numbers: lambda with sum of clip(lambda weight - owed, low, high) = target."""

    target: int
    low: list[int]
    high: list[int]
    owed: list[int]
    weight: list[int]

    def parts(self, top: int, bottom: int) -> list[int]:
        """Parts at lambda = top / bottom, times `bottom`."""
        return [
            min(max(top * w - o * bottom, lo * bottom), hi * bottom)
            for w, o, lo, hi in zip(self.weight, self.owed, self.low, self.high, strict=True)
        ]

    def solve(self) -> tuple[int, int]:
        """Lambda as a ratio of whole numbers; needs sum of low < target < sum of high."""
        bends = [(lo + o, w) for lo, o, w in zip(self.low, self.owed, self.weight, strict=True)]
        bends += [(hi + o, w) for hi, o, w in zip(self.high, self.owed, self.weight, strict=True)]
        bends.sort(key=cmp_to_key(_compare))
        below, above = 0, len(bends) - 1  # the sum is at most the target at `below`, at least at `above`
        while above - below > 1:
            middle = (below + above) // 2
            if sum(self.parts(*bends[middle])) <= self.target * bends[middle][1]:
                below = middle
            else:
                above = middle
        top, bottom = bends[below]
        fixed, slope = 0, 0
        for w, o, lo, hi in zip(self.weight, self.owed, self.low, self.high, strict=True):
            at = top * w - o * bottom
            if at < lo * bottom:
                fixed += lo
            elif at >= hi * bottom:
                fixed += hi
            else:
                fixed, slope = fixed - o, slope + w
        return (self.target - fixed, slope) if slope else (top, bottom)
