"""The program cut into blocks: what one group decides by itself, given prices of what it shares with the others.

A block is a group's ways to go, with the rows that only it stands in: each unit goes at most as often as it has jobs (G1), and
the leaf's shortfall (O3). All other rows and columns are shared (the *master*): slots, nodes, inner levels, limits, envy.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from evenhand.program.variables import Program
from evenhand.shapes import IntArray
from evenhand.solvers.linear_model import Arrays

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Blocks:
    """B blocks, U units (ordered by block), W ways (ordered by unit), c columns, r rows.

    Attributes
    ----------
    group : group of each block, int [B]; need : grains the leaf's work should reach, int [B]; short_cost : scaled price of a
        grain short, int [B]; short_column : int [B], -1 where nothing can be short.
    unit_block, most, least : of each unit, int [U].
    way_unit, column, gain : of each way, int [W]; gain: grains one job going this way adds, at most `need`.
    shared_column : columns of the master, bool [c]; shared_row : rows of the master, bool [r]: rows that other rows make
        true of whole plans are left out.
    """

    group: IntArray
    need: IntArray
    short_cost: IntArray
    short_column: IntArray
    unit_block: IntArray
    most: IntArray
    least: IntArray
    way_unit: IntArray
    column: IntArray
    gain: IntArray
    shared_column: BoolArray
    shared_row: BoolArray

    @property
    def count(self) -> int:
        """Number of blocks."""
        return len(self.group)

    @cached_property
    def way_block(self) -> IntArray:
        """Block of each way, int [W]."""
        return self.unit_block[self.way_unit]

    @cached_property
    def _ends(self) -> list[int]:
        return [int(e) for e in np.searchsorted(self.way_block, np.arange(self.count + 1))]

    def span(self, block: int) -> tuple[int, int]:
        """First way of a block, and the one after its last."""
        return self._ends[block], self._ends[block + 1]

    def ways_of(self, block: int) -> IntArray:
        """Columns of a block's ways."""
        return self.column[slice(*self.span(block))]


def blocks_of(program: Program, arrays: Arrays) -> Blocks:
    """Find the blocks of a program."""
    s, columns = program.snapshot, program.columns
    rows, count = arrays.shape
    jobs = np.array(list(columns.unit_rows), dtype=np.int64)
    unit_row = np.array(list(columns.unit_rows.values()), dtype=np.int64)
    groups, unit_block = np.unique(s.group[jobs], return_inverse=True)
    order = np.argsort(unit_block, kind="stable")
    unit_row, unit_block = unit_row[order], unit_block.reshape(-1)[order].astype(np.int64)
    starts, ends = arrays.starts[unit_row], arrays.starts[unit_row + 1]
    way_unit = np.repeat(np.arange(len(unit_row)), ends - starts)
    entry = np.arange(len(way_unit)) + np.repeat(
        starts - np.concatenate(([0], np.cumsum(ends - starts)[:-1])), ends - starts
    )
    column = arrays.columns[entry]
    need, cost, short = (np.full(len(groups), fill, dtype=np.int64) for fill in (0, 0, -1))
    gain_of = np.zeros(count, dtype=np.int64)
    shared_row = np.ones(rows, dtype=bool)
    shared_row[unit_row] = False
    place = {int(g): b for b, g in enumerate(groups)}
    for g, (row, at) in columns.leaf_rows.items():
        if g in place:
            here = slice(int(arrays.starts[row]), int(arrays.starts[row + 1]))
            gain_of[arrays.columns[here]] = arrays.values[here]
            b = place[g]
            need[b], cost[b], short[b] = arrays.row_lower[row], -arrays.cost[at], at
            shared_row[row] = False
    for tight in columns.tight_rows:
        shared_row[tight] = False
    shared = np.ones(count, dtype=bool)
    shared[column] = False
    shared[short[short >= 0]] = False
    return Blocks(
        group=groups.astype(np.int64), need=need, short_cost=cost, short_column=short, unit_block=unit_block,
        most=arrays.row_upper[unit_row], least=np.maximum(arrays.row_lower[unit_row], 0), way_unit=way_unit,
        column=column, gain=gain_of[column], shared_column=shared, shared_row=shared_row,
    )  # fmt: skip
