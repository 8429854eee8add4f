"""How numbers, names and instants are written in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from evenhand_models import Reason, ReasonCode
from evenhand_models.made import made

MOST_NAMED = 10
"""So many ids are named in a sentence and in its refs; the rest is counted."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_YEAR = 2199


@lru_cache(maxsize=4096)
def instant(at_s: float) -> datetime | None:
    """Seconds since 1970 as an instant; None for infinite or beyond what the wire can carry."""
    if not 0 <= at_s < 7.3e9:
        return None
    found = _EPOCH + timedelta(seconds=at_s)
    return found if found.year <= _LAST_YEAR else None


def stamp(at: datetime) -> str:
    """RFC 3339 with Z; fractions of a second only where there are any."""
    return at.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def stamp_s(at_s: float) -> str:
    """The same from seconds since 1970."""
    at = instant(at_s)
    return "an unknown instant" if at is None else stamp(at)


def number(x: float) -> str:
    """At most two decimals, none where they are 0."""
    if type(x) is int:
        return str(x)
    text = f"{x:.2f}".rstrip("0").rstrip(".")
    return "0" if text in {"-0", ""} else text


def listed(ids: Sequence[str]) -> str:
    """Return `a`, `a and b`, `a, b and c`; beyond `MOST_NAMED` ids `a, b, ... and 5 more`."""
    if len(ids) > MOST_NAMED:
        return ", ".join(ids[:MOST_NAMED]) + f" and {len(ids) - MOST_NAMED} more"
    if len(ids) < 2:
        return "".join(ids)
    return ", ".join(ids[:-1]) + " and " + ids[-1]


def named(noun: str, ids: Sequence[str]) -> str:
    """Return `job a`, `jobs a and b`."""
    return f"{noun if len(ids) == 1 else noun + 's'} {listed(ids)}"


def gpus(count: int, kind: str = "") -> str:
    """Return `1 GPU`, `8 h100 GPUs`."""
    return f"{count} {kind + ' ' if kind else ''}{'GPU' if count == 1 else 'GPUs'}"


def by_type(amounts: Iterable[tuple[str, float]]) -> str:
    """Return `8 h100 and 0.5 a100`."""
    parts = [f"{number(amount)} {kind}" for kind, amount in amounts]
    if len(parts) < 2:
        return "".join(parts)
    return ", ".join(parts[:-1]) + " and " + parts[-1]


def either(words: Sequence[str]) -> str:
    """Return `a`, `a or b`, `a, b or c`."""
    if len(words) < 2:
        return "".join(words)
    return ", ".join(words[:-1]) + " or " + words[-1]


def reason(
    code: ReasonCode,
    message: str,
    refs: Iterable[str] = (),
    *,
    at: datetime | None = None,
    change: str | None = None,
) -> Reason:
    """One cause; refs are named once each, in the order of the sentence."""
    ids = refs if isinstance(refs, tuple) else tuple(dict.fromkeys(refs))
    said: dict[str, object] = {
        "code": code,
        "message": message,
        "refs": ids,
        "earliest_start_at": at,
        "cheapest_change": change,
    }
    return made(Reason, said)
