"""Who holds GPUs on the nodes a gang could use: protected work, and work that is not (rules P1, R1)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property

import numpy as np

from evenhand.explain.aftermath import NEVER, PAST, Aftermath
from evenhand.explain.words import by_type, listed, named, stamp_s
from evenhand.shapes import BoolArray, IntArray


class Crowd:
    """Holdings after the plan on some nodes; shared by all shapes that could use the same nodes.

    Attributes
    ----------
    number : one for each distinct set of nodes.
    protected : rows of `Aftermath.holdings` that were protected before the plan and stay so.
    open : the other rows: past protection, or just arriving; allocated : those of them that are budgeted.
    staying : open rows of jobs that were there before and are not hit.
    """

    def __init__(self, aftermath: Aftermath, usable: BoolArray, number: int) -> None:
        self._a = aftermath
        s, h = aftermath.snapshot, aftermath.holdings
        self.number = number
        rows = np.flatnonzero(usable[h.node])
        guarded = (h.until_s[rows] > PAST) & ~h.new[rows]
        self.protected: IntArray = rows[guarded]
        self.open: IntArray = rows[~guarded]
        self.allocated: IntArray = self.open[s.budgeted[h.job[self.open]]]
        self.staying: IntArray = self.open[~h.new[self.open] & ~s.hit[h.job[self.open]]]

    @cached_property
    def by_group(self) -> IntArray:
        """GPUs of allocated open rows by group and type, int [G, T]."""
        s, h, rows = self._a.snapshot, self._a.holdings, self.allocated
        found = np.zeros((len(s.tree.ids), len(s.types)), dtype=np.int64)
        np.add.at(found, (s.group[h.job[rows]], s.node_type[h.node[rows]]), h.gpus[rows])
        return found

    @cached_property
    def groups(self) -> IntArray:
        """Groups with allocated open rows, ascending."""
        found: IntArray = np.flatnonzero(self.by_group.any(axis=1))
        return found

    @cached_property
    def holders(self) -> tuple[list[str], str]:
        """The first of these groups, and all of them with what they have, in words."""
        ids = self._a.snapshot.tree.ids
        names = [ids[g] for g in self.groups.tolist()]
        have = "has" if len(names) == 1 else "have"
        return names[:10], f"{named('group', names)} {have} {self.amounts(np.ones(len(names), dtype=bool))}"

    @cached_property
    def _held(self) -> IntArray:
        """GPUs of allocated open rows by each of `groups` and type, int [g, T]."""
        found: IntArray = self.by_group[self.groups]
        return found

    def amounts(self, chosen: BoolArray) -> str:
        """Return `8 h100 and 4 a100`: allocated open GPUs of some of `groups`."""
        return next(self.amounts_of(chosen[None, :]))

    def amounts_of(self, chosen: BoolArray) -> Iterator[str]:
        """Return the same for each row of choices."""
        types = self._a.snapshot.types
        sums = chosen.astype(np.float64) @ self._held  # whole numbers, exact
        for row in sums.astype(np.int64).tolist():
            yield by_type([(kind, amount) for kind, amount in zip(types, row, strict=True) if amount])

    @cached_property
    def guards(self) -> tuple[tuple[int, float], ...]:
        """Protected jobs and the end of their protection, seconds since 1970; by end, then id."""
        jobs = np.unique(self._a.holdings.job[self.protected])
        ends = [(int(j), self._a.protected_until(int(j))) for j in jobs]
        return tuple(sorted(ends, key=lambda item: (item[1], item[0])))

    @cached_property
    def _ends(self) -> list[float]:
        return [end for _, end in self.guards]

    def ending(self, until_s: float) -> tuple[tuple[int, float], ...]:
        """Those whose protection ends by an instant."""
        return self.guards[: bisect_right(self._ends, until_s)]

    @cached_property
    def guarded(self) -> tuple[str, tuple[str, ...]]:
        """What protected jobs hold, in words, and the ids named."""
        s, h, rows = self._a.snapshot, self._a.holdings, self.protected
        sums = np.bincount(s.node_type[h.node[rows]], weights=h.gpus[rows], minlength=len(s.types))
        amounts = by_type([(s.types[t], float(sums[t])) for t in np.flatnonzero(sums)])
        names = [s.jobs[j].id for j, _ in self.guards]
        first, end = self.guards[0]
        if len(names) == 1:
            known = s.group[first] >= 0
            group = f" of group {s.tree.ids[s.group[first]]}" if known else ", whose group is not in the tree,"
            ends = f"until {stamp_s(end)}" if end < NEVER else "without a known end"
            text = f"Protected job {names[0]}{group} holds {amounts} on nodes it could use {ends}"
            return text, (names[0], s.tree.ids[s.group[first]]) if known else (names[0],)
        text = f"{len(names)} protected jobs hold {amounts} on nodes it could use: {listed(names)}"
        return f"{text}, the first until {stamp_s(end)}", tuple(names[:10])
