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

from evenhand.program.market import Market
from evenhand.program.variables import spans
from evenhand.shapes import IntArray

FloatArray = npt.NDArray[np.float64]
MOST_PASSES = 60
MOST_ASKED = 400
"""Trades looked at in a pass, the best ones."""
LEAST = 1e-6
NEVER = -1e18
NO_LIMIT = 2**40


def after_trades(market: Market, x: IntArray, may_go_on: Callable[[], bool]) -> IntArray:
    """The ways of a point after trades that each gain something, int [c]; shared columns are left as they were.

    Parameters
    ----------
    may_go_on : asked before every pass over all leaves.
    """
    if not len(market.column):
        return x
    state = _State(market, x)
    for _ in range(MOST_PASSES):
        if not may_go_on() or not state.trade():
            break
    return state.point(x)


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


class _State:
    """One point in the making, and what trades would bring."""

    def __init__(self, market: Market, x: IntArray) -> None:
        self._m, b = market, market.blocks
        taken = x[b.column]
        self._x = x[market.column]
        self._used = np.bincount(b.way_unit, taken, len(b.most)).astype(np.int64)
        self._use = np.bincount(b.way_block, b.gain * taken, b.count).astype(np.int64)
        self._held = market.tree.held(x)
        self._left = market.limits.bound - market.limits.held(x)
        self._left[-1] = NO_LIMIT
        gpus = np.append(market.gpus, 0)
        self._more = gpus[:, None] - gpus[None, :]
        """GPUs more for who takes one room and gives another, int [S + 1, S + 1]."""
        rooms = len(market.charge)
        shape = (b.count, rooms + 1, rooms + 1)
        self._sides = _Sides(np.zeros(shape), np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64))
        charge = np.append(market.charge, 0)
        steps, place = np.unique(charge[:, None] - charge[None, :], return_inverse=True)
        self._steps, self._step = steps, place.reshape(rooms + 1, rooms + 1)
        self._changed = np.arange(b.count)

    def point(self, x: IntArray) -> IntArray:
        """The point, with other columns as in x."""
        y = x.copy()
        y[self._m.column] = self._x
        return y

    def trade(self) -> bool:
        """Make the best trades between leaves that differ; whether there was any."""
        m = self._m
        if len(self._changed):
            self._look(self._changed)
        short = (m.tree.bound - self._held)[:, None]
        lifts = m.tree.weight[:, None] * (np.maximum(short, 0) - np.maximum(short - self._steps, 0))
        above = lifts[m.tree.of].sum(axis=1)
        value = self._sides.value + above[:, self._step]
        if len(self._left) > 1:
            value[self._left[m.limits.of].min(axis=1)[:, None, None] < self._more] = NEVER
        changed: list[int] = []
        for a, b, takes, gives in self._offers(value):
            if a in changed or b in changed:
                continue
            alone = float(self._sides.value[a, takes, gives] + self._sides.value[b, gives, takes])
            within = self._within(a, takes, gives) and self._within(b, gives, takes)
            if within and alone + self._lift(a, b, takes, gives) > LEAST:
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
            for row in m.tree.of[leaf].tolist():
                change[row] = change.get(row, 0) + sign * step
        total = 0.0
        for row, more in change.items():
            short = int(m.tree.bound[row] - self._held[row])
            total += float(m.tree.weight[row]) * (max(short, 0) - max(short - more, 0))
        return total

    def _within(self, leaf: int, takes: int, gives: int) -> bool:
        """Whether limits above a leaf let it take one room for another."""
        return bool(self._left[self._m.limits.of[leaf]].min() >= self._more[takes, gives])

    def _apply(self, leaf: int, takes: int, gives: int) -> None:
        m, sides = self._m, self._sides
        for way, sign in ((int(sides.takes[leaf, takes, gives]), 1), (int(sides.gives[leaf, takes, gives]), -1)):
            if way >= 0:
                self._x[way] += sign
                self._used[m.unit[way]] += sign
                self._use[leaf] += sign * m.gain[way]
        for row in m.tree.of[leaf].tolist():
            self._held[row] += self._steps[self._step[takes, gives]]
        for row in m.limits.of[leaf].tolist():
            self._left[row] -= self._more[takes, gives]
        self._left[-1] = NO_LIMIT

    def _look(self, leaves: IntArray) -> None:
        """Work out anew what some leaves would gain by taking and giving."""
        m, b = self._m, self._m.blocks
        rooms, count = len(m.charge), len(leaves)
        place = np.zeros(b.count, dtype=np.int64)
        place[leaves] = np.arange(count)
        use, need, weight = self._use[leaves], b.need[leaves], m.short_cost[leaves]
        short = np.maximum(need - use, 0)
        over = np.maximum(use - need, 0)
        way = spans(m.first[leaves], m.first[leaves + 1] - m.first[leaves])
        at = place[m.leaf[way]]
        gain, worth, key = m.gain[way], m.worth[way], at * rooms + m.room[way]
        more = np.flatnonzero(self._used[m.unit[way]] < b.most[m.unit[way]])
        takes = _best(key[more], (worth + weight[at] * np.minimum(short[at], gain))[more], count * rooms)
        takes = np.where(takes >= 0, way[more[takes]] if len(more) else -1, -1).reshape(count, rooms)
        less = np.flatnonzero(self._x[way] > 0)
        gives = _best(key[less], (-worth - weight[at] * np.maximum(gain - over[at], 0))[less], count * rooms)
        gives = np.where(gives >= 0, way[less[gives]] if len(less) else -1, -1).reshape(count, rooms)
        none = np.full((count, 1), -1)
        takes, gives = np.concatenate([takes, none], axis=1), np.concatenate([gives, none], axis=1)
        able_t, able_g = takes >= 0, gives >= 0
        able_t[:, -1] = able_g[:, -1] = True
        got = np.where(takes >= 0, m.gain[takes], 0)[:, :, None] - np.where(gives >= 0, m.gain[gives], 0)[:, None, :]
        brings = np.where(able_t, np.where(takes >= 0, m.worth[takes], 0.0), NEVER)
        costs = np.where(able_g, np.where(gives >= 0, -m.worth[gives], 0.0), NEVER)
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
        m, b = self._m, self._m.blocks
        pair = spans(m.pair_first[leaves], m.pair_first[leaves + 1] - m.pair_first[leaves])
        pair = pair[self._x[m.pair_from[pair]] > 0]
        to, off = m.pair_to[pair], m.pair_from[pair]
        leaf = m.leaf[to]
        lack = b.need[leaf] - self._use[leaf]
        worth = m.worth[to] - m.worth[off]
        worth += m.short_cost[leaf] * (np.maximum(lack, 0) - np.maximum(lack - m.gain[to] + m.gain[off], 0))
        side = value.shape[1]
        best = _best((place[leaf] * side + m.room[to]) * side + m.room[off], worth, value.size)
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
