"""Adjustments: what somebody added to a group's usage or took off it. Kept for good, with reason and author."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, insert

from evenhand_api.ledger.amounts import as_gpu_hours, from_gpu_hours, split
from evenhand_api.ledger.clusters import Cluster
from evenhand_api.ledger.instants import wall_clock_us, written
from evenhand_api.ledger.tables import adjustments
from evenhand_models import FieldError, InvalidInput

MOST_HOURS = Decimal(10**9)
"""Largest adjustment in charged GPU-hours, either way."""


def add_adjustment(
    connection: Connection,
    cluster: Cluster,
    *,
    group: str,
    hours: Decimal,
    reason: str,
    author: str,
    at_us: int | None = None,
) -> dict[str, Any]:
    """Record an adjustment; returns it as it is kept.

    Parameters
    ----------
    hours : charged GPU-hours to add, at most 12 decimals; negative takes off.
    at_us : the instant at which it counts; left out: that of the last round.

    Raises
    ------
    InvalidInput
        If the group is not in the tree, the amount is 0, too large or too fine, or no instant can be told.
    """
    errors = []
    if group not in {known.id for known in cluster.config.groups}:
        errors.append(FieldError("/group", f"cluster {cluster.name!r} has no group {group!r}."))
    at_us = cluster.last_now_us if at_us is None else at_us
    if at_us is None:
        errors.append(FieldError("/at", f"cluster {cluster.name!r} has had no round yet: say at which instant."))
    amount = 0
    try:
        amount = from_gpu_hours(hours)
    except ValueError as reason_why:
        errors.append(FieldError("/charged_gpu_hours", f"{reason_why}."))
    else:
        if not 0 < abs(hours) <= MOST_HOURS:
            errors.append(FieldError("/charged_gpu_hours", f"must not be 0, nor beyond {MOST_HOURS:,} either way."))
    if errors or at_us is None:
        raise InvalidInput(errors)
    seconds, rest = split(amount)
    values = {"group_id": group, "at_us": at_us, "charge_s": seconds, "charge_rest": rest}
    values |= {"reason": reason, "author": author, "recorded_us": wall_clock_us(), "cluster_id": cluster.id}
    done = connection.execute(insert(adjustments).values(values))
    assert done.inserted_primary_key is not None
    return {
        "cluster": cluster.name,
        "adjustment": done.inserted_primary_key[0],
        "group": group,
        "charged_gpu_hours": as_gpu_hours(amount),
        "at": written(at_us),
        "reason": reason,
        "author": author,
    }
