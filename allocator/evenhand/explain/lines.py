"""Who of the own group comes first: priority, then age, then id (rule O4)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenhand.explain.aftermath import Aftermath
from evenhand.explain.words import MOST_NAMED, listed, reason
from evenhand.shapes import BoolArray, IntArray
from evenhand_models import Reason, ReasonCode

Types = tuple[int, ...]
"""Types that a job fits."""
_COMES_FIRST = ReasonCode.PRIORITY
"""Looked up once: said of almost every waiting job."""


class Lines:
    """The lines of all groups, budgeted jobs apart from others, one behind the other; L jobs stand in them."""

    def __init__(self, aftermath: Aftermath) -> None:
        s = self._s = aftermath.snapshot
        runs = np.zeros(len(s.jobs), dtype=bool)
        table = aftermath.table
        runs[table.job[table.gpus > 0]] = True
        jobs = np.flatnonzero(s.live & ~s.pinned & ~(s.running & ~runs))
        order = np.lexsort((jobs, s.submitted_s[jobs], -s.priority[jobs], s.budgeted[jobs], s.group[jobs]))
        self._jobs: IntArray = jobs[order]
        self._runs: BoolArray = runs[self._jobs]
        self._place: IntArray = np.zeros(len(s.jobs), dtype=np.int64)
        self._place[self._jobs] = np.arange(len(jobs))
        lines, first = np.unique(2 * s.group[self._jobs] + s.budgeted[self._jobs], return_index=True)
        self._lines: dict[int, int] = {line: k for k, line in enumerate(lines.tolist())}
        self._first: IntArray = first
        self._start: IntArray = np.repeat(first, np.diff(np.append(first, len(jobs))))
        self._sharing: dict[Types, BoolArray] = {}
        self._names: dict[Types, tuple[list[int], IntArray]] = {}
        self._seen: dict[tuple[int, bool, Types], Line] = {}

    def _wants(self, types: Types) -> BoolArray:
        """Who in the lines fits one of the types, bool [L]."""
        found = self._sharing.get(types)
        if found is None:
            found = self._sharing[types] = np.asarray(self._s.fits[self._jobs][:, list(types)].any(axis=1), dtype=bool)
        return found

    def ahead(self, jobs: IntArray, types: Sequence[Types], counts: IntArray) -> tuple[list[int], list[int]]:
        """How many stand before each of some jobs that want types it could use: those that run, and those that wait.

        Parameters
        ----------
        jobs : int [W], jobs of one set of types after the other.
        types : those sets; counts : how many jobs each has, of `types`.
        """
        numbers: dict[Types, int] = {}
        which = np.repeat(np.array([numbers.setdefault(t, len(numbers)) for t in types], dtype=np.int64), counts)
        found = np.zeros((2, len(jobs)), dtype=np.int64)
        for of, k in numbers.items():
            rows = np.flatnonzero(which == k)
            place = self._place[jobs[rows]]
            wants = self._wants(of)
            for out, chosen in zip(found, (wants & self._runs, wants & ~self._runs), strict=True):
                before = np.append(0, np.cumsum(chosen))
                out[rows] = before[place] - before[self._start[place]]
        return found[0].tolist(), found[1].tolist()

    def seen(self, group: int, budgeted: bool, types: Types) -> Line:
        """The line of a group's jobs of one kind, as those that can use some types see it."""
        key = (group, budgeted, types)
        found = self._seen.get(key)
        if found is None:
            found = self._seen[key] = self._read(group, budgeted, types)
        return found

    def _read(self, group: int, budgeted: bool, types: Types) -> Line:
        known = self._names.get(types)
        if known is None:
            rows = np.flatnonzero(self._wants(types))
            known = self._names[types] = np.searchsorted(rows, self._first).tolist(), self._jobs[rows]
        starts, jobs = known
        start, ids = starts[self._lines[2 * group + budgeted]], self._s.ids
        names = [ids[j] for j in jobs[start : start + MOST_NAMED].tolist()]
        return Line(names, self._s.tree.ids[group])


class Line:
    """One line as jobs of one set of types see it."""

    def __init__(self, names: list[str], group: str) -> None:
        """Prepare; `names` are the first of the line, perhaps with some of the next line where it is short."""
        self._names, self._group = names, group
        self._told = ", ".join(names)
        self._refs = (*names, group)
        self._come = f" jobs of group {group} come first by priority, then age ("

    def reason(self, runs: int, waits: int) -> Reason:
        """Name the jobs of the own group that come before a waiting one and want types it could use, one at least.

        Parameters
        ----------
        runs, waits : how many of them run and how many wait.
        """
        ahead = runs + waits
        if ahead > MOST_NAMED:
            more = f"{self._told} and {ahead - MOST_NAMED} more"
            return reason(_COMES_FIRST, f"{ahead}{self._come}{runs} running, {waits} waiting): {more}.", self._refs)
        names, group = self._names[:ahead], self._group
        come = f"1 job of group {group} comes" if ahead == 1 else f"{ahead} jobs of group {group} come"
        message = f"{come} first by priority, then age ({runs} running, {waits} waiting): {listed(names)}."
        return reason(_COMES_FIRST, message, (*names, group))
