"""What groups can trade: rooms that waiting jobs take, alike in every row of capacity, and what each is worth where it goes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.gangs_below import in_grains_held
from evenhand.outcome import Move
from evenhand.program.blocks import Blocks
from evenhand.program.prices import SCALE
from evenhand.program.shared import Shared
from evenhand.program.variables import CODE, Program
from evenhand.shapes import BoolArray, IntArray

FloatArray = npt.NDArray[np.float64]
MOST_ROOMS = 20
MOST_CELLS = 4_000_000
"""Kinds of room that are traded, the most frequent ones: so many, and together with leaves no more cells than that."""


@dataclass(frozen=True, eq=False)
class Market:
    """Ways of waiting jobs that take a room which is traded, by leaf; L leaves, W ways, S rooms, Q rows of the tree.

    Attributes
    ----------
    leaf, unit, column, gain, room : of each way, int [W]: block, unit, column, grains of the leaf's need, kind of room.
    worth : of one job that goes it, beside leaf and tree, throughput units, float [W].
    first : first way of each leaf, int [L + 1].
    pair_to, pair_from, pair_first : two ways of one unit, the one to go and the one to leave, by leaf, int [P], [P], [L + 1].
    charge, gpus : grains that a room counts where a tree stands above, and its GPUs, int [S]; short_cost : of a grain of each
        leaf's need, float [L].
    tree, limits : rows above the leaves: what is owed there, and what may be held at most.
    """

    blocks: Blocks
    leaf: IntArray
    unit: IntArray
    column: IntArray
    gain: IntArray
    room: IntArray
    worth: FloatArray
    first: IntArray
    pair_to: IntArray
    pair_from: IntArray
    pair_first: IntArray
    charge: IntArray
    gpus: IntArray
    short_cost: FloatArray
    tree: Above
    limits: Above


@dataclass(frozen=True, eq=False)
class Above:
    """Rows above leaves: shortfalls of guarantees and inner groups (O1, O2), or limits (L1).

    Q rows, and one that stands for none.

    Attributes
    ----------
    of : rows above each leaf, int [L, depth], Q: none.
    bound : grains that should be held, or GPUs that may, int [Q + 1]; weight : of a grain short, float [Q + 1].
    row, column, value : what counts there, one entry for each way and row, int [entries].
    """

    of: IntArray
    bound: IntArray
    weight: FloatArray
    row: IntArray
    column: IntArray
    value: IntArray

    def held(self, x: IntArray) -> IntArray:
        """What a point holds in each row, int [Q + 1]."""
        return np.bincount(self.row, self.value * x[self.column], len(self.bound)).astype(np.int64)


def market_of(program: Program, shared: Shared, dual: FloatArray) -> Market:
    """Find what can be traded.

    Parameters
    ----------
    dual : prices of shared rows, float [r]: of these only what is neither capacity nor tree is priced.
    """
    b, arrays, moves = shared.blocks, shared.arrays, program.columns.moves
    entry_row = arrays.entry_row
    starts = np.zeros(arrays.shape[1], dtype=bool)
    starts[moves.column[moves.kind == CODE[Move.START]]] = True
    starts[moves.column[program.columns.splits.move]] = False
    starts[[column for spread in program.columns.spreads for _, _, column in spread.sizes]] = False
    way = np.flatnonzero(starts[b.column])
    place = np.full(arrays.shape[1], -1, dtype=np.int64)
    place[b.column[way]] = np.arange(len(way))
    tree, valued = np.zeros(arrays.shape[0], dtype=bool), np.zeros(arrays.shape[0], dtype=bool)
    tree[program.columns.inner_rows] = True
    limit = np.zeros(arrays.shape[0], dtype=bool)
    limit[program.columns.limit_rows] = True
    valued[entry_row[b.shared_column[arrays.columns] & (arrays.cost[arrays.columns] != 0)]] = True
    capacity = b.shared_row & ~valued
    for tight in program.columns.tight_rows:
        capacity[tight] = True
    capacity &= ~limit
    entry = np.flatnonzero(place[arrays.columns] >= 0)
    at, row, value = place[arrays.columns[entry]], entry_row[entry], arrays.values[entry]
    charge = _charged(program)[b.column[way]]
    takes = np.zeros(arrays.shape[1], dtype=np.int64)
    takes[moves.column] = moves.gpus
    room, kinds = _rooms(at, row, value, capacity[row], np.stack([charge, takes[b.column[way]]]), b.count)
    worth = arrays.cost[b.column[way]] / SCALE
    priced = (valued & ~tree)[row]
    np.subtract.at(worth, at[priced], (value * dual[row])[priced])
    keep = np.flatnonzero(room >= 0)
    way, leaf = way[keep], b.way_block[way[keep]]
    to, off = _pairs(b.way_unit[way])
    order = np.argsort(leaf[to], kind="stable")
    to, off = to[order], off[order]
    every = np.arange(b.count + 1)
    return Market(
        blocks=b, leaf=leaf, unit=b.way_unit[way], column=b.column[way], gain=b.gain[way], room=room[keep],
        worth=worth[keep], first=np.searchsorted(leaf, every), pair_to=to, pair_from=off,
        pair_first=np.searchsorted(leaf[to], every), charge=kinds[0], gpus=kinds[1], short_cost=b.short_cost / SCALE,
        tree=_above(shared, tree, entry_row, arrays.row_lower), limits=_above(shared, limit, entry_row, arrays.row_upper),
    )  # fmt: skip


def _charged(program: Program) -> IntArray:
    """Grains that a job going each way is charged, int [c]; counted also where no row of the tree does: groups with such a row
    trade with groups that have none (at the top, or short of nothing).
    """
    s, moves = program.snapshot, program.columns.moves
    found = np.zeros(program.model.column_count, dtype=np.int64)
    mine = np.flatnonzero(s.budgeted[moves.job])
    found[moves.column[mine]] = in_grains_held(moves.gpus[mine] * s.rate_milli[moves.gpu_type[mine]])
    return found


def _above(shared: Shared, tree: BoolArray, entry_row: IntArray, bound: IntArray) -> Above:
    """Read rows above leaves."""
    arrays, b = shared.arrays, shared.blocks
    rows = np.flatnonzero(tree)
    number = np.full(arrays.shape[0], len(rows), dtype=np.int64)
    number[rows] = np.arange(len(rows))
    entry = np.flatnonzero(tree[entry_row])
    own = b.shared_column[arrays.columns[entry]]
    weight = np.zeros(len(rows) + 1)
    weight[number[entry_row[entry[own]]]] = -arrays.cost[arrays.columns[entry[own]]] / SCALE
    row, column = number[entry_row[entry[~own]]], arrays.columns[entry[~own]]
    leaf_of = np.full(arrays.shape[1], -1, dtype=np.int64)
    leaf_of[b.column] = b.way_block
    leaf = leaf_of[column]
    known = leaf >= 0
    leaf, climbs = np.divmod(np.unique(leaf[known] * (len(rows) + 1) + row[known]), len(rows) + 1)
    begin = np.searchsorted(leaf, np.arange(b.count + 1))
    above = np.full((b.count, max(int(np.diff(begin).max(initial=0)), 1)), len(rows), dtype=np.int64)
    above[leaf, np.arange(len(leaf)) - begin[leaf]] = climbs
    return Above(above, np.append(bound[rows], 0), weight, row, column, arrays.values[entry[~own]])


def _rooms(
    at: IntArray, row: IntArray, value: IntArray, counts: BoolArray, same: IntArray, leaves: int
) -> tuple[IntArray, IntArray]:
    """Kind of room that each way takes, int [W], -1: none that is traded; and what is the same of all of a kind, int [2, S].

    Ways are of one kind if they have the same coefficients in rows of capacity and agree in `same`, int [2, W]: told by two
    random sums, as what they would be confused with is found out when the point is completed.
    """
    random = np.random.Generator(np.random.PCG64(0)).integers(1, 2**31, (2, int(row.max(initial=0)) + 1))
    sums = np.zeros((4, same.shape[1]), dtype=np.int64)
    for k in range(2):
        np.add.at(sums[k], at[counts], value[counts] * random[k][row[counts]])
    sums[2:] = same
    kinds, room, often = np.unique(sums, axis=1, return_inverse=True, return_counts=True)
    room = room.reshape(-1)
    most = max(1, min(MOST_ROOMS, int((MOST_CELLS / max(leaves, 1)) ** 0.5) - 1))
    kept = np.sort(np.argsort(-often, kind="stable")[:most])
    new = np.full(len(often), -1, dtype=np.int64)
    new[kept] = np.arange(len(kept))
    return new[room], kinds[2:, kept]


def _pairs(unit: IntArray) -> tuple[IntArray, IntArray]:
    """Two ways of one unit, in either order: those to go, those to leave."""
    end = np.searchsorted(unit, unit, side="right")
    here = np.arange(len(unit))
    to, off = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for further in range(1, int((end - here).max(initial=1))):
        some = here[here + further < end]
        to += [some, some + further]
        off += [some + further, some]
    return np.concatenate(to), np.concatenate(off)
