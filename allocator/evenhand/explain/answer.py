"""What is said of one job."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from evenhand_models import Reason


class Explanation(NamedTuple):
    """Why a job got what it got: all causes, the main one first.

    Attributes
    ----------
    earliest_start_at : of waiting jobs, when enough GPUs of one type are free of protection; None if unknown.
    cheapest_change : of waiting jobs, one change that would start it; None if none is known.
    """

    reasons: tuple[Reason, ...]
    earliest_start_at: datetime | None = None
    cheapest_change: str | None = None
