"""Better points by trades of room between groups: one takes room that another gives, or they change what they have.

What neighbourhoods are slow at: the GPUs of an inner group should add up to what it is owed to a sixteenth, and every group
waits for another to give what it lacks. A trade leaves each row of capacity as it is (both jobs count alike there), so it is
judged by the two leaves, the rows of the tree above them, and prices for what else they stand in (envy, handovers).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.outcome import Move
from evenhand.program.master import Shared
from evenhand.program.prices import SCALE
from evenhand.program.variables import CODE, Program, spans
from evenhand.shapes import IntArray

FloatArray = npt.NDArray[np.float64]
MOST_PASSES = 60
MOST_ROOMS = 20
MOST_CELLS = 4_000_000
"""Kinds of room that are traded, the most frequent ones: so many, and together with leaves no more cells than that."""
MOST_ASKED = 400
"""Trades looked at in a pass, the best ones."""
LEAST = 1e-6
NEVER = -1e18


@dataclass(frozen=True, eq=False)
class _Sides:
    """What every leaf would gain by taking one room and giving another, each perhaps none; L leaves, S rooms.

    Attributes
    ----------
    value : beside the tree above it, float [L, S + 1, S + 1]; takes, gives : the ways that do it, int, -1: none.
    """

    value: FloatArray
    takes: IntArray
    gives: IntArray


class Trades:
    """Trades between the leaves of a program; W ways of waiting jobs, Q rows of the tree.

    Parameters
    ----------
    dual : prices of shared rows, float [r]: of these only what is neither capacity nor tree is priced.
    """

    def __init__(self, program: Program, shared: Shared, dual: FloatArray) -> None:
        self._blocks = b = shared.blocks
        arrays, moves = shared.arrays, program.columns.moves
        entry_row = np.repeat(np.arange(arrays.shape[0]), np.diff(arrays.starts))
        starts = np.zeros(arrays.shape[1], dtype=bool)
        starts[moves.column[moves.kind == CODE[Move.START]]] = True
        starts[moves.column[program.columns.splits.move]] = False
        starts[[column for spread in program.columns.spreads for _, _, column in spread.sizes]] = False
        way = np.flatnonzero(starts[b.column])
        place = np.full(arrays.shape[1], -1, dtype=np.int64)
        place[b.column[way]] = np.arange(len(way))
        tree = np.zeros(arrays.shape[0], dtype=bool)
        tree[program.columns.inner_rows] = True
        valued = np.zeros(arrays.shape[0], dtype=bool)
        own = b.shared_column[arrays.columns] & (arrays.cost[arrays.columns] != 0)
        valued[entry_row[own]] = True
        capacity = b.shared_row & ~valued
        for tight in program.columns.tight_rows:
            capacity[tight] = True
        entry = np.flatnonzero(place[arrays.columns] >= 0)
        at, row, value = place[arrays.columns[entry]], entry_row[entry], arrays.values[entry]

        self._read_tree(program, shared, tree, entry_row)
        climbs = tree[row]
        charge = np.zeros(len(way), dtype=np.int64)
        np.maximum.at(charge, at[climbs], value[climbs])
        room, self._charge = _rooms(len(way), at, row, value, capacity[row], charge, b.count)
        keep = np.flatnonzero(room >= 0)
        worth = arrays.cost[b.column[way]] / SCALE
        priced = (valued & ~tree)[row]
        np.subtract.at(worth, at[priced], (value * dual[row])[priced])
        self._room, self._worth = room[keep], worth[keep]
        way = way[keep]
        self._column, self._unit, self._gain = b.column[way], b.way_unit[way], b.gain[way]
        self._leaf = b.way_block[way]
        self._short_cost = b.short_cost / SCALE
        self._first = np.searchsorted(self._leaf, np.arange(b.count + 1))
        self._pair_to, self._pair_from = _pairs(self._unit)
        order = np.argsort(self._leaf[self._pair_to], kind="stable")
        self._pair_to, self._pair_from = self._pair_to[order], self._pair_from[order]
        self._pair_first = np.searchsorted(self._leaf[self._pair_to], np.arange(b.count + 1))

    def _read_tree(self, program: Program, shared: Shared, tree: npt.NDArray[np.bool_], entry_row: IntArray) -> None:
        """Rows of the tree above each leaf, int [L, depth] (Q: none), what a grain short weighs there, and needs, [Q + 1]."""
        arrays, b = shared.arrays, shared.blocks
        rows = np.flatnonzero(tree)
        number = np.full(arrays.shape[0], len(rows), dtype=np.int64)
        number[rows] = np.arange(len(rows))
        entry = np.flatnonzero(tree[entry_row])
        short = entry[b.shared_column[arrays.columns[entry]]]
        self._weight = np.zeros(len(rows) + 1)
        self._weight[number[entry_row[short]]] = -arrays.cost[arrays.columns[short]] / SCALE
        self._need = np.append(arrays.row_lower[rows], 0)
        ways = entry[~b.shared_column[arrays.columns[entry]]]
        self._tree_row, self._tree_column = number[entry_row[ways]], arrays.columns[ways]
        self._tree_value = arrays.values[ways]
        leaf_of = np.full(arrays.shape[1], -1, dtype=np.int64)
        leaf_of[b.column] = b.way_block
        leaf = leaf_of[self._tree_column]
        known = leaf >= 0
        pairs = np.unique(leaf[known] * (len(rows) + 1) + self._tree_row[known])
        leaf, row = np.divmod(pairs, len(rows) + 1)
        begin = np.searchsorted(leaf, np.arange(b.count + 1))
        depth = int(np.diff(begin).max(initial=0))
        self._above = np.full((b.count, max(depth, 1)), len(rows), dtype=np.int64)
        self._above[leaf, np.arange(len(leaf)) - begin[leaf]] = row

    def improve(self, x: IntArray, may_go_on: Callable[[], bool]) -> IntArray:
        """The ways of a point after trades that each gain something, int [c]; shared columns are left as they were.

        Parameters
        ----------
        may_go_on : asked before every pass over all leaves.
        """
        if not len(self._column):
            return x
        state = _State(self, x)
        for _ in range(MOST_PASSES):
            if not may_go_on() or not state.trade():
                break
        return state.point(x)


class _State:
    """One point in the making, and what trades would bring."""

    def __init__(self, market: Trades, x: IntArray) -> None:
        self._m, b = market, market._blocks
        taken = x[b.column]
        self._x = x[market._column]
        self._used = np.bincount(b.way_unit, taken, len(b.most)).astype(np.int64)
        self._use = np.bincount(b.way_block, b.gain * taken, b.count).astype(np.int64)
        rows = len(market._need)
        self._held = np.bincount(market._tree_row, market._tree_value * x[market._tree_column], rows).astype(np.int64)
        rooms = len(market._charge)
        shape = (b.count, rooms + 1, rooms + 1)
        self._sides = _Sides(np.zeros(shape), np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64))
        charge = np.append(market._charge, 0)
        steps, place = np.unique(charge[:, None] - charge[None, :], return_inverse=True)
        self._steps, self._step = steps, place.reshape(rooms + 1, rooms + 1)
        self._changed = np.arange(b.count)

    def point(self, x: IntArray) -> IntArray:
        """The point, with other columns as in x."""
        y = x.copy()
        y[self._m._column] = self._x
        return y

    def trade(self) -> bool:
        """Make the best trades between leaves that differ; whether there was any."""
        m = self._m
        if len(self._changed):
            self._look(self._changed)
        short = (m._need - self._held)[:, None]
        lifts = m._weight[:, None] * (np.maximum(short, 0) - np.maximum(short - self._steps, 0))
        above = lifts[m._above].sum(axis=1)
        value = self._sides.value + above[:, self._step]
        changed: list[int] = []
        for a, b, takes, gives in self._offers(value):
            if a in changed or b in changed:
                continue
            alone = float(self._sides.value[a, takes, gives] + self._sides.value[b, gives, takes])
            if alone + self._lift(a, b, takes, gives) > LEAST:
                self._apply(a, takes, gives)
                self._apply(b, gives, takes)
                changed += [a, b]
        self._changed = np.array(sorted(changed), dtype=np.int64)
        return bool(changed)

    def _offers(self, value: FloatArray) -> list[tuple[int, int, int, int]]:
        """Trades that seem to gain, the best first: who takes and who gives the first room, that room, the one in return."""
        rooms = value.shape[1]
        first = value.argmax(axis=0)
        best = np.take_along_axis(value, first[None], 0)[0]
        rest = value.copy()
        np.put_along_axis(rest, first[None], NEVER, 0)
        second = rest.argmax(axis=0)
        next_best = np.take_along_axis(rest, second[None], 0)[0]
        takes, gives = np.triu_indices(rooms, 1)
        found = []
        for leaf, worth, other, there in (
            (first, best, first, best), (second, next_best, first, best), (first, best, second, next_best)
        ):  # fmt: skip
            gain = worth[takes, gives] + there[gives, takes]
            fine = np.flatnonzero((gain > LEAST) & (leaf[takes, gives] != other[gives, takes]))
            found.append(
                np.stack([-gain[fine], leaf[takes, gives][fine], other[gives, takes][fine], takes[fine], gives[fine]])
            )
        table = np.concatenate(found, axis=1)
        order = np.lexsort(table[::-1])[:MOST_ASKED]
        return [(int(a), int(b), int(s), int(t)) for _, a, b, s, t in table[:, order].T]

    def _lift(self, a: int, b: int, takes: int, gives: int) -> float:
        """What a trade changes at the rows of the tree, as they are now."""
        m = self._m
        step = int(self._steps[self._step[takes, gives]])
        change: dict[int, int] = {}
        for leaf, sign in ((a, 1), (b, -1)):
            for row in m._above[leaf].tolist():
                change[row] = change.get(row, 0) + sign * step
        total = 0.0
        for row, more in change.items():
            short = int(m._need[row] - self._held[row])
            total += float(m._weight[row]) * (max(short, 0) - max(short - more, 0))
        return total

    def _apply(self, leaf: int, takes: int, gives: int) -> None:
        m, sides = self._m, self._sides
        for way, sign in ((int(sides.takes[leaf, takes, gives]), 1), (int(sides.gives[leaf, takes, gives]), -1)):
            if way >= 0:
                self._x[way] += sign
                self._used[m._unit[way]] += sign
                self._use[leaf] += sign * m._gain[way]
        for row in m._above[leaf].tolist():
            self._held[row] += self._steps[self._step[takes, gives]]

    def _look(self, leaves: IntArray) -> None:
        """Work out anew what some leaves would gain by taking and giving."""
        m, b = self._m, self._m._blocks
        rooms, count = len(m._charge), len(leaves)
        place = np.zeros(b.count, dtype=np.int64)
        place[leaves] = np.arange(count)
        use, need, weight = self._use[leaves], b.need[leaves], m._short_cost[leaves]
        short = np.maximum(need - use, 0)
        over = np.maximum(use - need, 0)
        way = spans(m._first[leaves], m._first[leaves + 1] - m._first[leaves])
        at = place[m._leaf[way]]
        gain, worth, key = m._gain[way], m._worth[way], at * rooms + m._room[way]
        more = np.flatnonzero(self._used[m._unit[way]] < b.most[m._unit[way]])
        takes = _best(key[more], (worth + weight[at] * np.minimum(short[at], gain))[more], count * rooms)
        takes = np.where(takes >= 0, way[more[takes]] if len(more) else -1, -1).reshape(count, rooms)
        less = np.flatnonzero(self._x[way] > 0)
        gives = _best(key[less], (-worth - weight[at] * np.maximum(gain - over[at], 0))[less], count * rooms)
        gives = np.where(gives >= 0, way[less[gives]] if len(less) else -1, -1).reshape(count, rooms)
        none = np.full((count, 1), -1)
        takes, gives = np.concatenate([takes, none], axis=1), np.concatenate([gives, none], axis=1)
        able_t, able_g = takes >= 0, gives >= 0
        able_t[:, -1] = able_g[:, -1] = True
        got = np.where(takes >= 0, m._gain[takes], 0)[:, :, None] - np.where(gives >= 0, m._gain[gives], 0)[:, None, :]
        brings = np.where(able_t, np.where(takes >= 0, m._worth[takes], 0.0), NEVER)
        costs = np.where(able_g, np.where(gives >= 0, -m._worth[gives], 0.0), NEVER)
        value = brings[:, :, None] + costs[:, None, :]
        lack = (need - use)[:, None, None]
        value += weight[:, None, None] * (np.maximum(lack, 0) - np.maximum(lack - got, 0))
        takes = np.broadcast_to(takes[:, :, None], value.shape).copy()
        gives = np.broadcast_to(gives[:, None, :], value.shape).copy()
        self._swap_in_units(leaves, place, value, takes, gives)
        self._sides.value[leaves], self._sides.takes[leaves], self._sides.gives[leaves] = value, takes, gives

    def _swap_in_units(
        self, leaves: IntArray, place: IntArray, value: FloatArray, takes: IntArray, gives: IntArray
    ) -> None:
        """Where the same job goes another way instead, though all of its unit go already."""
        m, b = self._m, self._m._blocks
        pair = spans(m._pair_first[leaves], m._pair_first[leaves + 1] - m._pair_first[leaves])
        pair = pair[self._x[m._pair_from[pair]] > 0]
        to, off = m._pair_to[pair], m._pair_from[pair]
        leaf = m._leaf[to]
        lack = b.need[leaf] - self._use[leaf]
        worth = m._worth[to] - m._worth[off]
        worth += m._short_cost[leaf] * (np.maximum(lack, 0) - np.maximum(lack - m._gain[to] + m._gain[off], 0))
        side = value.shape[1]
        best = _best((place[leaf] * side + m._room[to]) * side + m._room[off], worth, value.size)
        cell = np.flatnonzero(best >= 0)
        cell = cell[worth[best[cell]] > value.reshape(-1)[cell]]
        found = best[cell]
        value.reshape(-1)[cell], takes.reshape(-1)[cell], gives.reshape(-1)[cell] = worth[found], to[found], off[found]


def _best(key: IntArray, value: FloatArray, count: int) -> IntArray:
    """Place of the largest value of each key (of equals the first), int [count], -1: none."""
    order = np.lexsort((-np.arange(len(key)), value, key))
    key = key[order]
    last = np.flatnonzero(np.append(key[1:] != key[:-1], True)) if len(key) else np.zeros(0, dtype=np.int64)
    found = np.full(count, -1, dtype=np.int64)
    found[key[last]] = order[last]
    return found


def _rooms(
    count: int,
    at: IntArray,
    row: IntArray,
    value: IntArray,
    counts: npt.NDArray[np.bool_],
    charge: IntArray,
    leaves: int,
) -> tuple[IntArray, IntArray]:
    """Kind of room that each way takes, int [W], -1: none that is traded; and what a kind is charged, int [S].

    Ways are of one kind if they have the same coefficients in rows of capacity and are charged alike: told by two random
    sums, as what they would be confused with is found out when the point is completed.
    """
    random = np.random.Generator(np.random.PCG64(0)).integers(1, 2**31, (2, int(row.max(initial=0)) + 1))
    sums = np.zeros((3, count), dtype=np.int64)
    for k in range(2):
        np.add.at(sums[k], at[counts], value[counts] * random[k][row[counts]])
    sums[2] = charge
    kinds, room, often = np.unique(sums, axis=1, return_inverse=True, return_counts=True)
    room = room.reshape(-1)
    most = max(1, min(MOST_ROOMS, int((MOST_CELLS / max(leaves, 1)) ** 0.5) - 1))
    kept = np.sort(np.argsort(-often, kind="stable")[:most])
    new = np.full(len(often), -1, dtype=np.int64)
    new[kept] = np.arange(len(kept))
    return new[room], kinds[2][kept]


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
