"""Exact amounts: thousandths of a charged GPU times microseconds, and how the tables split them."""

from __future__ import annotations

from decimal import Decimal

from evenhand_api.ledger.instants import HOUR, SECOND

PER_GPU_HOUR = 1_000 * HOUR
"""Thousandths of a charged GPU times microseconds in one charged GPU-hour."""


def split(amount: int) -> tuple[int, int]:
    """Split an amount into whole seconds and the rest, both with the sign that makes the rest 0 or more."""
    return divmod(amount, SECOND)


def joined(seconds: int | Decimal | None, rest: int | Decimal | None) -> int:
    """Put sums of both parts together again; databases give sums of integers as Decimal, of nothing as None."""
    return int(seconds or 0) * SECOND + int(rest or 0)


def as_gpu_hours(amount: int) -> float:
    """Return an amount in charged GPU-hours, rounded once, correctly."""
    return amount / PER_GPU_HOUR


def from_gpu_hours(hours: Decimal) -> int:
    """Return charged GPU-hours as an amount.

    Raises
    ------
    ValueError
        If it is no whole number of the unit: more than 12 decimals.
    """
    amount = hours * PER_GPU_HOUR
    if amount != int(amount):
        raise ValueError(f"{hours} has more decimals than the ledger keeps (12)")
    return int(amount)
