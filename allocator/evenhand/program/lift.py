"""There and back: a solution of the program as decisions on nodes, and decisions as a point of the program."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from evenhand.outcome import MOVES, STOPS, WAITS, Decision, Move, Outcome, Places
from evenhand.placement import Arrival, floor_under, place_workers
from evenhand.program.formulate import NodeCounts
from evenhand.program.sites import Site
from evenhand.program.variables import CODE, KEEP, Program, spans
from evenhand.shapes import IntArray
from evenhand.shelves import Floor

MIGRATE = CODE[Move.MIGRATE]
IN_PLACE = (CODE[Move.REPAIR], CODE[Move.RESIZE])
Chosen = dict[int, int]
"""Place of the move column that a job goes by, by job: running ones, then pending ones, in the order of the index."""


def lift(program: Program, counted: NodeCounts, x: IntArray) -> Outcome:
    """Read a solution: who goes which way, the eldest first, and on which nodes."""
    s, moves = program.snapshot, program.columns.moves
    decisions: dict[int, Decision] = {j: program.kept[j] for j in program.fixed}
    decisions.update({int(robbed): STOPS for robbed in np.flatnonzero(s.orphan & s.hit)})
    chosen = _running(program, x, decisions)
    chosen.update(_pending(program, x, decisions))
    at = np.fromiter(chosen.values(), dtype=np.int64, count=len(chosen))
    keeps = moves.kind[at] == KEEP
    goes = {j: k for (j, k), keep in zip(chosen.items(), keeps.tolist(), strict=True) if not keep}
    places = _places(program, counted, x, goes, moves.job[at[keeps]])
    for j, kind, gpu_type in zip(chosen, moves.kind[at].tolist(), moves.gpu_type[at].tolist(), strict=True):
        stayed = kind == KEEP or (kind == MIGRATE and places[j] == s.placement[j])
        decisions[j] = program.kept[j] if stayed else Decision(MOVES[kind], places[j], gpu_type)
    return Outcome(decisions)


def _running(program: Program, x: IntArray, decisions: dict[int, Decision]) -> Chosen:
    """Ways of running jobs that go on; the others stop."""
    index, moves = program.index, program.columns.moves
    taken = np.flatnonzero((moves.unit >= len(index.pending)) & (x[moves.column] > 0))
    jobs, first = np.unique(moves.unit[taken], return_index=True)
    chosen = dict(zip(index.eldest[jobs].tolist(), taken[first].tolist(), strict=True))
    runs = index.eldest[len(index.pending) :].tolist()
    decisions.update({j: STOPS for j in runs if j not in chosen and j not in decisions})
    return chosen


def _pending(program: Program, x: IntArray, decisions: dict[int, Decision]) -> Chosen:
    """Ways of pending jobs that start; the others wait, the next eldest of them for GPUs that end."""
    index, moves = program.index, program.columns.moves
    going = x[moves.column]
    taken = np.flatnonzero((moves.unit < len(index.pending)) & (going > 0))
    times = going[taken]
    unit = np.repeat(moves.unit[taken], times)
    place = index.first[unit] + spans(np.zeros(len(taken), dtype=np.int64), times)
    place += _before(moves.unit[taken], times)
    jobs = index.jobs[place]
    waits = np.ones(int(index.first[len(index.pending)]), dtype=bool)
    waits[place] = False
    decisions.update(dict.fromkeys(index.jobs[: len(waits)][waits].tolist(), WAITS))
    if any(x[column] for _, _, column in program.columns.reserved):
        started = np.bincount(unit, minlength=len(index.pending)).tolist()
        position = {u.job: k for k, u in enumerate(index.pending)}
        for reserved, t, column in program.columns.reserved:
            k = position[reserved.job]
            for j in reserved.jobs[started[k] : started[k] + int(x[column])]:
                decisions[j] = Decision(Move.WAIT, reserved_type=t)
            started[k] += int(x[column])
    return dict(zip(jobs.tolist(), np.repeat(taken, times).tolist(), strict=True))


def _before(unit: IntArray, times: IntArray) -> IntArray:
    """For each job that goes, by way, how many of its unit go an earlier way; ways of a unit are side by side."""
    if not unit.size:
        return np.zeros(0, dtype=np.int64)
    sums = np.cumsum(times) - times
    start = np.flatnonzero(np.append(True, unit[1:] != unit[:-1]))
    length = np.diff(np.append(start, len(unit)))
    return np.repeat(sums - np.repeat(sums[start], length), times)


def _places(program: Program, counted: NodeCounts, x: IntArray, goes: Chosen, keeps: IntArray) -> dict[int, Places]:
    """Nodes of the jobs that go some way; what they and kept jobs hold in place, and node by node, comes first."""
    s, moves = program.snapshot, program.columns.moves
    found: dict[int, dict[int, int]] = {
        j: dict(moves.holds(at)) if running else {}
        for (j, at), running in zip(goes.items(), s.running[list(goes)].tolist(), strict=True)
    }
    _add_spreads(program, x, goes, found)
    floor = _floor(program, keeps, found)
    spots: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
    for k in np.flatnonzero(x[counted.column]).tolist():
        spots[int(counted.pool[k]), int(counted.size[k])][int(counted.node[k])] = int(x[counted.column[k]])
    wanted = _arrivals(program, x, goes)
    for j, nodes in place_workers(floor, program.index.pools.nodes, wanted, spots).items():
        here = found[j]
        for n, gpus in nodes.items():
            here[n] = here.get(n, 0) + gpus
    return {j: tuple(parts.items()) if len(parts) == 1 else tuple(sorted(parts.items())) for j, parts in found.items()}


def _add_spreads(program: Program, x: IntArray, goes: Chosen, found: dict[int, dict[int, int]]) -> None:
    """Add what the program decided node by node."""
    moves = program.columns.moves
    for spread in program.columns.spreads:
        if spread.job in goes and any(c == moves.column[goes[spread.job]] for _, _, c in spread.sizes):
            here, blocks = found[spread.job], x[spread.amount]
            for k in np.flatnonzero(blocks).tolist():
                n = int(spread.node[k])
                here[n] = here.get(n, 0) + int(blocks[k]) * spread.block


def _floor(program: Program, keeps: IntArray, found: dict[int, dict[int, int]]) -> Floor:
    """The floor once all is counted whose nodes are decided: what running jobs hold was never free."""
    s = program.snapshot
    stays = np.zeros(len(s.jobs), dtype=bool)
    stays[list(program.fixed)] = True
    stays[keeps] = True
    rows = np.flatnonzero(stays[s.stands.job])
    partly = [(n, g) for j, parts in found.items() if parts and s.running[j] for n, g in parts.items()]
    node, gpus = np.array(partly, dtype=np.int64).reshape(-1, 2).T
    floor = floor_under(s, np.append(s.stands.node[rows], node), np.append(s.stands.gpus[rows], gpus))
    for j, parts in found.items():
        if parts and not s.running[j]:
            for n, taken in parts.items():
                floor.take(n, taken)
    return floor


def _arrivals(program: Program, x: IntArray, chosen: Chosen) -> list[Arrival]:
    """Equal workers to be placed, job by job, the eldest first."""
    s, moves, sites = program.snapshot, program.columns.moves, program.index.sites
    job = np.fromiter(chosen, dtype=np.int64, count=len(chosen))
    at = np.fromiter(chosen.values(), dtype=np.int64, count=len(chosen))
    regular = moves.site[at] >= 0
    regular[regular] = sites.regular[moves.site[at[regular]]]
    order = np.lexsort((job, s.submitted_s[job]))
    order = order[regular[order]]
    job, at = job[order], at[order]
    site = moves.site[at]
    left = _left(program, x)
    wanted = []
    for j, way, worker, workers, pool in zip(
        job.tolist(), at.tolist(), sites.worker[site].tolist(), sites.workers[site].tolist(),
        sites.pools[sites.first[site]].tolist(), strict=True,
    ):  # fmt: skip
        if way not in left:
            wanted.append(Arrival(j, worker, workers, pool))
            continue
        need = workers
        for p in sorted(left[way], key=lambda p: -left[way][p]):
            here = min(need, left[way][p])
            if here:
                left[way][p] -= here
                need -= here
                wanted.append(Arrival(j, worker, here, p))
    return wanted


def _left(program: Program, x: IntArray) -> dict[int, dict[int, int]]:
    """Workers by pool of the gangs that go, by place of the move."""
    splits = program.columns.splits
    some = x[program.columns.moves.column[splits.move]] > 0
    found: dict[int, dict[int, int]] = defaultdict(dict)
    for move, pool, workers in zip(
        splits.move[some].tolist(), splits.pool[some].tolist(), x[splits.column[some]].tolist(), strict=True
    ):
        found[move][pool] = workers
    return found


def lower(program: Program, counted: NodeCounts, outcome: Outcome) -> dict[int, int]:
    """Values of the move columns, splits and node counts that stand for an outcome: a hint for the solver."""
    index, columns = program.index, program.columns
    moves, splits = columns.moves, columns.splits
    hint: dict[int, int] = dict.fromkeys(moves.column.tolist(), 0)
    hint.update(dict.fromkeys((c for _, _, c in columns.reserved), 0))
    hint.update(dict.fromkeys(splits.column.tolist(), 0))
    hint.update(dict.fromkeys(counted.column.tolist(), 0))
    split = _by_key((splits.move, splits.pool), splits.column)
    on = _by_key((counted.pool, counted.size, counted.node), counted.column)
    column, site, pool_of = moves.column.tolist(), moves.site.tolist(), index.pools.of_node.tolist()
    for at, places in _ways_gone(program, outcome):
        hint[column[at]] += 1
        if site[at] < 0 or not index.sites.listed[site[at]].regular:
            continue
        s = index.sites.listed[site[at]]
        for n, gpus in places:
            workers, p = gpus // s.worker, pool_of[n]
            if s.divided:
                hint[split[at, p]] += workers
            if (p, s.worker, n) in on:
                hint[on[p, s.worker, n]] += workers
    return hint


def _by_key(keys: tuple[IntArray, ...], columns: IntArray) -> dict[tuple[int, ...], int]:
    return dict(zip(zip(*(key.tolist() for key in keys), strict=True), columns.tolist(), strict=True))


def _ways_gone(program: Program, outcome: Outcome) -> Iterator[tuple[int, Places]]:
    """Place of the move that each job goes by under an outcome, and its nodes; jobs that go no way of theirs are left out."""
    index, moves, all_ = program.index, program.columns.moves, outcome.table
    unit_of = np.full(len(program.snapshot.jobs), -1)
    unit_of[index.jobs] = np.repeat(np.arange(len(index.eldest)), index.count)
    some = np.flatnonzero((unit_of[all_.job] >= 0) & (all_.gpus > 0))
    units, starts = unit_of[all_.job[some]], moves.starts()
    ways = list(zip(moves.kind.tolist(), moves.gpu_type.tolist(), moves.gpus.tolist(), strict=True))
    site, pool_of = moves.site.tolist(), index.pools.of_node.tolist()
    asked = zip(all_.move[some].tolist(), all_.gpu_type[some].tolist(), all_.gpus[some].tolist(), strict=True)
    for job, gone, begin, end in zip(
        all_.job[some].tolist(), asked, starts[units].tolist(), starts[units + 1].tolist(), strict=True
    ):
        places = outcome.decisions[job].places
        stays = {n for n, _ in program.snapshot.placement[job]} if gone[0] in IN_PLACE else set()
        new = [n for n, _ in places if n >= 0 and n not in stays]
        for at in range(begin, end):
            if ways[at] == gone and (site[at] < 0 or _stands(index.sites.listed[site[at]], new, pool_of)):
                yield at, places
                break


def _stands(site: Site, nodes: Sequence[int], pool_of: list[int]) -> bool:
    """Whether what arrives on some nodes arrives at a site."""
    return all(pool_of[n] in site.pools for n in nodes) if site.regular else bool(np.isin(nodes, site.nodes).all())
