"""The move columns, in bulk: what is alike of thousands of units is made by array, what is special of a few one by one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evenhand.outcome import Move
from evenhand.program import special
from evenhand.program.prices import Worths, scaled
from evenhand.program.variables import CODE, KEEP, Program, spans
from evenhand.shapes import BoolArray, IntArray
from evenhand.snapshot import Snapshot

FEW = 8
"""Units side by side that are quicker made one by one."""


def add_columns(program: Program) -> None:
    """Add every column of the round but those that single families need for themselves."""
    s, index = program.snapshot, program.index
    fixed = np.zeros(len(s.jobs), dtype=bool)
    fixed[list(program.fixed)] = True
    runs = s.running[index.eldest]
    stays = runs & fixed[index.eldest]
    _add_offsets(program, index.eldest[stays], index.eldest[runs & ~stays])
    odd = _is_special(program, runs) & ~stays
    units = np.flatnonzero(~stays)
    keeps = keeping(s)
    for part in np.split(units, np.flatnonzero(np.diff(odd[units])) + 1):
        if len(part) < FEW or odd[part[0]]:
            for unit in part.tolist():
                special.add_columns(program, unit)
        else:
            _add_alike(program, part, keeps[index.eldest[part]])
    _add_reservations(program)


def _add_offsets(program: Program, stay: IntArray, may_stop: IntArray) -> None:
    """What is lost if every running job stops, and what pinned ones bring, for they stay."""
    s, prices = program.snapshot, program.prices
    worth = prices.all_run(stay, s.held_type[stay], s.held[stay], np.zeros(len(stay), dtype=bool))
    for worths, jobs in ((worth, stay), (prices.all_stop(may_stop), may_stop)):
        program.model.offset += sum(scaled(worths.total * prices.factors(jobs)).tolist())


def _is_special(program: Program, runs: BoolArray) -> BoolArray:
    """Units that may be resized or repaired, or are placed node by node."""
    s, index = program.snapshot, program.index
    job = index.eldest
    irregular = np.append(0, np.cumsum(~index.sites.regular))
    by_node = irregular[index.choice + index.choices] > irregular[index.choice]
    return np.asarray(by_node | (runs & (s.hit[job] | (s.least[job] < s.size[job]))))


def keeping(snapshot: Snapshot) -> BoolArray:
    """Running jobs whose nodes all keep what they run, bool [J]."""
    s = snapshot
    lost = np.append(s.room <= 0, True)[s.stands.node]
    return np.asarray(s.running & (np.bincount(s.stands.job, lost, len(s.jobs)) == 0))


def _add_alike(program: Program, units: IntArray, keeps: BoolArray) -> None:
    """Columns of units that may only be kept (where their nodes keep them), or arrive by equal workers."""
    s, index, prices = program.snapshot, program.index, program.prices
    table = index.sites
    kept = keeps.astype(np.int64)
    ways = kept + index.choices[units]
    unit = np.repeat(units, ways)
    keep = spans(np.zeros(len(units), dtype=np.int64), ways) < np.repeat(kept, ways)
    site = spans(index.choice[units] - kept, ways)
    site[keep] = -1
    job, arrives = index.eldest[unit], ~keep
    gpu_type, gpus = s.held_type[job], s.held[job]
    gpu_type[arrives], gpus[arrives] = table.gpu_type[site[arrives]], table.size[site[arrives]]
    kind = np.where(keep, KEEP, np.where(s.pending[job], CODE[Move.START], CODE[Move.MIGRATE]))
    most = np.ones(len(unit), dtype=np.int64)
    most[arrives] = np.minimum(index.count[unit[arrives]], table.reach[site[arrives]])
    worth = prices.all_run(job, gpu_type, gpus, arrives) + _leaving(program, job, keep)
    pools = np.zeros(len(unit), dtype=np.int64)
    split = np.flatnonzero(arrives)[table.divided[site[arrives]]]
    pools[split] = table.pool_counts(site[split])
    place = np.cumsum(1 + pools) - 1 - pools
    count = len(unit) + int(pools.sum())
    upper, cost = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    upper[place], cost[place] = most, scaled(worth.total * prices.factors(job))
    part = spans(place[split] + 1, pools[split])
    pool = table.pools[spans(table.first[site[split]], pools[split])]
    upper[part] = _most_workers(program, np.repeat(table.worker[site[split]], pools[split]), pool)
    at, said = len(program.columns.moves), np.full(count, -1)
    said[part] = pool
    name = _namer(program, at, np.repeat(np.arange(len(unit)), 1 + pools), said)
    first = program.model.columns(count, 0, upper, cost, name)
    program.columns.moves.extend(first + place, unit, kind, gpu_type, gpus, site)
    program.columns.splits.extend(np.repeat(at + split, pools[split]), pool, first + part)


def _leaving(program: Program, job: IntArray, keep: BoolArray) -> Worths:
    """What a running job is spared that does not stop, less what it pays that moves."""
    s, prices = program.snapshot, program.prices
    runs = s.running[job]
    away = prices.all_move_away(job).where(runs & ~keep)
    return away + (-prices.all_stop(job)).where(runs)


def _most_workers(program: Program, worker: IntArray, pool: IntArray) -> IntArray:
    """Workers of a size that a pool could hold if it were empty."""
    room, nodes = program.snapshot.room, program.index.pools.nodes
    pairs, which = np.unique(np.stack([worker, pool]), axis=1, return_inverse=True)
    most = [int((room[nodes[p]] // w).sum()) for w, p in pairs.T.tolist()]
    return np.array(most, dtype=np.int64)[which.reshape(-1)]


def _namer(program: Program, first: int, owner: IntArray, pool: IntArray) -> Callable[[int], str]:
    """Names of columns: each one's move, counted from `first` on, and its pool, -1 where it is the move itself."""
    names: list[str] = []

    def name(at: int) -> str:
        if not names:  # some are asked for: all soon will be
            moves = program.move_names(first, first + int(owner[-1]) + 1)
            names.extend(
                moves[k] if p < 0 else f"workers[{moves[k]} pool {p}]"
                for k, p in zip(owner.tolist(), pool.tolist(), strict=True)
            )
        return names[at]

    return name


def _add_reservations(program: Program) -> None:
    """Rule O8: whole pending gangs on GPUs that end within the restart cost."""
    s, index = program.snapshot, program.index
    soon = ends_soon(s)
    ending = np.unique(s.held_type[soon & s.live])
    ending = ending[ending >= 0]
    if not ending.size:
        return
    pending = len(index.pending)
    job = index.eldest[:pending]
    may = (s.budgeted[job] & (s.size[job] <= _least_limit(s)[s.group[job]]))[:, None] & s.full_fit[job[:, None], ending]
    unit, kind = np.nonzero(may)
    jobs, types = job[unit], ending[kind]
    first = program.model.columns(
        len(unit), 0, index.count[unit], 0, lambda k: f"reserve[{s.jobs[int(jobs[k])].id} {s.types[int(types[k])]}]"
    )
    program.columns.reserved += [
        (index.pending[u], t, first + k) for k, (u, t) in enumerate(zip(unit.tolist(), types.tolist(), strict=True))
    ]


def ends_soon(snapshot: Snapshot) -> BoolArray:
    """Jobs that ran before this instant and end by themselves within the restart cost (rule O8), bool [J]."""
    s = snapshot
    before = s.live & s.running & (s.started_s < s.now_s)
    return np.asarray(before & (s.left_s > 0) & (s.left_s <= s.policy.restart_cost_s))


def _least_limit(snapshot: Snapshot) -> IntArray:
    """The least limit above the jobs of each group, its own included, int [G]."""
    tree = snapshot.tree
    none = np.iinfo(np.int64).max
    own = [none if group.max_gpus is None else group.max_gpus for group in tree.groups]
    return np.array([min(own[c] for c in path) for path in tree.path], dtype=np.int64)
