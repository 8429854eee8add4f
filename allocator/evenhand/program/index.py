"""What can happen to whom: units of like jobs, and the sites each could start on (rules G1 to G3, R2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.program.pools import Ask, Pools
from evenhand.program.sites import Site, SiteTable, elastic, may_move, movable, parts_of, sites_of, sizes_of, spreads
from evenhand.shapes import IntArray
from evenhand.snapshot import Snapshot

__all__ = ["Index", "Unit", "build_index", "elastic", "may_move", "number_rows", "parts_of", "sizes_of"]


@dataclass(frozen=True, slots=True)
class Unit:
    """Jobs the program cannot tell apart, in seniority order; a running job is a unit of its own."""

    jobs: tuple[int, ...]
    ask: Ask

    @property
    def job(self) -> int:
        """The eldest, which speaks for all."""
        return self.jobs[0]


@dataclass(frozen=True, eq=False)
class Index:
    """Pools, and all units: the pending ones by age, then the running ones.

    Attributes
    ----------
    asks : all there are; ask : the number of each job's, -1 for those that are not live, int [J].
    jobs : of all units, one unit after the other, each in seniority order, int; first : where each unit's begin, int [U + 1].
    eldest : first job of each unit, int [U]; count : jobs of each, int [U].
    sites : all sites; choice : where each unit's begin, int [U]; choices : how many each has, int [U]: also of pinned elastic
        jobs, which may grow, none.
    """

    pools: Pools
    pending: tuple[Unit, ...]
    running: tuple[Unit, ...]
    asks: tuple[Ask, ...]
    ask: IntArray
    jobs: IntArray
    first: IntArray
    eldest: IntArray
    count: IntArray
    sites: SiteTable
    choice: IntArray
    choices: IntArray

    @property
    def units(self) -> tuple[Unit, ...]:
        """All units."""
        return self.pending + self.running


def build_index(snapshot: Snapshot, owed: tuple[int, ...]) -> Index:
    """Group the live jobs into units and list where they could go."""
    s = snapshot
    live = np.flatnonzero(s.live)
    asks, ask = _asks(s, live)
    pools = Pools(s, list(asks))
    waiting = live[s.pending[live]]
    jobs, first = _lines(s, waiting, _kinds(s, waiting, ask, owed))
    running = live[s.running[live]]
    jobs = np.concatenate([jobs, running])
    first = np.concatenate([first, len(waiting) + np.arange(1, len(running) + 1)])
    eldest = jobs[first[:-1]]
    sites, choice, choices = _choices(s, pools, asks, ask, eldest)
    units = _units(jobs, first, eldest, asks, ask)
    pending = len(units) - len(running)
    return Index(
        pools, units[:pending], units[pending:], asks, ask, jobs, first, eldest, np.diff(first), sites, choice, choices
    )


def _asks(snapshot: Snapshot, live: IntArray) -> tuple[tuple[Ask, ...], IntArray]:
    """What the live jobs ask, and the number of each one's ask, int [J]."""
    s = snapshot
    ask = np.full(len(s.jobs), -1, dtype=np.int64)
    if not live.size:
        return (), ask
    filters = {where: k for k, where in enumerate(dict.fromkeys(where for where, *_ in s.shapes))}
    listed = list(filters)
    filter_of_shape = np.array([filters[where] for where, *_ in s.shapes], dtype=np.int64)
    stay = s.contract_s[live]
    if all(node.available_until_at is None for node in s.nodes):  # how long a job stays tells nothing apart
        stay = np.zeros(len(live), dtype=np.int64)
    pairs = np.stack([filter_of_shape[s.shape[live]], stay])
    numbers = number_rows(pairs)
    ask[live] = numbers
    first = np.full(int(numbers.max()) + 1, -1)
    first[numbers[::-1]] = np.arange(len(live))[::-1]
    return tuple(Ask(listed[f], until) for f, until in pairs[:, first].T.tolist()), ask


def number_rows(columns: IntArray) -> IntArray:
    """Number the columns of a table [k, n], equal ones alike, in the order in which they first appear: int [n]."""
    rows = np.ascontiguousarray(columns.T)
    if not rows.size:
        return np.zeros(len(rows), dtype=np.int64)
    words = rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize))).reshape(-1).tolist()
    known = {word: k for k, word in enumerate(dict.fromkeys(words))}
    return np.fromiter(map(known.__getitem__, words), dtype=np.int64, count=len(words))


def _kinds(snapshot: Snapshot, jobs: IntArray, ask: IntArray, owed: tuple[int, ...]) -> IntArray:
    """Number of each pending job's unit; jobs of several sizes, owed ones and those that spread are alone, int."""
    s = snapshot
    alone = np.isin(jobs, owed) | (s.least[jobs] < s.size[jobs])
    alike = number_rows(np.vstack([s.shape[jobs], s.fits[jobs].T]))
    _, some = np.unique(alike, return_index=True)
    alone |= np.array([spreads(s, j) for j in jobs[some].tolist()], dtype=bool)[alike]
    return number_rows(
        np.vstack([
            s.group[jobs], s.budgeted[jobs], ask[jobs], s.shape[jobs], s.speed_milli[jobs].T, s.level_rank[jobs],
            s.age_step[jobs], s.left_s[jobs].view(np.int64), np.where(alone, jobs, -1),
        ])
    )  # fmt: skip


def _lines(snapshot: Snapshot, jobs: IntArray, kind: IntArray) -> tuple[IntArray, IntArray]:
    """Jobs by unit, the eldest unit first, each unit by seniority; and where each begins, int [units + 1]."""
    s = snapshot
    order = np.lexsort((jobs, s.submitted_s[jobs], -s.priority[jobs], kind))
    count = np.bincount(kind)
    begin = np.cumsum(count) - count
    eldest = jobs[order[begin]]
    rank = np.empty(len(count), dtype=np.int64)
    by_age = np.lexsort((eldest, s.submitted_s[eldest]))
    rank[by_age] = np.arange(len(count))
    first = np.concatenate(([0], np.cumsum(count[by_age])))
    return jobs[order[np.argsort(rank[kind[order]], kind="stable")]], first


def _units(jobs: IntArray, first: IntArray, eldest: IntArray, asks: tuple[Ask, ...], ask: IntArray) -> tuple[Unit, ...]:
    listed, starts = jobs.tolist(), first.tolist()
    return tuple(
        Unit(tuple(listed[a:b]), asks[k]) for a, b, k in zip(starts[:-1], starts[1:], ask[eldest].tolist(), strict=True)
    )


def _choices(
    snapshot: Snapshot, pools: Pools, asks: tuple[Ask, ...], ask: IntArray, eldest: IntArray
) -> tuple[SiteTable, IntArray, IntArray]:
    """The sites of each unit; those of like ones are the same."""
    s = snapshot
    at, many = np.zeros(len(eldest), dtype=np.int64), np.zeros(len(eldest), dtype=np.int64)
    goes = np.flatnonzero((s.pending | movable(s))[eldest])
    jobs = eldest[goes]
    alike = number_rows(np.vstack([ask[jobs], s.shape[jobs], s.fits[jobs].T]))
    _, some = np.unique(alike, return_index=True)
    listed: list[Site] = []
    begin, count = [], []
    for j in jobs[some].tolist():
        found = sites_of(s, pools, j, asks[ask[j]])
        begin.append(len(listed))
        count.append(len(found))
        listed += found
    at[goes], many[goes] = np.array(begin, dtype=np.int64)[alike], np.array(count, dtype=np.int64)[alike]
    return SiteTable(listed), at, many
