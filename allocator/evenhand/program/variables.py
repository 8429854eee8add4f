"""The columns of the round by what they mean: one per unit and way to go, and what splits a gang over pools or nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import overload

import numpy as np

from evenhand.entitlement import Entitlement
from evenhand.fairness.target import Target
from evenhand.goals import Goals
from evenhand.outcome import MOVES, Decision, Move, Places, kept
from evenhand.program.index import Index, Unit
from evenhand.program.prices import Prices
from evenhand.program.sites import Site
from evenhand.shapes import IntArray
from evenhand.snapshot import Snapshot
from evenhand.solvers.linear_model import Growing, LinearModel


@dataclass(frozen=True)
class MoveColumn:
    """One way for a unit to go; the column counts how many of its jobs go it."""

    column: int
    unit: Unit
    move: Move
    gpu_type: int
    gpus: int
    site: Site | None = None
    holds: Places = ()
    """GPUs by node that stay held (kept, repaired and grown jobs)."""


class Moves(Sequence[MoveColumn]):
    """The move columns as arrays, unit by unit in the order of the index; one by one they are `MoveColumn`s.

    Attributes
    ----------
    column, unit, kind, gpu_type, gpus, site : int [M]; `unit` is a place in the index, `kind` one in `MOVES`, `site` one in the
        index's sites, -1 where nothing arrives in pools.
    job : the unit's eldest, int [M].
    """

    def __init__(self, snapshot: Snapshot, index: Index) -> None:
        self._snapshot, self._index = snapshot, index
        self._fields = [Growing() for _ in range(6)]
        self._holds: dict[int, Places] = {}
        self._listed: list[MoveColumn] = []

    def extend(self, columns: IntArray, units: IntArray | int, kinds: IntArray | int, types: IntArray | int,
               gpus: IntArray | int, sites: IntArray | int = -1) -> None:  # fmt: skip
        """Add move columns."""
        for known, more in zip(self._fields, (columns, units, kinds, types, gpus, sites), strict=True):
            known.extend(more, len(columns))

    def hold(self, holds: Places) -> None:
        """Say what the last column holds in place; of a kept job that is known."""
        self._holds[len(self) - 1] = holds

    @property
    def column(self) -> IntArray:
        """Columns, int [M]."""
        return self._fields[0].all

    @property
    def unit(self) -> IntArray:
        """Places of the units in the index, int [M]."""
        return self._fields[1].all

    @property
    def kind(self) -> IntArray:
        """Places of the moves in `MOVES`, int [M]."""
        return self._fields[2].all

    @property
    def gpu_type(self) -> IntArray:
        """Types, int [M]."""
        return self._fields[3].all

    @property
    def gpus(self) -> IntArray:
        """GPUs of one job that goes this way, int [M]."""
        return self._fields[4].all

    @property
    def site(self) -> IntArray:
        """Places in the index's sites, -1: none, int [M]."""
        return self._fields[5].all

    @property
    def job(self) -> IntArray:
        """The units' eldest jobs, int [M]."""
        return self._index.eldest[self.unit]

    def starts(self) -> IntArray:
        """Where the moves of each unit begin, int [U + 1]."""
        return np.searchsorted(self.unit, np.arange(len(self._index.eldest) + 1))

    def holds(self, at: int) -> Places:
        """GPUs by node that stay held."""
        if self.kind[at] == KEEP:
            return self._snapshot.placement[int(self._index.eldest[self.unit[at]])]
        return self._holds.get(at, ())

    def held_rows(self) -> tuple[IntArray, IntArray, IntArray]:
        """The same of all moves as rows: node, place of the move, GPUs; by node, then move."""
        stands = self._snapshot.stands
        keeps = np.flatnonzero(self.kind == KEEP)
        jobs = self.job[keeps]
        begin, end = np.searchsorted(stands.job, jobs), np.searchsorted(stands.job, jobs, side="right")
        row = spans(begin, end - begin)
        more = np.array([(n, at, g) for at, parts in self._holds.items() for n, g in parts], dtype=np.int64).reshape(
            -1, 3
        )
        node = np.concatenate([stands.node[row], more[:, 0]])
        at = np.concatenate([np.repeat(keeps, end - begin), more[:, 1]])
        gpus = np.concatenate([stands.gpus[row], more[:, 2]])
        order = np.lexsort((at, node))
        return node[order], at[order], gpus[order]

    def __len__(self) -> int:
        return len(self._fields[0])

    @overload
    def __getitem__(self, at: int) -> MoveColumn: ...
    @overload
    def __getitem__(self, at: slice) -> list[MoveColumn]: ...
    def __getitem__(self, at: int | slice) -> MoveColumn | list[MoveColumn]:
        return self._one_by_one()[at]

    def __iter__(self) -> Iterator[MoveColumn]:
        return iter(self._one_by_one())

    def _one_by_one(self) -> list[MoveColumn]:
        if len(self._listed) != len(self):
            units, sites = self._index.units, self._index.sites.listed
            self._listed = [
                MoveColumn(
                    column, units[unit], MOVES[kind], gpu_type, gpus, None if site < 0 else sites[site], self.holds(at)
                )
                for at, (column, unit, kind, gpu_type, gpus, site) in enumerate(
                    zip(*(known.all.tolist() for known in self._fields), strict=True)
                )
            ]
        return self._listed


CODE = {move: code for code, move in enumerate(MOVES)}
KEEP = CODE[Move.KEEP]


def spans(begin: IntArray, length: IntArray) -> IntArray:
    """The numbers of all spans, one span after the other: begin, begin + 1, ... so many of each."""
    return np.repeat(begin - np.cumsum(length) + length, length) + np.arange(int(length.sum()))


@dataclass(frozen=True, eq=False)
class Spread:
    """A gang whose GPUs are decided node by node: for a start, or for what an elastic job adds or gives back.

    Attributes
    ----------
    sizes : GPUs to find on the nodes, nodes to use or 0, and column of each size.
    node : int [n]; amount : columns that count blocks of `block` GPUs on each node, int [n]; used : columns that say whether
        the node is used, -1 where nobody asks, int [n].
    """

    job: int
    move: Move
    block: int
    sizes: tuple[tuple[int, int, int], ...]
    node: IntArray
    amount: IntArray
    used: IntArray


class Splits:
    """Columns that count the workers of a gang by pool, where it may stand in several.

    Attributes
    ----------
    move, pool, column : int [W], by move: place of the gang's move, pool, column.
    """

    def __init__(self) -> None:
        self._fields = [Growing() for _ in range(3)]

    def extend(self, moves: IntArray, pools: IntArray, columns: IntArray) -> None:
        """Add columns."""
        for known, more in zip(self._fields, (moves, pools, columns), strict=True):
            known.extend(more, len(columns))

    @property
    def move(self) -> IntArray:
        """Place of the gang's move column, int [W]."""
        return self._fields[0].all

    @property
    def pool(self) -> IntArray:
        """Pools, int [W]."""
        return self._fields[1].all

    @property
    def column(self) -> IntArray:
        """Columns, int [W]."""
        return self._fields[2].all


@dataclass
class Columns:
    """All columns by what they mean."""

    moves: Moves
    spreads: list[Spread] = field(default_factory=list)
    splits: Splits = field(default_factory=Splits)
    reserved: list[tuple[Unit, int, int]] = field(default_factory=list)
    """(unit, type, column) of reservations on ending GPUs (rule O8)."""
    unit_rows: dict[int, int] = field(default_factory=dict)
    """Row that says how many jobs of a unit go some way (G1), by the unit's first job."""
    leaf_rows: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Row and column of a leaf's shortfall (O3), by group."""
    inner_rows: list[int] = field(default_factory=list)
    """Rows of shortfalls above the leaves: guarantees and inner groups (O1, O2)."""
    limit_rows: list[int] = field(default_factory=list)
    """Rows of limits (L1)."""
    tight_rows: list[IntArray] = field(default_factory=list)
    """Rows that every integer point of the others keeps anyway: they only make relaxations tighter."""


@dataclass(frozen=True, eq=False)
class Program:
    """A round to be solved, and the key to lift an answer home."""

    snapshot: Snapshot
    entitlement: Entitlement
    target: Target
    index: Index
    owed: tuple[int, ...]
    prices: Prices
    model: LinearModel
    columns: Columns
    fixed: tuple[int, ...]
    """Jobs that stay whatever happens: pinned ones and orphans."""

    @cached_property
    def goals(self) -> Goals:
        """What plans are judged by."""
        return Goals(self.snapshot, self.entitlement, self.target, self.owed)

    @cached_property
    def kept(self) -> dict[int, Decision]:
        """Decisions that leave running jobs as they are, by job."""
        s = self.snapshot
        return {j: kept(s, j) for j in np.flatnonzero(s.running).tolist()}

    def move_names(self, first: int, end: int) -> list[str]:
        """What move columns stand for, by their places among the moves."""
        s, moves = self.snapshot, self.columns.moves
        words = [*s.types, "?"]  # type -1 is not known
        here = slice(first, end)
        parts = (moves.kind[here], self.index.eldest[moves.unit[here]], moves.gpus[here], moves.gpu_type[here])
        return [
            f"{MOVES[kind]}[{s.jobs[j].id} {many}x{words[t]}]"
            for kind, j, many, t in zip(*(part.tolist() for part in parts), strict=True)
        ]
