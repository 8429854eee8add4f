"""A plan that always exists: keep what runs, then start the least served group's eldest gang that fits.

It breaks no rule, never preempts (but for node loss and lowered limits), and takes milliseconds: the hint of the solver and
the answer when time is up.
"""

from __future__ import annotations

import heapq
from collections import defaultdict

import numpy as np

from evenhand.entitlement import Entitlement
from evenhand.outcome import STOPS, WAITS, Decision, Move, Outcome, Places, kept
from evenhand.placement import open_floor
from evenhand.program.index import Index, number_rows
from evenhand.program.sites import elastic, movable, sizes_of
from evenhand.shapes import IntArray
from evenhand.shelves import Shelves
from evenhand.snapshot import Snapshot


def greedy(snapshot: Snapshot, entitled: Entitlement, index: Index) -> Outcome:
    """Decide every live job by first come in the fairest order; never looks back."""
    return _Greedy(snapshot, entitled, index).run()


def restartable(snapshot: Snapshot, entitled: Entitlement, index: Index, outcome: Outcome) -> list[int]:
    """Preempted jobs that could start elsewhere on what a plan leaves free, or to unallocated work: they would move in two
    rounds (rule R3).
    """
    return _Greedy(snapshot, entitled, index).second_starts(outcome)


def top_up(snapshot: Snapshot, entitled: Entitlement, index: Index, outcome: Outcome) -> Outcome:
    """Start waiting jobs on what a plan leaves free, the least served group's eldest first."""
    return _Greedy(snapshot, entitled, index).fill_up(outcome)


class _Greedy:
    def __init__(self, snapshot: Snapshot, entitled: Entitlement, index: Index) -> None:
        self._s = s = snapshot
        self._entitled = entitled
        self._index = index
        self._asks, self._ask = index.asks, index.ask.tolist()
        self._group, self._budgeted, self._rate = s.group.tolist(), s.budgeted.tolist(), s.rate_milli.tolist()
        self._kind = number_rows(np.vstack([index.ask, s.shape, s.fits.T])).tolist()
        self._hopeless_kinds: set[int] = set()
        self._hopeless: set[tuple[int, int, int, int | None, int | None]] = set()
        self._shelves: dict[tuple[int, int], list[Shelves]] = {}
        self._alike: dict[bytes, Shelves] = {}
        self._types: list[list[int]] = np.argsort(-s.speed_milli, axis=1, kind="stable").tolist()
        self._choices: list[int] = s.fits.sum(axis=1).tolist()
        tree = snapshot.tree
        self._limit = {c: g.max_gpus for c, g in enumerate(tree.groups) if g.max_gpus is not None}
        self._capped = [tuple(c for c in path if c in self._limit) for path in tree.path]
        self._stands = [tuple(int(entitled.standing[c]) for c in path) for path in tree.path]
        self._below: dict[int, int] = defaultdict(int)
        self._charged: dict[int, float] = defaultdict(float)

    def run(self) -> Outcome:
        s = self._s
        decisions: dict[int, Decision] = {int(j): STOPS for j in np.flatnonzero(s.orphan & s.hit)}
        stays = self._what_stays()
        decisions.update({j: kept(s, j) for j in stays})
        self._floor = open_floor(s, {j: s.placement[j] for j in stays})
        waiting = [j for j in np.flatnonzero(s.live).tolist() if j not in stays]
        running = s.running.tolist()
        decisions.update({j: STOPS if running[j] else WAITS for j in waiting})
        candidates = np.array(waiting, dtype=np.int64)
        candidates = candidates[(s.pending | movable(s))[candidates]]
        for kind in (True, False):
            decisions.update(self._fill(candidates[s.budgeted[candidates] == kind].tolist()))
        return Outcome(decisions)

    def fill_up(self, outcome: Outcome) -> Outcome:
        """Budgeted waiting jobs first, then the others; those with a reservation go on waiting."""
        s = self._s
        self._lay_out(outcome)
        all_ = outcome.table
        idle = all_.job[all_.among(Move.WAIT) & (all_.reserved_type < 0) & s.pending[all_.job]]
        decisions = dict(outcome.decisions)
        for kind in (True, False):
            decisions.update(self._fill(idle[s.budgeted[idle] == kind].tolist()))
        return Outcome(decisions, outcome.optimal)

    def _lay_out(self, outcome: Outcome) -> None:
        """Count what a plan holds, and nothing else."""
        s = self._s
        self._below.clear()
        holds = {j: d for j, d in outcome.decisions.items() if d.places}
        self._floor = open_floor(s, {j: d.places for j, d in holds.items()})
        jobs = np.fromiter(holds, dtype=np.int64, count=len(holds))
        gpus = np.array([d.gpus for d in holds.values()], dtype=np.int64)
        kind = np.array([d.gpu_type for d in holds.values()], dtype=np.int64)
        mine = s.budgeted[jobs]
        charged = np.bincount(s.group[jobs[mine]], gpus[mine] * s.rate_milli[kind[mine]] / 1000.0, len(s.tree.ids))
        self._charged = defaultdict(float, enumerate(charged.tolist()))
        for j, held in zip(holds, gpus.tolist(), strict=True) if self._limit else ():
            for c in self._capped[self._group[j]] if self._group[j] >= 0 else ():
                self._below[c] += held

    def second_starts(self, outcome: Outcome) -> list[int]:
        """Requeued jobs that fit beside everything the plan runs; budgeted ones beside what is not unallocated (U1)."""
        s, decisions = self._s, outcome.decisions
        stopped = [j for j, d in sorted(decisions.items()) if d.move is Move.PREEMPT and s.live[j] and not s.hit[j]]
        stopped = [j for j in stopped if s.jobs[j].contract.resumable]
        found = []
        for budgeted in (True, False):
            again = [j for j in stopped if s.budgeted[j] == budgeted]
            if again:
                stays = {j: d for j, d in decisions.items() if not budgeted or s.budgeted[j] or s.orphan[j]}
                self._lay_out(Outcome(stays))
                found += [j for j in again if self._try(j) is not None]
        return sorted(found)

    def _what_stays(self) -> set[int]:
        """Running jobs that keep their place: what is pinned, then as many others as nodes and limits hold."""
        s = self._s
        left = s.room.tolist()
        stays: set[int] = set()
        runs = np.flatnonzero(s.running & ~(s.orphan & s.hit))
        order = np.lexsort((runs, s.started_s[runs], ~s.budgeted[runs], ~s.pinned[runs]))
        pinned, held, kind = s.pinned.tolist(), s.held.tolist(), s.held_type.tolist()
        for j in runs[order].tolist():
            parts = s.placement[j]
            fits = all(n >= 0 and left[n] >= g for n, g in parts) and self._within_limits(j, held[j])
            if not fits and not pinned[j]:
                continue
            for n, g in parts:
                left[n] -= g
            self._count(j, held[j], kind[j])
            stays.add(j)
        return stays

    def _within_limits(self, job: int, gpus: int) -> bool:
        g = self._group[job]
        return g < 0 or all(self._below[c] + gpus <= self._limit[c] for c in self._capped[g])

    def _count(self, job: int, gpus: int, gpu_type: int) -> None:
        g = self._group[job]
        for c in self._capped[g] if g >= 0 else ():
            self._below[c] += gpus
        if self._budgeted[job]:
            self._charged[g] += gpus * self._rate[gpu_type] / 1000.0

    def _served(self, group: int) -> tuple[float, tuple[int, ...]]:
        """How well a group is served: what its own jobs hold over their entitlement, then how it stands; least first.

        Entitlements of leaves already carry the shares of all levels above them, so only the leaf's own figure moves.
        """
        entitled = max(1e-9, float(self._entitled.leaf_entitled[group]))
        return self._charged[group] / entitled, self._stands[group]

    def _fill(self, jobs: list[int]) -> dict[int, Decision]:
        s = self._s
        lines: dict[int, list[int]] = defaultdict(list)
        for j in jobs:
            lines[self._group[j]].append(j)
        for line in lines.values():
            line.sort(key=s.seniority, reverse=True)
        heap = [(self._served(g), g) for g in lines]
        heapq.heapify(heap)
        found: dict[int, Decision] = {}
        while heap:
            _, g = heapq.heappop(heap)
            line = lines[g]
            while line:
                job = line.pop()
                decision = self._try(job)
                if decision is not None:
                    found[job] = decision
                    break
            if line:
                heapq.heappush(heap, (self._served(g), g))
        return found

    def _try(self, job: int) -> Decision | None:
        """The job's best type that has room, at its largest size that fits."""
        s = self._s
        kind = self._kind[job]
        if kind in self._hopeless_kinds:
            return None
        offered = list(reversed(sizes_of(s, job))) if elastic(s, job) else [int(s.size[job])]
        sizes = [size for size in offered if self._within_limits(job, size)]
        for t in self._types[job][: self._choices[job]]:
            for size in sizes:
                places = self._place(job, t, size)
                if places is not None:
                    self._count(job, size, t)
                    move = Move.START if s.pending[job] else Move.MIGRATE
                    return Decision(move, places, t)
        if len(sizes) == len(offered):  # no limit was in the way, only nodes: nothing is given back
            self._hopeless_kinds.add(kind)
        return None

    def _place(self, job: int, gpu_type: int, size: int) -> Places | None:
        s, asked = self._s, self._s.jobs[job]
        key = (self._ask[job], gpu_type, size, asked.worker_gpus, asked.gpus_per_node)
        if key in self._hopeless:
            return None
        if s.sites.fits(asked, gpu_type, size):
            for shelves in self._shelves_of(self._ask[job], gpu_type):
                parts = self._stand(job, gpu_type, size, shelves)
                if parts is not None:
                    return tuple(sorted(parts.items()))
        self._hopeless.add(key)
        return None

    def _shelves_of(self, ask: int, gpu_type: int) -> list[Shelves]:
        """The nodes that an ask may use, by value of its shared label."""
        key = (ask, gpu_type)
        if key not in self._shelves:
            eligible = self._index.pools.eligible(self._asks[ask], gpu_type)
            self._shelves[key] = [self._shelved(nodes) for _, nodes in eligible]
        return self._shelves[key]

    def _shelved(self, nodes: IntArray) -> Shelves:
        """Shelves of equal lists of nodes are one."""
        key = nodes.tobytes()
        if key not in self._alike:
            self._alike[key] = self._floor.shelves(nodes.tolist())
        return self._alike[key]

    def _stand(self, job: int, gpu_type: int, size: int, shelves: Shelves) -> dict[int, int] | None:
        """Take a gang's GPUs from the floor, by node; None if they are not there."""
        asked = self._s.jobs[job]
        if asked.worker_gpus is not None:
            return self._by_workers(shelves, size // asked.worker_gpus, asked.worker_gpus)
        if asked.gpus_per_node is not None:
            return self._one_each(shelves, size // asked.gpus_per_node, asked.gpus_per_node)
        need = self._s.sites.nodes_needed(self._asks[self._ask[job]].where, gpu_type, size)
        if need == 1:
            return self._by_workers(shelves, 1, size)
        if need is None:
            return None
        free = self._floor.free
        fullest = shelves.first(need, lambda left, _: (-left,))
        if len(fullest) < need or sum(free[n] for n in fullest) < size:
            return None
        parts, left = {}, size
        for i, n in enumerate(fullest):
            parts[n] = min(free[n], left - (need - 1 - i))
            left -= parts[n]
        return self._taken(parts)

    def _by_workers(self, shelves: Shelves, workers: int, worker: int) -> dict[int, int] | None:
        """Whole workers by best fit."""
        parts: dict[int, int] = {}
        for _ in range(workers):
            node = shelves.best_fit(worker)
            if node is None:
                for n, gpus in parts.items():
                    self._floor.take(n, -gpus)
                return None
            self._floor.take(node, worker)
            parts[node] = parts.get(node, 0) + worker
        return parts

    def _one_each(self, shelves: Shelves, workers: int, worker: int) -> dict[int, int] | None:
        """Whole workers by best fit, one a node."""
        nodes = shelves.first(workers, lambda free, at_once: (int(at_once < worker), free) if free >= worker else None)
        return self._taken(dict.fromkeys(nodes, worker)) if len(nodes) == workers else None

    def _taken(self, parts: dict[int, int]) -> dict[int, int]:
        for n, gpus in parts.items():
            self._floor.take(n, gpus)
        return parts
