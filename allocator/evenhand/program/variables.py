"""The columns of the round: one per unit and way to go, and what splits a gang over pools or nodes."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from evenhand.entitlement import Entitlement
from evenhand.fairness.target import Target
from evenhand.outcome import Move
from evenhand.program.index import Index, Site, Unit, elastic, move_of, sizes_of
from evenhand.program.prices import SCALE, Prices, Worth
from evenhand.shapes import worker_size
from evenhand.snapshot import Snapshot
from evenhand.solvers.linear_model import LinearModel


@dataclass(frozen=True)
class MoveColumn:
    """One way for a unit to go; the column counts how many of its jobs go it."""

    column: int
    unit: Unit
    move: Move
    gpu_type: int
    gpus: int
    site: Site | None = None
    holds: tuple[tuple[int, int], ...] = ()
    """GPUs by node that stay held (kept, repaired and grown jobs)."""


@dataclass(frozen=True)
class Spread:
    """A gang whose GPUs are decided node by node: for a start, or for what an elastic job adds or gives back.

    `amount[n]` counts blocks of `block` GPUs on node n, `used[n]` says whether the node is used.
    """

    unit: Unit
    move: Move
    site: Site
    block: int
    sizes: tuple[tuple[int, int, int], ...]
    """(GPUs to find on the nodes, nodes to use or 0, column) of each size."""
    amount: dict[int, int]
    used: dict[int, int]


@dataclass
class Columns:
    """All columns by what they mean."""

    moves: list[MoveColumn] = field(default_factory=list)
    spreads: list[Spread] = field(default_factory=list)
    workers: dict[int, dict[int, int]] = field(default_factory=dict)
    """For a move column over several pools: column that counts workers, by pool."""
    reserved: list[tuple[Unit, int, int]] = field(default_factory=list)
    """(unit, type, column) of reservations on ending GPUs (rule O8)."""
    by_unit: dict[int, list[MoveColumn]] = field(default_factory=lambda: defaultdict(list))
    unit_rows: dict[int, int] = field(default_factory=dict)
    """Row that says how many jobs of a unit go some way (G1), by the unit's first job."""
    leaf_rows: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Row and column of a leaf's shortfall (O3), by group."""


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

    def add_move(self, unit: Unit, move: Move, gpus: int, gpu_type: int, worth: Worth, upper: int,
                 site: Site | None = None, holds: tuple[tuple[int, int], ...] = ()) -> MoveColumn:  # fmt: skip
        """Add a move column with its price in goals O4 to O7."""
        s = self.snapshot
        job = unit.job
        cost = round(worth.total * self.prices.factor(job) * SCALE)
        name = lambda: f"{move}[{s.jobs[job].id} {gpus}x{s.types[gpu_type] if gpu_type >= 0 else '?'}]"  # noqa: E731
        column = MoveColumn(self.model.column(0, upper, cost, name), unit, move, gpu_type, gpus, site, holds)
        self.columns.moves.append(column)
        self.columns.by_unit[job].append(column)
        return column


def add_columns(program: Program) -> None:
    """Add every column of the round but those that single families need for themselves."""
    for unit in program.index.pending:
        _add_arrivals(program, unit, Worth())
    for unit in program.index.running:
        if unit.job in program.fixed:
            _add_fixed(program, unit)
        else:
            _add_running(program, unit)
    _add_reservations(program)


def _add_arrivals(program: Program, unit: Unit, leave: Worth) -> None:
    s = program.snapshot
    j = unit.job
    move = move_of(s, j)
    for site in program.index.sites.get(j, ()):
        if site.regular:
            worth = program.prices.runs(j, site.gpu_type, site.size, arrives=True) + leave
            column = program.add_move(
                unit, move, site.size, site.gpu_type, worth, min(len(unit.jobs), site.reach), site
            )
            if site.workers > 1 and len(site.pools) > 1:
                _split_over_pools(program, column, site)
            continue
        sizes = []
        for size, need in site.sizes:
            worth = program.prices.runs(j, site.gpu_type, size, arrives=True) + leave
            sizes.append((size, need, program.add_move(unit, move, size, site.gpu_type, worth, 1, site).column))
        _add_spread(program, unit, move, site, tuple(sizes), {n: int(s.room[n]) for n in site.nodes.tolist()})


def _split_over_pools(program: Program, column: MoveColumn, site: Site) -> None:
    s, model = program.snapshot, program.model
    program.columns.workers[column.column] = {
        p: model.column(
            0,
            sum(int(s.room[n] // site.worker) for n in program.index.pools.nodes[p].tolist()),
            0,
            lambda p=p: f"workers[{model.column_name(column.column)} pool {p}]",  # type: ignore[misc]
        )
        for p in site.pools
    }


def _add_spread(
    program: Program,
    unit: Unit,
    move: Move,
    site: Site,
    sizes: tuple[tuple[int, int, int], ...],
    limit: dict[int, int],
    free: frozenset[int] = frozenset(),
) -> None:
    """Columns for a gang placed node by node; `limit`: most GPUs on each node; `free`: nodes it uses anyway."""
    s, model = program.snapshot, program.model
    job = s.jobs[unit.job]
    block = worker_size(job) if job.worker_gpus or job.gpus_per_node else 1
    label = f"{move}[{job.id} {s.types[site.gpu_type]}"
    amount, used = {}, {}
    for n, most in limit.items():
        upper = most // block
        if job.gpus_per_node is not None:
            upper = min(1, upper)
        if upper:
            amount[n] = model.column(0, upper, 0, lambda n=n: f"gpus {label} {s.nodes[n].name}]")  # type: ignore[misc]
            if job.worker_gpus is None and job.gpus_per_node is None and n not in free:
                used[n] = model.column(0, 1, 0, lambda n=n: f"uses {label} {s.nodes[n].name}]")  # type: ignore[misc]
    program.columns.spreads.append(Spread(unit, move, site, block, sizes, amount, used))


def _add_running(program: Program, unit: Unit) -> None:
    s, prices = program.snapshot, program.prices
    j = unit.job
    gpu_type, held = int(s.held_type[j]), int(s.held[j])
    stop = prices.stops(j)
    program.model.offset += round(stop.total * prices.factor(j) * SCALE)
    back = Worth(-stop.order, -stop.work, -stop.change)
    if all(n >= 0 and _keeping(s, n) for n, _ in s.placement[j]):
        worth = prices.runs(j, gpu_type, held, arrives=False) + back
        program.add_move(unit, Move.KEEP, held, gpu_type, worth, 1, holds=s.placement[j])
        if elastic(s, j) and not s.hit[j]:
            _add_resizes(program, unit, back)
    if s.hit[j]:
        _add_repairs(program, unit, back)
    _add_arrivals(program, unit, prices.moves_away(j) + back)


def _add_fixed(program: Program, unit: Unit) -> None:
    """A pinned job stays: only its worth is counted."""
    s = program.snapshot
    j = unit.job
    worth = program.prices.runs(j, int(s.held_type[j]), int(s.held[j]), arrives=False)
    program.model.offset += round(worth.total * program.prices.factor(j) * SCALE)


def _keeping(snapshot: Snapshot, node: int) -> bool:
    """Whether the node keeps what it runs."""
    return bool(snapshot.room[node] > 0)


def _add_resizes(program: Program, unit: Unit, back: Worth) -> None:
    """Rule G4: an elastic job in place gives back, or adds on eligible nodes."""
    s = program.snapshot
    j = unit.job
    gpu_type, held, here = int(s.held_type[j]), int(s.held[j]), dict(s.placement[j])
    if not s.fits[j, gpu_type]:
        return
    job = s.jobs[j]
    given, added = [], []
    for size in sizes_of(s, j):
        need = 0
        if job.worker_gpus is None and job.gpus_per_node is None:
            found = s.sites.nodes_needed(unit.ask.where, gpu_type, size)
            if found is None:
                continue
            need = found
        if size < held and not s.pinned[j] and need <= len(here):
            given.append((size, need))
        if size > held and (need == 0 or need >= len(here)):
            added.append((size, max(0, need - len(here))))
    whole = _whole_workers(program, j)
    if given and whole:
        site = Site(gpu_type, np.array(sorted(here)), (), held, worker_size(job), 0, sizes=tuple(given))
        sizes = tuple((size, need, _resize_column(program, unit, size, back, ()).column) for size, need in given)
        _add_spread(program, unit, Move.RESIZE, site, sizes, here)
    room = _where_it_may_grow(program, unit)
    if added and whole and room:
        site = Site(gpu_type, np.array(sorted(room)), (), held, worker_size(job), 0, sizes=tuple(added))
        grown = tuple(
            (size - held, need, _resize_column(program, unit, size, back, s.placement[j]).column)
            for size, need in added
        )
        _add_spread(program, unit, Move.RESIZE, site, grown, room, frozenset(here))


def _resize_column(
    program: Program, unit: Unit, size: int, back: Worth, holds: tuple[tuple[int, int], ...]
) -> MoveColumn:
    s, prices = program.snapshot, program.prices
    gpu_type, held = int(s.held_type[unit.job]), int(s.held[unit.job])
    worth = prices.runs(unit.job, gpu_type, size, arrives=False) + prices.resizes(held, size) + back
    return program.add_move(unit, Move.RESIZE, size, gpu_type, worth, 1, holds=holds)


def _whole_workers(program: Program, job: int) -> bool:
    """Whether what the job holds has its own shape, so that it can grow or shrink by workers."""
    s = program.snapshot
    asked = s.jobs[job]
    if asked.gpus_per_node is not None:
        return all(g == asked.gpus_per_node for _, g in s.placement[job])
    return asked.worker_gpus is None or all(g % asked.worker_gpus == 0 for _, g in s.placement[job])


def _where_it_may_grow(program: Program, unit: Unit) -> dict[int, int]:
    """Most GPUs the job could add on each eligible node of its type and shared label."""
    s = program.snapshot
    j = unit.job
    here = dict(s.placement[j])
    gpu_type = int(s.held_type[j])
    for value, _ in s.sites.domains(unit.ask.where, gpu_type):
        if unit.ask.where.same is not None and any(s.nodes[n].labels.get(unit.ask.where.same) != value for n in here):
            continue
        nodes = next((ns for v, ns in program.index.pools.eligible(unit.ask, gpu_type) if v == value), None)
        if nodes is None:
            continue
        fresh_only = s.jobs[j].gpus_per_node is not None
        return {
            n: int(s.room[n]) - here.get(n, 0)
            for n in nodes.tolist()
            if s.room[n] > here.get(n, 0) and not (fresh_only and n in here)
        }
    return {}


def _add_repairs(program: Program, unit: Unit, back: Worth) -> None:
    """Rule R2: keep the GPUs on healthy nodes, replace each lost node's share."""
    s = program.snapshot
    j = unit.job
    job = s.jobs[j]
    gpu_type = int(s.held_type[j])
    whole = tuple((n, g) for n, g in s.placement[j] if n >= 0 and _keeping(s, n) and not s.overfull[n])
    lost = [g for n, g in s.placement[j] if (n, g) not in whole]
    if not whole or not lost or gpu_type < 0 or not s.fits[j, gpu_type]:
        return
    where = unit.ask.where
    value = s.nodes[whole[0][0]].labels.get(where.same) if where.same is not None else None
    if where.same is not None and any(s.nodes[n].labels.get(where.same) != value for n, _ in whole):
        return
    nodes = next((ns for v, ns in program.index.pools.eligible(unit.ask, gpu_type) if v == value), None)
    if nodes is None:
        return
    if job.worker_gpus is not None and any(g % job.worker_gpus for g in lost):
        return
    held = int(s.held[j])
    worth = program.prices.runs(j, gpu_type, held, arrives=True) + program.prices.repairs(sum(lost)) + back
    column = program.add_move(unit, Move.REPAIR, held, gpu_type, worth, 1, holds=whole)
    taken = {n for n, _ in whole}
    by_worker = job.worker_gpus is not None
    limit = {n: int(s.room[n]) for n in nodes.tolist() if by_worker or n not in taken}
    shares = {job.worker_gpus: sum(lost)} if job.worker_gpus else {g: g * lost.count(g) for g in sorted(set(lost))}
    for block, gpus in shares.items():
        site = Site(gpu_type, np.array(sorted(limit), dtype=np.int64), (), held, block, 0, sizes=((gpus, 0),))
        amount = {
            n: program.model.column(
                0, most // block if by_worker else 1, 0,
                lambda n=n, g=block: f"replaces[{job.id} {g} on {s.nodes[n].name}]",  # type: ignore[misc]
            )
            for n, most in limit.items()
            if most >= block
        }  # fmt: skip
        spread = Spread(unit, Move.REPAIR, site, block, ((gpus, 0, column.column),), amount, {})
        program.columns.spreads.append(spread)


def _add_reservations(program: Program) -> None:
    """Rule O8: whole pending gangs on GPUs that end within the restart cost."""
    s, model = program.snapshot, program.model
    ending = {int(s.held_type[u.job]) for u in program.index.running if ends_soon(s, u.job)} - {-1}
    if not ending:
        return
    for unit in program.index.pending:
        j = unit.job
        for t in sorted(ending):
            if s.budgeted[j] and s.full_fit[j, t] and may_ever_hold(s, j):
                column = model.column(
                    0,
                    len(unit.jobs),
                    0,
                    lambda j=j, t=t: f"reserve[{s.jobs[j].id} {s.types[t]}]",  # type: ignore[misc]
                )
                program.columns.reserved.append((unit, t, column))


def ends_soon(snapshot: Snapshot, job: int) -> bool:
    """Whether a job that ran before this instant ends by itself within the restart cost (rule O8)."""
    s = snapshot
    before = s.live[job] and s.running[job] and s.started_s[job] < s.now_s
    return bool(before and 0 < float(s.left_s[job]) <= s.policy.restart_cost_s)


def may_ever_hold(snapshot: Snapshot, job: int) -> bool:
    """Whether no limit above the job is below its size."""
    limits = (snapshot.tree.groups[c].max_gpus for c in snapshot.tree.path[int(snapshot.group[job])])
    return all(limit is None or limit >= int(snapshot.size[job]) for limit in limits)
