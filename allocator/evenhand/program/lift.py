"""There and back: a solution of the program as decisions on nodes, and decisions as a point of the program."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from evenhand.outcome import STOPS, WAITS, Decision, Move, Outcome, Places, kept
from evenhand.placement import Arrival, open_floor, place_workers
from evenhand.program.formulate import NodeCounts
from evenhand.program.variables import MoveColumn, Program
from evenhand.shapes import IntArray


def lift(program: Program, counted: NodeCounts, x: IntArray) -> Outcome:
    """Read a solution: who goes which way, the eldest first, and on which nodes."""
    s = program.snapshot
    decisions: dict[int, Decision] = {j: kept(s, j) for j in program.fixed}
    decisions.update({int(robbed): STOPS for robbed in np.flatnonzero(s.orphan & s.hit)})
    chosen: dict[int, MoveColumn] = {}
    for unit in program.index.running:
        if unit.job not in decisions:
            taken = next((m for m in program.columns.by_unit.get(unit.job, ()) if x[m.column]), None)
            if taken is None:
                decisions[unit.job] = STOPS
            else:
                chosen[unit.job] = taken
    parts: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for unit in program.index.pending:
        line = list(unit.jobs)
        for m in program.columns.by_unit.get(unit.job, ()):
            going, line = line[: int(x[m.column])], line[int(x[m.column]) :]
            for j in going:
                chosen[j] = m
            parts[m.column].extend((j, 0, 0) for j in going)
        for reserved, t, column in program.columns.reserved:
            if reserved.job == unit.job:
                held, line = line[: int(x[column])], line[int(x[column]) :]
                decisions.update({j: Decision(Move.WAIT, reserved_type=t) for j in held})
        decisions.update(dict.fromkeys(line, WAITS))
    places = _places(program, counted, x, chosen)
    for j, m in chosen.items():
        stayed = m.move is Move.MIGRATE and places[j] == s.placement[j]
        decisions[j] = kept(s, j) if stayed else Decision(m.move, places[j], m.gpu_type)
    return Outcome(decisions)


def _places(program: Program, counted: NodeCounts, x: IntArray, chosen: dict[int, MoveColumn]) -> dict[int, Places]:
    s = program.snapshot
    found: dict[int, dict[int, int]] = {j: dict(m.holds) for j, m in chosen.items()}
    for spread in program.columns.spreads:
        job = spread.unit.job
        if job in chosen and any(c == chosen[job].column for _, _, c in spread.sizes):
            for n, column in spread.amount.items():
                if x[column]:
                    found[job][n] = found[job].get(n, 0) + int(x[column]) * spread.block
    stays = {j: tuple(sorted(parts.items())) for j, parts in found.items() if s.running[j] or parts}
    floor = open_floor(
        s, {**{j: s.placement[j] for j in program.fixed}, **{j: p for j, p in stays.items() if s.running[j]}}
    )
    for j, parts in found.items():
        if not s.running[j]:
            for n, gpus in parts.items():
                floor.take(n, gpus)
    wanted = _arrivals(program, x, chosen)
    spots: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
    for (pool, size, n), column in counted.items():
        if x[column]:
            spots[pool, size][n] = int(x[column])
    for j, nodes in place_workers(floor, program.index.pools.nodes, wanted, spots).items():
        for n, gpus in nodes.items():
            found[j][n] = found[j].get(n, 0) + gpus
    return {j: tuple(sorted(parts.items())) for j, parts in found.items()}


def _arrivals(program: Program, x: IntArray, chosen: dict[int, MoveColumn]) -> list[Arrival]:
    wanted = []
    left = {c: {p: int(x[col]) for p, col in split.items()} for c, split in program.columns.workers.items()}
    for j, m in sorted(chosen.items(), key=lambda item: (program.snapshot.submitted_s[item[0]], item[0])):
        if m.site is None or not m.site.regular or m.move is Move.KEEP:
            continue
        if m.column not in left:
            wanted.append(Arrival(j, m.site.worker, m.site.workers, m.site.pools[0]))
            continue
        need = m.site.workers
        for p in sorted(left[m.column], key=lambda p: -left[m.column][p]):
            here = min(need, left[m.column][p])
            if here:
                left[m.column][p] -= here
                need -= here
                wanted.append(Arrival(j, m.site.worker, here, p))
    return wanted


def lower(program: Program, counted: NodeCounts, outcome: Outcome) -> dict[int, int]:
    """Values of the move columns, splits and node counts that stand for an outcome: a hint for the solver."""
    hint: dict[int, int] = {m.column: 0 for m in program.columns.moves}
    for _, _, column in program.columns.reserved:
        hint[column] = 0
    for split in program.columns.workers.values():
        hint.update(dict.fromkeys(split.values(), 0))
    hint.update(dict.fromkeys(counted.values(), 0))
    pools = program.index.pools
    for unit in (*program.index.pending, *program.index.running):
        for j in unit.jobs:
            decision = outcome.decisions.get(j, WAITS)
            m = next((m for m in program.columns.by_unit.get(unit.job, ()) if _same(program, m, decision)), None)
            if m is None:
                continue
            hint[m.column] += 1
            if m.site is None or not m.site.regular:
                continue
            for n, gpus in decision.places:
                workers, p = gpus // m.site.worker, int(pools.of_node[n])
                if m.column in program.columns.workers:
                    hint[program.columns.workers[m.column][p]] += workers
                if (p, m.site.worker, n) in counted:
                    hint[counted[p, m.site.worker, n]] += workers
    return hint


def _same(program: Program, m: MoveColumn, decision: Decision) -> bool:
    if m.move is not decision.move or m.gpu_type != decision.gpu_type or m.gpus != decision.gpus:
        return False
    if m.site is None:
        return True
    pools = {int(program.index.pools.of_node[n]) for n, _ in decision.places if n >= 0}
    return not m.site.regular or pools <= set(m.site.pools)
