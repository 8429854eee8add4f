"""How long a round may still take: the only place that looks at a clock, and only to measure what has passed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from evenhand_models.collection import without_collection


class Deadline:
    """Wall time since a round began, against its limit; and what each stage took."""

    def __init__(self, limit_s: float) -> None:
        self._began = perf_counter()
        self.limit_s = limit_s
        self.stages_ms: dict[str, float] = {}

    @property
    def spent_s(self) -> float:
        """Seconds since the round began."""
        return perf_counter() - self._began

    @property
    def left_s(self) -> float:
        """Seconds left, 0 or more."""
        return max(0.0, self.limit_s - self.spent_s)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add what the block takes to a stage; it makes many objects and no cycles, so the collector rests."""
        start = perf_counter()
        try:
            with without_collection():
                yield
        finally:
            took = 1000.0 * (perf_counter() - start)
            self.stages_ms[name] = round(self.stages_ms.get(name, 0.0) + took, 3)
