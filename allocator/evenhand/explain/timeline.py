"""When GPUs come out of protection, and from when on a gang could stand on them."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict

import numpy as np

from evenhand.explain.aftermath import NEVER, PAST, Aftermath, FloatArray
from evenhand.explain.ground import Ground
from evenhand.shapes import IntArray
from evenhand.snapshot import seconds

_MOST_STEPS = 256
"""So many later instants are tried where maintenance takes nodes away again."""


class Timeline:
    """GPUs by node that are free of protection, instant by instant, as far as is known.

    Budgeted work may hope for all that is out of protection, unallocated for what no budgeted job holds (U1).
    """

    def __init__(self, aftermath: Aftermath, *, budgeted: bool) -> None:
        s, held = aftermath.snapshot, aftermath.holdings
        release = np.minimum(held.until_s, held.end_s)
        if not budgeted:
            owned = s.budgeted[held.job] | s.orphan[held.job]
            release = np.where(owned, held.end_s, PAST)
        self._now_s = s.now_s
        ready = release <= s.now_s
        self._base: IntArray = aftermath.free.copy()
        np.add.at(self._base, held.node[ready], held.gpus[ready])
        self._base[~s.opened] = 0
        later = np.flatnonzero((release > s.now_s) & (release < NEVER) & s.opened[held.node])
        later = later[np.argsort(release[later], kind="stable")]
        self._node, self._gpus, at = held.node[later], held.gpus[later], release[later]
        self.times: FloatArray = np.unique(at)
        self._ends: IntArray = np.searchsorted(at, self.times, side="right")
        self._known: dict[int, IntArray] = {0: self._base}
        self._closing_s: FloatArray = np.array(
            [NEVER if n.available_until_at is None else seconds(n.available_until_at) for n in s.nodes]
        ).reshape(len(s.nodes))

    def available(self, step: int) -> IntArray:
        """GPUs free of protection by node after so many distinct instants have passed, int [n]."""
        found = self._known.get(step)
        if found is None:
            found = self._base.copy()
            end = int(self._ends[step - 1])
            np.add.at(found, self._node[:end], self._gpus[:end])
            self._known[step] = found
        return found

    def earliest(self, ground: Ground) -> float | None:
        """The first instant at which the gang could stand, in seconds since 1970; None if none is known."""
        low, high = 0, len(self.times)
        if ground.stands(ground.masked(self.available(high))) is None:
            return None
        while low < high:
            middle = (low + high) // 2
            if ground.stands(ground.masked(self.available(middle))) is None:
                low = middle + 1
            else:
                high = middle
        if not np.isfinite(self._closing_s[ground.eligible]).any():
            return self._at(low)
        for step in range(low, min(len(self.times), low + _MOST_STEPS) + 1):
            lasting = self._closing_s >= self._at(step) + ground.shape.ask.stay_s
            if ground.stands(np.where(lasting, ground.masked(self.available(step)), 0)) is not None:
                return self._at(step)
        return None if low + _MOST_STEPS >= len(self.times) else self._at(low)

    def _at(self, step: int) -> float:
        return float(self.times[step - 1]) if step else self._now_s


class LimitTimes:
    """When protected work below a group with `max_gpus` leaves enough of the limit (rule L1)."""

    def __init__(self, aftermath: Aftermath) -> None:
        s, h = aftermath.snapshot, aftermath.holdings
        self._limit = {c: g.max_gpus for c, g in enumerate(s.tree.groups) if g.max_gpus is not None}
        self._now_s = s.now_s
        above = [[c for c in path if c in self._limit] for path in s.tree.path]
        until = np.minimum(h.until_s, h.end_s)
        rows = np.flatnonzero((until > s.now_s) & (s.group[h.job] >= 0)) if self._limit else np.zeros(0, dtype=np.int64)
        held: dict[int, list[tuple[float, int]]] = defaultdict(list)
        columns = (s.group[h.job[rows]].tolist(), until[rows].tolist(), h.gpus[rows].tolist())
        for group, at, gpus in zip(*columns, strict=True):
            for c in above[group]:
                held[c].append((at, gpus))
        self._line: dict[int, tuple[list[int], list[float]]] = {}
        for c, line in held.items():
            line.sort()
            left = sum(gpus for _, gpus in line) - np.cumsum([gpus for _, gpus in line])
            self._line[c] = (-left).tolist(), [at for at, _ in line]
        self._all = {c: sum(gpus for _, gpus in line) for c, line in held.items()}

    def earliest(self, group: int, gpus: int) -> float | None:
        """The first instant at which protected work below leaves room for so many GPUs; None if unknown."""
        most = self._limit[group] - gpus
        if self._all.get(group, 0) <= most:
            return self._now_s
        if group not in self._line:
            return None
        freed, ends = self._line[group]
        first = bisect_left(freed, -most)
        return ends[first] if first < len(ends) and ends[first] < NEVER else None
