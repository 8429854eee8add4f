"""Columns of units that are not like thousands of others: what is resized or repaired, and what is placed node by node."""

from __future__ import annotations

import numpy as np

from evenhand.outcome import Move, Places
from evenhand.program.index import Unit
from evenhand.program.prices import SCALE, Worth
from evenhand.program.sites import Site, elastic, sizes_of
from evenhand.program.variables import CODE, Program, Spread
from evenhand.shapes import IntArray, worker_size
from evenhand.snapshot import Snapshot


def add_columns(program: Program, unit: int) -> None:
    """Add the columns of one unit, by its place in the index, that is not pinned."""
    Special(program, unit).add()


class Special:
    """One unit and its columns."""

    def __init__(self, program: Program, unit: int) -> None:
        self._program, self._at = program, unit
        self._s = s = program.snapshot
        pending = len(program.index.pending)
        self._unit: Unit = program.index.pending[unit] if unit < pending else program.index.running[unit - pending]
        self._job = j = self._unit.job
        self._asked = s.jobs[j]
        self._held, self._held_type = int(s.held[j]), int(s.held_type[j])

    def add(self) -> None:
        """Add them all."""
        s, j, prices = self._s, self._job, self._program.prices
        if s.pending[j]:
            self._add_arrivals(Move.START, Worth())
            return
        stop = prices.stops(j)
        back = Worth(-stop.order, -stop.work, -stop.change)
        if all(n >= 0 and s.room[n] > 0 for n, _ in s.placement[j]):
            worth = prices.runs(j, self._held_type, self._held, arrives=False) + back
            self._add_move(Move.KEEP, self._held, self._held_type, worth, 1)
            if elastic(s, j) and not s.hit[j]:
                self._add_resizes(back)
        if s.hit[j]:
            self._add_repairs(back)
        self._add_arrivals(Move.MIGRATE, prices.moves_away(j) + back)

    def _add_move(
        self, move: Move, gpus: int, gpu_type: int, worth: Worth, upper: int, site: int = -1, holds: Places = ()
    ) -> int:
        """Add a move column with its price in goals O4 to O7."""
        p, s = self._program, self._s
        cost = round(worth.total * p.prices.factor(self._job) * SCALE)
        what = s.types[gpu_type] if gpu_type >= 0 else "?"
        column = p.model.column(0, upper, cost, lambda: f"{move}[{self._asked.id} {gpus}x{what}]")
        p.columns.moves.extend(np.array([column]), self._at, CODE[move], gpu_type, gpus, site)
        if holds:
            p.columns.moves.hold(holds)
        return column

    def _add_arrivals(self, move: Move, leave: Worth) -> None:
        index, s, j = self._program.index, self._s, self._job
        first = int(index.choice[self._at])
        for at in range(first, first + int(index.choices[self._at])):
            site = index.sites.listed[at]
            if site.regular:
                worth = self._program.prices.runs(j, site.gpu_type, site.size, arrives=True) + leave
                most = min(len(self._unit.jobs), site.reach)
                column = self._add_move(move, site.size, site.gpu_type, worth, most, at)
                if site.divided:
                    self._split_over_pools(column, site)
                continue
            sizes = []
            for size, need in site.sizes:
                worth = self._program.prices.runs(j, site.gpu_type, size, arrives=True) + leave
                sizes.append((size, need, self._add_move(move, size, site.gpu_type, worth, 1, at)))
            self._add_spread(move, site.gpu_type, tuple(sizes), site.nodes, s.room[site.nodes])

    def _split_over_pools(self, column: int, site: Site) -> None:
        p, room = self._program, self._s.room
        most = [int((room[p.index.pools.nodes[pool]] // site.worker).sum()) for pool in site.pools]
        first = p.model.columns(
            len(most), 0, most, 0, lambda k: f"workers[{p.model.column_name(column)} pool {site.pools[k]}]"
        )
        here = np.full(len(most), len(p.columns.moves) - 1)
        p.columns.splits.extend(here, np.array(site.pools), first + np.arange(len(most)))

    def _add_spread(
        self, move: Move, gpu_type: int, sizes: tuple[tuple[int, int, int], ...], nodes: IntArray, most: IntArray,
        free: frozenset[int] = frozenset(),
    ) -> None:  # fmt: skip
        """Columns for a gang placed node by node; `most`: GPUs on each node at most; `free`: nodes it uses anyway."""
        s, model, job = self._s, self._program.model, self._asked
        shaped = job.worker_gpus is not None or job.gpus_per_node is not None
        block = worker_size(job) if shaped else 1
        upper = most // block
        if job.gpus_per_node is not None:
            upper = np.minimum(1, upper)
        nodes, upper = nodes[upper > 0], upper[upper > 0]
        asks = np.zeros(len(nodes), dtype=np.int64) if shaped else 1 - np.isin(nodes, list(free)).astype(np.int64)
        place = np.cumsum(1 + asks) - 1 - asks  # the column of each node; the next one says whether it is used
        count = len(nodes) + int(asks.sum())
        bound = np.ones(count, dtype=np.int64)
        bound[place] = upper
        label = f"{move}[{job.id} {s.types[gpu_type]}"

        def name(at: int) -> str:
            k = int(np.searchsorted(place, at, side="right")) - 1
            return f"{'gpus' if place[k] == at else 'uses'} {label} {s.nodes[int(nodes[k])].name}]"

        amount = model.columns(count, 0, bound, 0, name) + place
        self._program.columns.spreads.append(
            Spread(self._job, move, block, sizes, nodes, amount, np.where(asks > 0, amount + 1, -1))
        )

    def _add_resizes(self, back: Worth) -> None:
        """Rule G4: an elastic job in place gives back, or adds on eligible nodes."""
        s, j, job = self._s, self._job, self._asked
        gpu_type, held, here = self._held_type, self._held, s.placement[j]
        if not s.fits[j, gpu_type]:
            return
        given, added = [], []
        for size in sizes_of(s, j):
            need = 0
            if job.worker_gpus is None and job.gpus_per_node is None:
                found = s.sites.nodes_needed(self._unit.ask.where, gpu_type, size)
                if found is None:
                    continue
                need = found
            if size < held and not s.pinned[j] and need <= len(here):
                given.append((size, need))
            if size > held and (need == 0 or need >= len(here)):
                added.append((size, max(0, need - len(here))))
        whole = _whole_workers(s, j)
        if given and whole:
            sizes = tuple((size, need, self._resize_column(size, back, ())) for size, need in given)
            nodes, gpus = np.array(here, dtype=np.int64).reshape(-1, 2).T
            self._add_spread(Move.RESIZE, gpu_type, sizes, nodes, gpus)
        nodes, room = self._where_it_may_grow()
        if added and whole and nodes.size:
            grown = tuple((size - held, need, self._resize_column(size, back, here)) for size, need in added)
            self._add_spread(Move.RESIZE, gpu_type, grown, nodes, room, frozenset(n for n, _ in here))

    def _resize_column(self, size: int, back: Worth, holds: Places) -> int:
        prices = self._program.prices
        worth = prices.runs(self._job, self._held_type, size, arrives=False) + prices.resizes(self._held, size) + back
        return self._add_move(Move.RESIZE, size, self._held_type, worth, 1, holds=holds)

    def _where_it_may_grow(self) -> tuple[IntArray, IntArray]:
        """Eligible nodes of its type and shared label on which the job could add GPUs, and how many at most."""
        s, ask, pools = self._s, self._unit.ask, self._program.index.pools
        here = dict(s.placement[self._job])
        for value, _ in s.sites.domains(ask.where, self._held_type):
            if ask.where.same is not None and any(s.nodes[n].labels.get(ask.where.same) != value for n in here):
                continue
            nodes = next((ns for v, ns in pools.eligible(ask, self._held_type) if v == value), None)
            if nodes is None:
                continue
            left = s.room[nodes] - np.array([here.get(n, 0) for n in nodes.tolist()], dtype=np.int64)
            may = left > 0
            if self._asked.gpus_per_node is not None:
                may &= ~np.isin(nodes, list(here))
            return nodes[may], left[may]
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)

    def _add_repairs(self, back: Worth) -> None:
        """Rule R2: keep the GPUs on healthy nodes, replace each lost node's share."""
        p, s, j, job, gpu_type = self._program, self._s, self._job, self._asked, self._held_type
        whole = tuple((n, g) for n, g in s.placement[j] if n >= 0 and s.room[n] > 0 and not s.overfull[n])
        lost = [g for n, g in s.placement[j] if (n, g) not in whole]
        if not whole or not lost or gpu_type < 0 or not s.fits[j, gpu_type]:
            return
        where = self._unit.ask.where
        value = s.nodes[whole[0][0]].labels.get(where.same) if where.same is not None else None
        if where.same is not None and any(s.nodes[n].labels.get(where.same) != value for n, _ in whole):
            return
        nodes = next((ns for v, ns in p.index.pools.eligible(self._unit.ask, gpu_type) if v == value), None)
        if nodes is None:
            return
        if job.worker_gpus is not None and any(g % job.worker_gpus for g in lost):
            return
        worth = p.prices.runs(j, gpu_type, self._held, arrives=True) + p.prices.repairs(sum(lost)) + back
        column = self._add_move(Move.REPAIR, self._held, gpu_type, worth, 1, holds=whole)
        by_worker = job.worker_gpus is not None
        if not by_worker:
            nodes = nodes[~np.isin(nodes, [n for n, _ in whole])]
        shares = {job.worker_gpus: sum(lost)} if job.worker_gpus else {g: g * lost.count(g) for g in sorted(set(lost))}
        for block, gpus in shares.items():
            on = nodes[s.room[nodes] >= block]
            self._replace_on(on, s.room[on] // block if by_worker else np.ones(len(on), np.int64), block, gpus, column)

    def _replace_on(self, nodes: IntArray, most: IntArray, block: int, gpus: int, column: int) -> None:
        """Columns that say on which nodes so many GPUs are replaced, in blocks."""
        s, job = self._s, self._asked
        first = self._program.model.columns(
            len(nodes), 0, most, 0, lambda k: f"replaces[{job.id} {block} on {s.nodes[int(nodes[k])].name}]"
        )
        amount = first + np.arange(len(nodes))
        unused = np.full(len(nodes), -1)
        self._program.columns.spreads.append(
            Spread(self._job, Move.REPAIR, block, ((gpus, 0, column),), nodes, amount, unused)
        )


def _whole_workers(snapshot: Snapshot, job: int) -> bool:
    """Whether what the job holds has its own shape, so that it can grow or shrink by workers."""
    asked = snapshot.jobs[job]
    if asked.gpus_per_node is not None:
        return all(g == asked.gpus_per_node for _, g in snapshot.placement[job])
    return asked.worker_gpus is None or all(g % asked.worker_gpus == 0 for _, g in snapshot.placement[job])
