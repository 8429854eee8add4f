"""What jobs say, field by field: columns to make arrays of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import repeat
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.shapes import IntArray
from evenhand_models import Job

FIELDS = (
    "id", "group", "gpus", "min_gpus", "priority", "contract", "state", "placement",
    "submitted_at", "started_at", "checkpointed_at", "expected_end_at",
)  # fmt: skip


def columns(jobs: Sequence[Job]) -> dict[str, Sequence[Any]]:
    """`FIELDS` of the jobs by name; each job is looked at once, for many do not fit a cache."""
    found = zip(*map(attrgetter(*FIELDS), jobs), strict=True) if jobs else repeat(())
    return dict(zip(FIELDS, found, strict=False))


def whole(values: Iterable[int], count: int) -> IntArray:
    """Whole numbers, int [count]."""
    return np.fromiter(values, dtype=np.int64, count=count)


def instants(stamps: Sequence[datetime | None], unset: float) -> npt.NDArray[np.float64]:
    """Seconds since 1970, float [J]."""
    return np.fromiter([unset if at is None else at.timestamp() for at in stamps], dtype=np.float64, count=len(stamps))
