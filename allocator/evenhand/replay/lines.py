"""Who waits: for every shape and group one line, the eldest first, so that a round looks at heads only."""

from __future__ import annotations

from bisect import bisect_left, insort

from evenhand.replay.facts import JobFacts

Rank = tuple[int, int, int]
"""Seniority inside a group: minus priority, submitted, place in the trace."""
Owner = tuple[int, bool, bool]
"""Group, whether budgeted, and whether a debug run: these are owed their start before their elders."""


class Lines:
    """Waiting jobs by shape, then by owner, in order of seniority."""

    def __init__(self, facts: JobFacts) -> None:
        self._facts = facts
        self.by_shape: dict[int, dict[Owner, list[Rank]]] = {}
        self.waiting: set[int] = set()

    @property
    def count(self) -> int:
        """How many wait."""
        return len(self.waiting)

    def rank(self, job: int) -> Rank:
        """Sort key of a job in its group."""
        f = self._facts
        return (-f.priority[job], f.submit_s[job], job)

    def join(self, job: int) -> None:
        """A job begins to wait."""
        f = self._facts
        lines = self.by_shape.setdefault(f.shape[job], {})
        line = lines.setdefault((f.group[job], f.budgeted[job], f.debug[job]), [])
        insort(line, self.rank(job))
        self.waiting.add(job)

    def leave(self, job: int) -> None:
        """A job waits no longer."""
        f = self._facts
        owner = (f.group[job], f.budgeted[job], f.debug[job])
        lines = self.by_shape[f.shape[job]]
        line = lines[owner]
        at = bisect_left(line, self.rank(job))
        if at >= len(line) or line[at][2] != job:
            raise KeyError(job)
        del line[at]
        if not line:
            del lines[owner]
            if not lines:
                del self.by_shape[f.shape[job]]
        self.waiting.discard(job)

    def jobs(self) -> list[int]:
        """All that wait, in the order of the trace."""
        return sorted(self.waiting)
