"""C1: no node over its room, kept exact without a column per job and node where sizes allow it.

Per pool and worker size s, where all sizes in the pool divide one another and no gang is placed node by node (slot rows):
    sum over workers of size q >= s of floor(q/s) x <= sum over nodes n of floor(free_n / s),
free_n = room less what is kept. This is necessary for any sizes and, for sizes that divide one another, sufficient: the
largest are placed first, on any node with room. floor(free_n / s) is linear in the keep bits where at most one kept job on the
node has a size that s does not divide; otherwise an integer u[n, s] stands for it.
Other pools get a row per node: sum_s s z[s, n] + kept + spread GPUs <= room_n, and sum_n z[s, n] = workers of size s there.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np

from evenhand.program.variables import Program, spans
from evenhand.shapes import BoolArray, IntArray
from evenhand.solvers.linear_model import FREE


@dataclass(frozen=True, eq=False)
class NodeCounts:
    """Columns that count workers of a size on one node; pool, size, node, column: int [Z]."""

    pool: IntArray
    size: IntArray
    node: IntArray
    column: IntArray


@dataclass(frozen=True, eq=False)
class Held:
    """What columns hold on nodes, as rows by pool (-1: none), then node.

    Attributes
    ----------
    pool, node, column, gpus : int [H]; a column counts once for so many GPUs.
    """

    pool: IntArray
    node: IntArray
    column: IntArray
    gpus: IntArray

    def of_pool(self, pool: int) -> Held:
        """The rows of one pool."""
        return self[slice(*np.searchsorted(self.pool, [pool, pool + 1]))]

    def __getitem__(self, some: slice | BoolArray | IntArray) -> Held:
        return Held(self.pool[some], self.node[some], self.column[some], self.gpus[some])

    def then(self, other: Held) -> Held:
        """These rows, and on every node after them others."""
        all_ = Held(*(np.concatenate([getattr(self, f.name), getattr(other, f.name)]) for f in fields(self)))
        return all_[np.lexsort((all_.node, all_.pool))]


@dataclass(frozen=True, eq=False)
class Brought:
    """Workers that columns bring to pools, by pool, then column; all int [B]."""

    pool: IntArray
    size: IntArray
    column: IntArray
    workers: IntArray

    def of_pool(self, pool: int) -> Brought:
        """What is brought to one pool."""
        here = slice(*np.searchsorted(self.pool, [pool, pool + 1]))
        return Brought(self.pool[here], self.size[here], self.column[here], self.workers[here])


def applies(program: Program) -> bool:
    """Whether anything can hold GPUs."""
    return bool(program.columns.moves)


def free_after_fixed(program: Program) -> IntArray:
    """Room of each node less what fixed jobs hold, int [n]."""
    s = program.snapshot
    fixed = np.zeros(len(s.jobs), dtype=bool)
    fixed[list(program.fixed)] = True
    stands = np.flatnonzero(fixed[s.stands.job])
    free = s.room.copy()
    np.subtract.at(free, s.stands.node[stands], s.stands.gpus[stands])
    return free


def held_in_place(program: Program) -> Held:
    """What kept jobs go on holding, by move."""
    node, move, gpus = program.columns.moves.held_rows()
    pool = program.index.pools.of_node[node]
    order = np.argsort(pool, kind="stable")
    return Held(pool[order], node[order], program.columns.moves.column[move[order]], gpus[order])


def spread_on_nodes(program: Program) -> Held:
    """What gangs hold that are placed node by node."""
    spreads = program.columns.spreads
    node = np.concatenate([np.zeros(0, dtype=np.int64), *(spread.node for spread in spreads)])
    column = np.concatenate([np.zeros(0, dtype=np.int64), *(spread.amount for spread in spreads)])
    block = np.repeat(np.array([p.block for p in spreads], dtype=np.int64), [len(p.node) for p in spreads])
    return Held(program.index.pools.of_node[node], node, column, block)


def workers_by_pool(program: Program) -> Brought:
    """How many workers each column brings to which pool."""
    moves, splits, sites = program.columns.moves, program.columns.splits, program.index.sites
    come = np.flatnonzero(moves.site >= 0)
    come = come[sites.regular[moves.site[come]] & ~sites.divided[moves.site[come]]]
    site = moves.site[come]
    pool = np.concatenate([sites.pools[sites.first[site]], splits.pool])
    size = np.concatenate([sites.worker[site], sites.worker[moves.site[splits.move]]])
    column = np.concatenate([moves.column[come], splits.column])
    workers = np.concatenate([sites.workers[site], np.ones(len(splits.column), dtype=np.int64)])
    order = np.lexsort((column, pool))
    return Brought(pool[order], size[order], column[order], workers[order])


def node_by_node(program: Program, brought: Brought) -> set[int]:
    """Pools that need a row per node: odd sizes, or spread gangs."""
    pools = set(np.unique(spread_on_nodes(program).pool).tolist()) - {-1}
    for p in np.unique(brought.pool).tolist():
        if any(b % a for a, b in pairwise(np.unique(brought.of_pool(p).size).tolist())):
            pools.add(p)
    return pools


def add_rows(program: Program) -> NodeCounts:
    """Add all capacity rows; returns the columns that count workers on single nodes."""
    free, brought = free_after_fixed(program), workers_by_pool(program)
    kept, spread = held_in_place(program), spread_on_nodes(program)
    exact, held = node_by_node(program, brought), kept.then(spread)
    counted = [_columns(np.zeros(0, dtype=np.int64), 0, 0, 0)]
    for p, nodes in enumerate(program.index.pools.nodes):
        if p in exact:
            counts = _rows_by_node(program, p, nodes, free, brought.of_pool(p))
            _node_rows(program, held.of_pool(p).then(Held(counts.pool, counts.node, counts.column, counts.size)), free)
            counted.append(counts)
        else:
            _slot_rows(program, p, nodes, free, kept.of_pool(p), brought.of_pool(p))
    rest = held[~np.isin(held.pool, list(exact))]
    _node_rows(program, rest[np.argsort(rest.node, kind="stable")], free)
    return NodeCounts(*(np.concatenate([getattr(c, f.name) for c in counted]) for f in fields(NodeCounts)))


def _columns(nodes: IntArray, pool: int, size: int, first: int) -> NodeCounts:
    """Columns from `first` on that count workers on nodes."""
    count = len(nodes)
    return NodeCounts(np.full(count, pool), np.full(count, size), nodes, first + np.arange(count))


def _node_rows(program: Program, held: Held, free: IntArray) -> None:
    """sum of GPUs on a node <= free, for nodes where it can be exceeded; rows of a node side by side."""
    if not held.node.size:
        return
    model, names = program.model, program.snapshot.nodes
    start = np.flatnonzero(np.append(True, held.node[1:] != held.node[:-1]))
    node, length = held.node[start], np.diff(np.append(start, len(held.node)))
    binds = np.add.reduceat(model.upper_of(held.column) * held.gpus, start) > free[node]
    some = np.repeat(binds, length)
    node = node[binds]
    model.rows(
        length[binds], held.column[some], held.gpus[some], -FREE, free[node],
        lambda k: f"C1[{names[int(node[k])].name}]",
    )  # fmt: skip


def _rows_by_node(program: Program, pool: int, nodes: IntArray, free: IntArray, brought: Brought) -> NodeCounts:
    """Columns that count workers on nodes, and rows that say all are somewhere."""
    names, model = program.snapshot.nodes, program.model
    found = [_columns(np.zeros(0, dtype=np.int64), 0, 0, 0)]
    for size in np.unique(brought.size).tolist():
        on = nodes[free[nodes] >= size]
        first = model.columns(
            len(on), 0, free[on] // size, 0,
            lambda k, on=on, q=size: f"workers of {q} on {names[int(on[k])].name}",  # type: ignore[misc]
        )  # fmt: skip
        found.append(_columns(on, pool, size, first))
        of = brought.size == size
        model.rows(
            [len(on) + int(of.sum())], np.concatenate([found[-1].column, brought.column[of]]),
            np.concatenate([np.ones(len(on), dtype=np.int64), -brought.workers[of]]), 0, 0,
            lambda _, q=size: f"C1[pool {pool} workers of {q}]",  # type: ignore[misc]
        )  # fmt: skip
    return NodeCounts(*(np.concatenate([getattr(c, f.name) for c in found]) for f in fields(NodeCounts)))


def _slot_rows(program: Program, pool: int, nodes: IntArray, free: IntArray, held: Held, brought: Brought) -> None:
    sizes, first_seen = np.unique(brought.size, return_index=True)
    rank = np.argsort(np.argsort(first_seen))[np.searchsorted(sizes, brought.size)]
    order = np.argsort(rank, kind="stable")  # sizes in the order in which they first come
    size_of, column_of, workers_of = brought.size[order], brought.column[order], brought.workers[order]
    room, place = free[nodes], np.searchsorted(nodes, held.node)
    for size in sizes.tolist():
        odd = np.bincount(place[held.gpus % size > 0], minlength=len(nodes)) > 1
        slots, plain = room // size, ~odd[place]
        columns, values = held.column[plain], (slots[place] - (room[place] - held.gpus) // size)[plain]
        if odd.any():
            at = np.flatnonzero(odd)
            counters = _counted_slots(program, nodes[at], size, free, held[~plain])
            order = np.argsort(np.concatenate([place[plain], at]), kind="stable")
            columns = np.concatenate([columns, counters])[order]
            values = np.concatenate([values, np.full(len(at), -1)])[order]
        columns, values = _merged(columns[values != 0], values[values != 0])
        larger = size_of >= size
        columns = np.concatenate([columns, column_of[larger]])
        values = np.concatenate([values, workers_of[larger] * (size_of[larger] // size)])
        program.model.rows(
            [len(columns)], columns, values, -FREE, int(slots[~odd].sum()),
            lambda _, q=size: f"C1[pool {pool} slots of {q}]",  # type: ignore[misc]
        )  # fmt: skip


def _merged(columns: IntArray, values: IntArray) -> tuple[IntArray, IntArray]:
    """Each column once, where it first comes, with the sum of its values."""
    known, first, which = np.unique(columns, return_index=True, return_inverse=True)
    if len(known) == len(columns):
        return columns, values
    sums = np.zeros(len(known), dtype=np.int64)
    np.add.at(sums, which.reshape(-1), values)
    order = np.argsort(first)
    return known[order], sums[order]


def _counted_slots(program: Program, nodes: IntArray, size: int, free: IntArray, held: Held) -> IntArray:
    """Columns that count slots on nodes with several odd kept jobs, no more than are left there and as each leaves."""
    names, model = program.snapshot.nodes, program.model
    slots = free[nodes] // size
    counters = model.columns(
        len(nodes), 0, slots, 0, lambda k: f"slots of {size} on {names[int(nodes[k])].name}"
    ) + np.arange(len(nodes))
    many = np.searchsorted(held.node, nodes, side="right") - np.searchsorted(held.node, nodes)
    of = np.repeat(np.arange(len(nodes)), many)
    place = spans(np.zeros(len(nodes), dtype=np.int64), many)
    rows = np.cumsum(1 + many) - 1 - many  # a node has a row for its room, then one for each job kept there
    begin = np.cumsum(1 + 3 * many) - 1 - 3 * many
    columns, values = np.zeros((2, len(nodes) + 3 * len(of)), dtype=np.int64)
    columns[begin], values[begin] = counters, size
    here = begin[of] + 1 + place
    columns[here], values[here] = held.column, held.gpus
    pair = begin[of] + 1 + many[of] + 2 * place
    columns[pair], values[pair] = counters[of], 1
    columns[pair + 1], values[pair + 1] = held.column, slots[of] - (free[held.node] - held.gpus) // size
    length, upper = np.full(len(nodes) + len(of), 2), np.repeat(slots, 1 + many)
    length[rows], upper[rows] = 1 + many, free[nodes]
    node = np.repeat(nodes, 1 + many)
    first = model.rows(length, columns, values, -FREE, upper, lambda k: f"C1[{names[int(node[k])].name}]")
    program.columns.tight_rows.append(first + np.delete(np.arange(len(length)), rows))
    return counters
