"""Usage with a half-life: each moment's charge halved every `half_life_s` since.

An interval [a, b) of weight w counts ``w K (2^((b-now)/h) - 2^((a-now)/h))`` at `now`, K = h / ln 2: the integral itself,
with no step in between. What a sum was at one instant is worth ``2^((then-now)/h)`` of it now, so one row a cluster keeps
the sums by group as they were at an instant (`fading`), and only what lies after it is read from the intervals. An
interval that is written late adds its part before that instant to the row: the row always holds what the intervals say.
What ended more than 64 half-lives ago is below the last bit; where the row has to be made anew, it is left out.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection, Row, delete, insert, select

from evenhand_api.ledger.amounts import joined
from evenhand_api.ledger.instants import SECOND
from evenhand_api.ledger.tables import adjustments, fading, holds, intervals

REACH = 64
"""Half-lives after which a charge is below the last bit of what else there is."""
STEP_US = 600 * SECOND
"""How long the sums stay as they are: rounds that follow each other closely rewrite no row."""
TOLERANCE = 1e-9
"""How far kept sums may be from the intervals, as a part of all that was ever added to them."""
BATCH = 50_000


@dataclass(frozen=True, slots=True)
class Faded:
    """Sums by group at an instant, closed intervals only, in thousandths of a charged GPU x microseconds."""

    half_us: int
    until_us: int
    amounts: Mapping[str, float]

    def at(self, now_us: int) -> dict[str, float]:
        """Return what the sums are worth at a later instant."""
        left = 2.0 ** ((self.until_us - now_us) / self.half_us)
        return {group: amount * left for group, amount in self.amounts.items()}


def faded_usage(connection: Connection, cluster_id: int, now_us: int, half_life_s: int) -> dict[str, float]:
    """Return the charge of each group at an instant, work that goes on included.

    Returns
    -------
    dict
        By group the amount in thousandths of a charged GPU x microseconds, exact to `TOLERANCE`; may be negative where
        adjustments took off more than was used.
    """
    half_us = half_life_s * SECOND
    used = defaultdict(float, _closed(connection, cluster_id, now_us, half_us))
    h, a = holds.c, adjustments.c
    for row in connection.execute(select(holds).where(h.cluster_id == cluster_id, h.charged.is_(True))):
        used[row.group_id] += _worth(row.gpus * row.rate_m, row.since_us, now_us, now_us, half_us)
    told = select(adjustments).where(a.cluster_id == cluster_id, a.at_us <= now_us, a.at_us > now_us - REACH * half_us)
    for row in connection.execute(told):
        used[row.group_id] += joined(row.charge_s, row.charge_rest) * 2.0 ** ((row.at_us - now_us) / half_us)
    return {group: amount for group, amount in sorted(used.items()) if amount}


def keep_faded(connection: Connection, cluster_id: int, now_us: int, half_life_s: int | None) -> None:
    """Bring the kept sums to an instant, or drop them where no half-life is in force.

    Parameters
    ----------
    connection : in a transaction that writes, the cluster's row locked.
    """
    kept = _read(connection, cluster_id)
    half_us = None if half_life_s is None else half_life_s * SECOND
    if kept is not None and kept.half_us == half_us and kept.until_us <= now_us < kept.until_us + STEP_US:
        return
    if kept is not None:
        connection.execute(delete(fading).where(fading.c.cluster_id == cluster_id))
    if half_us is not None:
        known = kept if kept is not None and kept.half_us == half_us else None
        _insert(
            connection, cluster_id, Faded(half_us, now_us, _closed_from(connection, cluster_id, now_us, half_us, known))
        )


def add_faded(connection: Connection, cluster_id: int, lines: Iterable[Mapping[str, Any]]) -> None:
    """Add new intervals' parts before the kept sums' instant to the sums.

    Parameters
    ----------
    lines : rows of the table of intervals.
    """
    kept = _read(connection, cluster_id)
    if kept is None:
        return
    amounts = defaultdict(float, kept.amounts)
    for line in lines:
        until = min(line["to_us"], kept.until_us)
        if line["weight"] and line["from_us"] < until:
            amounts[line["group_id"]] += _worth(line["weight"], line["from_us"], until, kept.until_us, kept.half_us)
    if amounts != kept.amounts:
        connection.execute(delete(fading).where(fading.c.cluster_id == cluster_id))
        _insert(connection, cluster_id, Faded(kept.half_us, kept.until_us, amounts))


def faded_differences(connection: Connection, cluster_id: int) -> list[str]:
    """Name every group whose kept sum is not what the intervals make it; empty if all agree, or nothing is kept."""
    kept = _read(connection, cluster_id)
    if kept is None:
        return []
    wanted, moved = _scan(connection, cluster_id, None, kept.until_us, kept.half_us)
    allowed = {group: TOLERANCE * moved.get(group, 0.0) + 1.0 for group in wanted.keys() | kept.amounts.keys()}
    off = {group: abs(kept.amounts.get(group, 0.0) - wanted.get(group, 0.0)) for group in allowed}
    return sorted(group for group in off if not off[group] <= allowed[group])


def rebuild_faded(connection: Connection, cluster_id: int) -> None:
    """Make the kept sums anew from the intervals, where there are any."""
    kept = _read(connection, cluster_id)
    if kept is not None:
        connection.execute(delete(fading).where(fading.c.cluster_id == cluster_id))
        sums, _ = _scan(connection, cluster_id, None, kept.until_us, kept.half_us)
        _insert(connection, cluster_id, Faded(kept.half_us, kept.until_us, sums))


def _closed(connection: Connection, cluster_id: int, now_us: int, half_us: int) -> dict[str, float]:
    """Closed intervals' sums at an instant, from the kept ones where they can be used."""
    kept = _read(connection, cluster_id)
    usable = kept is not None and kept.half_us == half_us and kept.until_us <= now_us
    return _closed_from(connection, cluster_id, now_us, half_us, kept if usable else None)


def _closed_from(
    connection: Connection, cluster_id: int, now_us: int, half_us: int, kept: Faded | None
) -> dict[str, float]:
    sums, _ = _scan(connection, cluster_id, None if kept is None else kept.until_us, now_us, half_us)
    for group, amount in ({} if kept is None else kept.at(now_us)).items():
        sums[group] = sums.get(group, 0.0) + amount
    return sums


def _scan(
    connection: Connection, cluster_id: int, from_us: int | None, now_us: int, half_us: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Sum what intervals charge over [from, now), as it is worth at now; also the same with all signs taken away."""
    i = intervals.c
    oldest = now_us - REACH * half_us if from_us is None else from_us
    query = (
        select(i.group_id, i.weight, i.from_us, i.to_us)
        .where(i.cluster_id == cluster_id, i.to_us > oldest, i.weight != 0)
        .execution_options(yield_per=BATCH)
    )
    sums: dict[str, float] = defaultdict(float)
    moved: dict[str, float] = defaultdict(float)
    for batch in connection.execute(query).partitions():
        _add(batch, from_us, now_us, half_us, sums, moved)
    return sums, moved


def _add(
    batch: Iterable[Row[Any, Any, Any, Any]],
    from_us: int | None,
    now_us: int,
    half_us: int,
    sums: dict[str, float],
    moved: dict[str, float],
) -> None:
    groups, weights, begins, ends = zip(*batch, strict=True)
    names: dict[str, int] = {}
    which = [names.setdefault(group, len(names)) for group in groups]
    weight = np.array(weights, np.int64).astype(float)
    begin = np.array(begins, np.int64) if from_us is None else np.maximum(np.array(begins, np.int64), from_us)
    end = np.minimum(np.array(ends, np.int64), now_us)
    rate = math.log(2) / half_us
    lasted = np.maximum(end - begin, 0)
    worth = weight / rate * np.exp2((end - now_us) / half_us) * -np.expm1(-rate * lasted)
    for group, net, gross in zip(names, np.bincount(which, worth), np.bincount(which, np.abs(worth)), strict=True):
        sums[group] += float(net)
        moved[group] += float(gross)


def _worth(weight: int, from_us: int, to_us: int, now_us: int, half_us: int) -> float:
    """What [from, to) of a weight is worth at now, which is not before to."""
    if to_us <= from_us:
        return 0.0
    rate = math.log(2) / half_us
    left: float = 2.0 ** ((to_us - now_us) / half_us)
    return weight / rate * left * -math.expm1(-rate * (to_us - from_us))


def _read(connection: Connection, cluster_id: int) -> Faded | None:
    row = connection.execute(select(fading).where(fading.c.cluster_id == cluster_id)).one_or_none()
    return None if row is None else Faded(row.half_us, row.until_us, json.loads(row.amounts))


def _insert(connection: Connection, cluster_id: int, faded: Faded) -> None:
    text = json.dumps({group: amount for group, amount in sorted(faded.amounts.items()) if amount})
    values = {"cluster_id": cluster_id, "half_us": faded.half_us, "until_us": faded.until_us, "amounts": text}
    connection.execute(insert(fading).values(values))
