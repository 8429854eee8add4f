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
from evenhand.placement import Floor, open_floor
from evenhand.program.index import Index, elastic, may_move, sizes_of
from evenhand.program.pools import Ask
from evenhand.shapes import worker_size
from evenhand.snapshot import Snapshot


def greedy(snapshot: Snapshot, entitled: Entitlement, index: Index) -> Outcome:
    """Decide every live job by first come in the fairest order; never looks back."""
    return _Greedy(snapshot, entitled, index).run()


def restartable(snapshot: Snapshot, entitled: Entitlement, index: Index, outcome: Outcome) -> list[int]:
    """Preempted jobs that could start elsewhere on what a plan leaves free: they would move in two rounds (rule R3)."""
    return _Greedy(snapshot, entitled, index).second_starts(outcome)


def top_up(snapshot: Snapshot, entitled: Entitlement, index: Index, outcome: Outcome) -> Outcome:
    """Start waiting jobs on what a plan leaves free, the least served group's eldest first."""
    return _Greedy(snapshot, entitled, index).fill_up(outcome)


class _Greedy:
    def __init__(self, snapshot: Snapshot, entitled: Entitlement, index: Index) -> None:
        self._s = snapshot
        self._entitled = entitled
        self._index = index
        self._ask: dict[int, Ask] = {j: u.ask for u in (*index.pending, *index.running) for j in u.jobs}
        self._hopeless: set[object] = set()
        tree = snapshot.tree
        self._limit = {c: g.max_gpus for c, g in enumerate(tree.groups) if g.max_gpus is not None}
        self._below: dict[int, int] = defaultdict(int)
        self._charged: dict[int, float] = defaultdict(float)

    def run(self) -> Outcome:
        s = self._s
        decisions: dict[int, Decision] = {int(j): STOPS for j in np.flatnonzero(s.orphan & s.hit)}
        stays = self._what_stays()
        decisions.update({j: kept(s, j) for j in stays})
        self._floor = open_floor(s, {j: s.placement[j] for j in stays})
        waiting = [int(j) for j in np.flatnonzero(s.live) if j not in stays]
        decisions.update({j: STOPS if s.running[j] else WAITS for j in waiting})
        candidates = [j for j in waiting if s.pending[j] or may_move(s, j)]
        for kind in (True, False):
            decisions.update(self._fill([j for j in candidates if bool(s.budgeted[j]) is kind]))
        return Outcome(decisions)

    def fill_up(self, outcome: Outcome) -> Outcome:
        """Budgeted waiting jobs first, then the others; those with a reservation go on waiting."""
        s = self._s
        self._lay_out(outcome)
        idle = [j for j, d in outcome.decisions.items() if d.move is Move.WAIT and d.reserved_type < 0 and s.pending[j]]
        decisions = dict(outcome.decisions)
        for kind in (True, False):
            decisions.update(self._fill([j for j in idle if bool(s.budgeted[j]) is kind]))
        return Outcome(decisions, outcome.optimal)

    def _lay_out(self, outcome: Outcome) -> None:
        """Count what a plan holds."""
        self._floor = open_floor(self._s, {j: d.places for j, d in outcome.decisions.items() if d.places})
        for j, d in outcome.decisions.items():
            if d.places:
                self._count(j, d.gpus, d.gpu_type)

    def second_starts(self, outcome: Outcome) -> list[int]:
        """Requeued jobs that fit beside everything the plan runs."""
        s = self._s
        self._lay_out(outcome)
        stopped = [j for j, d in sorted(outcome.decisions.items()) if d.move is Move.PREEMPT and s.live[j]]
        return [j for j in stopped if s.jobs[j].contract.resumable and not s.hit[j] and self._try(j) is not None]

    def _what_stays(self) -> set[int]:
        """Running jobs that keep their place: what is pinned, then as many others as nodes and limits hold."""
        s = self._s
        left = [int(r) for r in s.room]
        stays: set[int] = set()
        runs = [int(j) for j in np.flatnonzero(s.running & ~(s.orphan & s.hit))]
        for j in sorted(runs, key=lambda j: (not s.pinned[j], not s.budgeted[j], s.started_s[j], j)):
            parts = s.placement[j]
            fits = all(n >= 0 and left[n] >= g for n, g in parts) and self._within_limits(j, int(s.held[j]))
            if not fits and not s.pinned[j]:
                continue
            for n, g in parts:
                left[n] -= g
            self._count(j, int(s.held[j]), int(s.held_type[j]))
            stays.add(j)
        return stays

    def _within_limits(self, job: int, gpus: int) -> bool:
        path = self._path(job)
        return all(self._below[c] + gpus <= self._limit[c] for c in path if c in self._limit)

    def _path(self, job: int) -> tuple[int, ...]:
        g = int(self._s.group[job])
        return self._s.tree.path[g] if g >= 0 else ()

    def _count(self, job: int, gpus: int, gpu_type: int) -> None:
        for c in self._path(job):
            self._below[c] += gpus
        if self._s.budgeted[job]:
            self._charged[int(self._s.group[job])] += gpus * int(self._s.rate_milli[gpu_type]) / 1000.0

    def _served(self, group: int) -> tuple[float, tuple[int, ...]]:
        """How well a group is served: what its own jobs hold over their entitlement, then how it stands; least first.

        Entitlements of leaves already carry the shares of all levels above them, so only the leaf's own figure moves.
        """
        e = self._entitled
        entitled = max(1e-9, float(e.leaf_entitled[group]))
        return self._charged[group] / entitled, tuple(int(e.standing[c]) for c in self._s.tree.path[group])

    def _fill(self, jobs: list[int]) -> dict[int, Decision]:
        s = self._s
        lines: dict[int, list[int]] = defaultdict(list)
        for j in jobs:
            lines[int(s.group[j])].append(j)
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
        types = sorted(np.flatnonzero(s.fits[job]).tolist(), key=lambda t: (-int(s.speed_milli[job, t]), t))
        sizes = list(reversed(sizes_of(s, job))) if elastic(s, job) else [int(s.size[job])]
        for t in types:
            for size in sizes:
                if not self._within_limits(job, size):
                    continue
                places = self._place(job, t, size)
                if places is not None:
                    self._count(job, size, t)
                    move = Move.START if s.pending[job] else Move.MIGRATE
                    return Decision(move, places, t)
        return None

    def _place(self, job: int, gpu_type: int, size: int) -> Places | None:
        s = self._s
        asked, ask = s.jobs[job], self._ask[job]
        key = (ask, gpu_type, size, asked.worker_gpus, asked.gpus_per_node)
        if key in self._hopeless:
            return None
        if s.sites.fits(asked, gpu_type, size):
            for _, nodes in self._index.pools.eligible(ask, gpu_type):
                parts = self._stand(job, gpu_type, size, nodes.tolist())
                if parts is not None:
                    for n, gpus in parts.items():
                        self._floor.take(n, gpus)
                    return tuple(sorted(parts.items()))
        self._hopeless.add(key)
        return None

    def _stand(self, job: int, gpu_type: int, size: int, nodes: list[int]) -> dict[int, int] | None:
        asked = self._s.jobs[job]
        free = self._floor.free
        if asked.worker_gpus is not None or asked.gpus_per_node is not None:
            return _by_workers(self._floor, nodes, size, worker_size(asked), once=asked.gpus_per_node is not None)
        need = self._s.sites.nodes_needed(self._ask[job].where, gpu_type, size)
        if need == 1:
            node = self._floor.best_fit(nodes, size)
            return None if node is None else {node: size}
        fullest = sorted((n for n in nodes if free[n] > 0), key=lambda n: (-free[n], n))[:need]
        if need is None or len(fullest) < need or sum(free[n] for n in fullest) < size:
            return None
        parts, left = {}, size
        for i, n in enumerate(fullest):
            parts[n] = min(free[n], left - (need - 1 - i))
            left -= parts[n]
        return parts


def _by_workers(floor: Floor, nodes: list[int], size: int, worker: int, *, once: bool) -> dict[int, int] | None:
    """Whole workers by best fit; `once`: one a node."""
    trial = Floor(list(floor.free), list(floor.at_once))
    parts: dict[int, int] = {}
    for _ in range(size // worker):
        node = trial.best_fit((n for n in nodes if not (once and n in parts)), worker)
        if node is None:
            return None
        trial.take(node, worker)
        parts[node] = parts.get(node, 0) + worker
    return parts
