"""Every outcome a tiny cluster can have, and the best of them by rules O: nothing relaxed, nothing clever.

An outcome picks one move for each job. Moves of a job that are worth the same differ only in where they
stand, so the search walks over moves and carries along, for each partial pick, the set of all ways in
which it can fill the nodes: an outcome exists if one is left in the end. This is exact, as worth depends
on moves alone.

Rule R1 (nothing is stopped that is not in the way) is not built into the search. If the best outcome,
somewhere it can stand, leaves room to put a victim back, then putting it back (and dropping what
unallocated work moved in, if the victim is budgeted) is an outcome too, and where r <= 1 a better one: it
gains at least 1/16 (O4) and 1/16 (O6) a GPU, and no less than the handover pays (1/2 of lvl in O4, 1/2 of
1 - lvl in O6); it loses at most 1/16 a GPU of new envy. Under `throughput_unit: slowest` r may be above 1
and envy weigh more, so the winner is checked all the same: outcomes are taken from the best down until
one can stand somewhere without breaking R1 or R3, and `passed_over` says how many could not. U1 is R1
between budgeted victims and unallocated arrivals.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from evenhand_models import ClusterState, Job, Policy
from oracles.dues import Dues, Target, best_sum, drawn, parts, sixteenths
from oracles.moves import Move, Moves
from oracles.prices import Column, Prices
from oracles.reading import Place, Reader
from oracles.splits import classes, line

Floats = npt.NDArray[np.float64]
CAP = 200_000
GOALS = ("guarantees", "inner_levels", "leaves", "envy", "order", "work", "least_change", "unallocated_use")
GUARD = 1 << 15


class TooManyOutcomes(Exception):
    """The cluster is not tiny: more outcomes than the cap."""


@dataclass
class Best:
    """The best outcome: its weighted goals, its moves and places by job, and how many outcomes there were."""

    objective: float
    goals: dict[str, float]
    moves: dict[str, Move]
    outcomes: int
    passed_over: int
    spots: dict[str, Place] = field(default_factory=dict)


class Enumeration:
    """The outcomes of one state under one policy, for a given fair target.

    Parameters
    ----------
    target : GPUs by type, by the group of each leaf (T4): taken as given, as the plan states it.
    cap : outcomes at most; more raise TooManyOutcomes.
    """

    def __init__(self, state: ClusterState, policy: Policy, target: Target, cap: int = CAP) -> None:
        self.reader = Reader(state, policy)
        self.dues = Dues(self.reader)
        self.target = target
        self.cap = cap
        self.prices = Prices(self.reader, self.dues)
        self.moves = Moves(self.reader)
        pairs = [(job, self.moves.of(job)) for job in self.reader.jobs]
        self.jobs = sorted((p for p in pairs if p[1]), key=lambda p: (p[0].state == "pending", len(p[1])))
        self._node_shift = {name: 16 * i for i, name in enumerate(self.reader.nodes)}

    def best(self) -> Best:
        """Try everything and return the best outcome that keeps all rules."""
        picks = self.picks()
        goals = self.goals(picks)
        allowed = np.flatnonzero(goals.pop("allowed"))
        total = sum(goals.values())
        order = allowed[np.argsort(-total[allowed], kind="stable")]
        for passed, row in enumerate(order):
            moves = [listed[pick] for (_, listed), pick in zip(self.jobs, picks[row], strict=True)]
            spots = self._standing(moves)
            if spots is not None:
                by_job = {job.id: move for (job, _), move in zip(self.jobs, moves, strict=True)}
                where = {job.id: spot for (job, _), spot in zip(self.jobs, spots, strict=True)}
                mine = {name: float(goals[name][row]) for name in GOALS}
                return Best(float(total[row]), mine, by_job, len(allowed), passed, where)
        raise AssertionError("no outcome keeps all rules, though keeping everything and starting nothing should")

    def picks(self) -> npt.NDArray[np.int64]:
        """Return all outcomes of C1, one a row: the place of the move in the list of each job."""
        outcomes = list(self._outcomes())
        return np.array(outcomes, dtype=np.int64).reshape(len(outcomes), len(self.jobs))

    def goals(self, picks: npt.NDArray[np.int64]) -> dict[str, Floats]:
        """Return the weighted goals of outcomes, and under `allowed` whether L1 and O8 hold."""
        return self._goals(self._sums(picks))

    # the search
    def _fill(self, spot: Place) -> int:
        return sum(gpus << self._node_shift[name] for name, gpus in spot)

    def _outcomes(self) -> Iterator[tuple[int, ...]]:
        """Walk over all picks of moves for which some filling of the nodes exists (C1)."""
        guard = sum(GUARD << shift for shift in self._node_shift.values())
        start = sum(
            (GUARD - 1 - self.reader.room(node)) << self._node_shift[name] for name, node in self.reader.nodes.items()
        )
        fills = [[[self._fill(spot) for spot in move.spots] for move in moves] for _, moves in self.jobs]
        found = 0

        def walk(depth: int, ways: set[int], picks: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
            nonlocal found
            if depth == len(fills):
                found += 1
                if found > self.cap:
                    raise TooManyOutcomes(f"more than {self.cap} outcomes")
                yield picks
                return
            for pick, spots in enumerate(fills[depth]):
                after = {full for way in ways for spot in spots if not (full := way + spot) & guard}
                if after:
                    yield from walk(depth + 1, after, (*picks, pick))

        return walk(0, {start}, ())

    # worth
    def _sums(self, picks: npt.NDArray[np.int64]) -> dict[Column, Floats]:
        """Add up the columns of the moves, one row an outcome."""
        sums: dict[Column, Floats] = {}
        for place, (job, moves) in enumerate(self.jobs):
            rows = [self.prices.row(job, move) for move in moves]
            for column in {column for row in rows for column in row}:
                values = np.array([row.get(column, 0.0) for row in rows])[picks[:, place]]
                sums[column] = sums[column] + values if column in sums else values
        sums[("none",)] = np.zeros(len(picks))
        return sums

    def _goals(self, sums: dict[Column, Floats]) -> dict[str, Floats]:
        """Bend the sums as rules O do; `allowed` says where L1 and O8 hold."""
        zero = sums[("none",)]
        goals = {name: sums.get((name,), zero).copy() for name in GOALS}
        goals["leaves"] += sums.get(("owed",), zero)
        reader, dues = self.reader, self.dues
        top = max((dues.height(g) for g in reader.parent), default=0)
        for group in reader.state.groups:
            due, held = dues.of[group.id], sums.get(("held", group.id), zero)
            if group.guaranteed_gpus is not None and due.floor > 0:
                short = np.maximum(dues.reach(group.id, due.floor) - held, 0)
                goals["guarantees"] -= 600.0 * 2 ** min(10, top) * short
            if dues.has_children(group.id):
                short = np.maximum(dues.reach(group.id, due.entitled) - held, 0)
                goals["inner_levels"] -= due.claim * 2 ** min(10, dues.height(group.id)) * short
        for group, aim in self.aims().items():
            goals["leaves"] -= dues.leaf[group].claim * np.maximum(sixteenths(aim) - sums.get(("use", group), zero), 0)
        goals["envy"] -= self._envy(sums) / 16
        goals["order"] += self._handover(sums)
        goals["allowed"] = self._allowed(sums)
        return goals

    def leaves(self) -> list[str]:
        """Groups whose leaf takes part in T."""
        return [g for g, due in sorted(self.dues.leaf.items()) if due.entitled > 1e-9]

    def aims(self) -> dict[str, float]:
        """Throughput each leaf should reach (T5)."""
        aims = {}
        for group in self.leaves():
            jobs = self.dues.leaf[group].jobs
            most = drawn(self.reader, jobs, self.target.get(group, {}))
            aims[group] = best_sum(
                [part * max(self.reader.speed[job.id].values()) for job in jobs for part in parts(job)], most
            )
        return aims

    def _envy(self, sums: dict[Column, Floats]) -> Floats:
        """E1, summed over the envied."""
        zero = sums[("none",)]
        types, leaves = self.reader.types, self.leaves()
        lines = {group: self.envy_line(group) for group in leaves}
        total = zero.copy()
        for envied in leaves:
            has = {t: sums.get(("has", envied, t), zero) for t in types}
            worst = zero.copy()
            for envier in leaves:
                if envier == envied:
                    continue
                ratio = self.dues.leaf[envier].entitled / self.dues.leaf[envied].entitled
                base, slopes, big = lines[envier]
                seen = base + sum(slopes[t] * ratio * has[t] for t in types)
                worst = np.maximum(worst, (seen - sums.get(("thr", envier), zero) - big) / ratio)
            total += worst
        return total

    def envy_line(self, group: str) -> tuple[float, dict[str, float], float]:
        """L of a leaf as base and slopes by type, and its largest job (T1 to T3, E1)."""
        reader, due = self.reader, self.dues.leaf[group]
        share = due.entitled / sum(self.dues.leaf[g].entitled for g in self.leaves())
        base, slopes = line(*classes(reader, due.jobs), {t: share * reader.capacity[t] for t in reader.types})
        big = max(job.gpus * max(reader.speed[job.id].values()) for job in due.jobs)
        return base, slopes, big

    def _handover(self, sums: dict[Column, Floats]) -> Floats:
        """O4: higher priorities taking over from lower ones of their leaf."""
        zero = sums[("none",)]
        total = zero.copy()
        for column, above in sums.items():
            if column[0] == "above":
                group = column[1]
                job = next(j for j in self.dues.jobs if self.reader.group_of[j.id] == group)
                levels = len(self.reader.levels(job))
                below = sums.get(("below", group, column[2]), zero)
                total += np.minimum(above, below) / 2 / (levels - 1)
        return total

    def _allowed(self, sums: dict[Column, Floats]) -> npt.NDArray[np.bool_]:
        """L1 and the capacity of reservations (O8)."""
        zero = sums[("none",)]
        allowed = zero == 0
        for group in self.reader.state.groups:
            if group.max_gpus is not None:
                allowed &= sums.get(("limit", group.id), zero) <= self.limit(group.id)
        for kind in self.reader.types:
            allowed &= sums.get(("reserved", kind), zero) <= sums.get(("ending", kind), zero)
        return allowed

    def limit(self, group: str) -> int:
        """GPUs a limited group may hold (L1)."""
        most = next(g.max_gpus for g in self.reader.state.groups if g.id == group) or 0
        pinned = sum(job.placed_gpus for job, _ in self.jobs if self.reader.pinned(job) and self._is_in(job, group))
        return max(most, pinned)

    def _is_in(self, job: Job, group: str) -> bool:
        mine = self.reader.group_of[job.id]
        return mine is not None and group in self.reader.lineage(mine)

    # R1
    def _standing(self, moves: list[Move]) -> list[Place] | None:
        """Find places for a pick of moves under which R1 and R3 hold; None if there are none."""
        chosen: list[Place] = []
        used: dict[str, int] = dict.fromkeys(self.reader.nodes, 0)

        def walk(depth: int) -> bool:
            if depth == len(moves):
                return self._keeps_r1(moves, chosen) and self._keeps_r3(moves, chosen)
            for spot in moves[depth].spots:
                if all(used[n] + g <= self.reader.room(self.reader.nodes[n]) for n, g in spot):
                    for n, g in spot:
                        used[n] += g
                    chosen.append(spot)
                    if walk(depth + 1):
                        return True
                    chosen.pop()
                    for n, g in spot:
                        used[n] -= g
            return False

        return chosen if walk(0) else None

    def _keeps_r1(self, moves: list[Move], spots: list[Place]) -> bool:
        victims = [
            job
            for (job, _), move in zip(self.jobs, moves, strict=True)
            if move.what == "preempt" and not self.reader.hit(job)
        ]
        return all(self._in_the_way(victim, moves, spots) for victim in victims)

    def _keeps_r3(self, moves: list[Move], spots: list[Place]) -> bool:
        """Whether no victim could start elsewhere at once, where the policy lets nobody move (R3)."""
        reader = self.reader
        if reader.policy.allow_migration:
            return True
        for (job, _), move in zip(self.jobs, moves, strict=True):
            if move.what != "preempt" or reader.hit(job) or not job.contract.resumable:
                continue
            used = dict.fromkeys(reader.nodes, 0)
            held = dict.fromkeys(self.prices.limited, 0)
            for (other, _), spot in zip(self.jobs, spots, strict=True):
                if reader.budgeted(job) and reader.live(other) and not reader.budgeted(other):
                    continue  # unallocated work makes way for it
                for node, gpus in spot:
                    used[node] += gpus
                    for group in held:
                        held[group] += gpus if self._is_in(other, group) else 0
            for kind in reader.fitting[job.id]:
                for size in self.moves.sizes(job):
                    if any(self._is_in(job, g) and held[g] + size > self.limit(g) for g in held):
                        continue
                    for spot in self.moves.stand(job, kind, size):
                        if all(used[n] + g <= reader.room(reader.nodes[n]) for n, g in spot):
                            return False
        return True

    def _in_the_way(self, victim: Job, moves: list[Move], spots: list[Place]) -> bool:
        """Whether putting a victim back would overfill a node or break a limit (R1)."""
        reader = self.reader
        used = dict.fromkeys(reader.nodes, 0)
        held = dict.fromkeys(self.prices.limited, 0)
        for (job, _), move, spot in zip(self.jobs, moves, spots, strict=True):
            before = {p.node: p.gpus for p in job.placement} if move.what in ("keep", "resize", "repair") else {}
            counts = not reader.budgeted(victim) or reader.budgeted(job) or move.what == "orphan"
            stays = {n: g if counts or move.what == "orphan" else min(g, before.get(n, 0)) for n, g in spot}
            for node, gpus in stays.items():
                used[node] += gpus
            for group in held:
                held[group] += sum(stays.values()) if self._is_in(job, group) else 0
        full = any(used[p.node] + p.gpus > reader.room(reader.nodes[p.node]) for p in victim.placement)
        return full or any(self._is_in(victim, g) and held[g] + victim.placed_gpus > self.limit(g) for g in held)
