"""When two numbers count as equal."""

from __future__ import annotations

TOLERANCE = 1e-6
"""Absolute and relative difference up to which numbers are equal."""


def slack(*numbers: float) -> float:
    """Return the difference that is tolerated between numbers of this size."""
    return TOLERANCE * max((1.0, *map(abs, numbers)))


def close(one: float | None, other: float | None) -> bool:
    """Say whether two numbers are equal up to the tolerance; None equals only None."""
    if one is None or other is None:
        return one is other
    return abs(one - other) <= slack(one, other)


SIXTEEN = 16
"""Parts of a GPU in which shortfalls are counted (O)."""


def sixteenths(milli: int) -> int:
    """Return thousandths of a GPU as whole sixteenths, rounded down."""
    return milli * SIXTEEN // 1000


def sixteenths_held(milli: int) -> int:
    """Return thousandths of a GPU that a gang holds as whole sixteenths, rounded up."""
    return -(-milli * SIXTEEN // 1000)
