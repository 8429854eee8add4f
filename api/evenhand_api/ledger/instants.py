"""Instants as the ledger holds them: whole microseconds since 1970 in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

SECOND = 1_000_000
"""Microseconds of a second."""
HOUR = 3_600 * SECOND
"""Microseconds of an hour."""
HOURS_OF_DAY = 24
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)


def to_us(instant: datetime) -> int:
    """Return an aware instant as microseconds since 1970, exactly."""
    return (instant - _EPOCH) // _TICK


def from_us(us: int) -> datetime:
    """Return microseconds since 1970 as an instant in UTC."""
    return _EPOCH + timedelta(microseconds=us)


def written(us: int) -> str:
    """Write microseconds since 1970 as RFC 3339 with Z."""
    return from_us(us).isoformat().replace("+00:00", "Z")


def wall_clock_us() -> int:
    """Return the service's own clock: when a row was written, never when something happened."""
    return to_us(datetime.now(UTC))
