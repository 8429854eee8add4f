"""C1: no node over its room, kept exact without a column per job and node where sizes allow it.

Per pool and worker size s, where all sizes in the pool divide one another and no gang is placed node by node (slot rows):
    sum over workers of size q >= s of floor(q/s) x <= sum over nodes n of floor(free_n / s),
free_n = room less what is kept. This is necessary for any sizes and, for sizes that divide one another, sufficient: the
largest are placed first, on any node with room. floor(free_n / s) is linear in the keep bits where at most one kept job on the
node has a size that s does not divide; otherwise an integer u[n, s] stands for it.
Other pools get a row per node: sum_s s z[s, n] + kept + spread GPUs <= room_n, and sum_n z[s, n] = workers of size s there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise

from evenhand.program.variables import Program
from evenhand.solvers.linear_model import FREE

Terms = list[tuple[int, int]]
"""Pairs (column, coefficient)."""


def applies(program: Program) -> bool:
    """Whether anything can hold GPUs."""
    return bool(program.columns.moves)


def free_after_fixed(program: Program) -> list[int]:
    """Room of each node less what fixed jobs hold."""
    s = program.snapshot
    free = [int(r) for r in s.room]
    for j in program.fixed:
        for n, gpus in s.placement[j]:
            free[n] -= gpus
    return free


def holders(program: Program) -> dict[int, Terms]:
    """GPUs that stay held on each node, by column."""
    found: dict[int, Terms] = defaultdict(list)
    for move in program.columns.moves:
        for n, gpus in move.holds:
            found[n].append((move.column, gpus))
    return found


def workers_by_pool(program: Program) -> dict[int, dict[int, Terms]]:
    """Per pool and worker size, how many workers each column brings."""
    found: dict[int, dict[int, Terms]] = defaultdict(lambda: defaultdict(list))
    for move in program.columns.moves:
        site = move.site
        if site is None or not site.regular:
            continue
        split = program.columns.workers.get(move.column)
        if split is not None:
            for p, column in split.items():
                found[p][site.worker].append((column, 1))
        else:
            found[site.pools[0]][site.worker].append((move.column, site.workers))
    return found


def node_by_node(program: Program, exact: Iterable[int] = ()) -> set[int]:
    """Pools that need a row per node: odd sizes, spread gangs, or asked for."""
    pools = set(exact)
    for spread in program.columns.spreads:
        pools.update(int(program.index.pools.of_node[n]) for n in spread.amount)
    pools.discard(-1)
    for p, sizes in workers_by_pool(program).items():
        ordered = sorted(sizes)
        if any(b % a for a, b in pairwise(ordered)):
            pools.add(p)
    return pools


def add_rows(program: Program) -> dict[tuple[int, int, int], int]:
    """Add all capacity rows; returns the columns that count workers on single nodes, by (pool, size, node)."""
    free, held, brought = free_after_fixed(program), holders(program), workers_by_pool(program)
    spread_on: dict[int, Terms] = defaultdict(list)
    for spread in program.columns.spreads:
        for n, column in spread.amount.items():
            spread_on[n].append((column, spread.block))
    exact = node_by_node(program)
    counted: dict[tuple[int, int, int], int] = {}
    for p, nodes in enumerate(program.index.pools.nodes):
        if p in exact:
            _rows_by_node(program, p, nodes.tolist(), free, held, spread_on, brought.get(p, {}), counted)
        elif p in brought:
            _slot_rows(program, p, nodes.tolist(), free, held, brought[p])
    for n in sorted(set(held) | set(spread_on)):
        if program.index.pools.of_node[n] not in exact or program.index.pools.of_node[n] < 0:
            _node_row(program, n, held[n] + spread_on[n], free[n])
    return counted


def _node_row(program: Program, node: int, terms: Terms, free: int) -> None:
    """sum of GPUs on the node <= free, unless it cannot be exceeded."""
    model = program.model
    if sum(model.upper_of(c) * g for c, g in terms) > free:
        name = program.snapshot.nodes[node].name
        model.row([c for c, _ in terms], [g for _, g in terms], -FREE, free, lambda: f"C1[{name}]")


def _rows_by_node(
    program: Program, pool: int, nodes: list[int], free: list[int], held: dict[int, Terms],
    spread_on: dict[int, Terms], brought: dict[int, Terms], counted: dict[tuple[int, int, int], int],
) -> None:  # fmt: skip
    s, model = program.snapshot, program.model
    here: dict[int, Terms] = {n: [*held[n], *spread_on[n]] for n in nodes}
    for size, workers in sorted(brought.items()):
        places = []
        for n in nodes:
            if free[n] >= size:
                column = model.column(
                    0,
                    free[n] // size,
                    0,
                    lambda n=n, q=size: f"workers of {q} on {s.nodes[n].name}",  # type: ignore[misc]
                )
                counted[pool, size, n] = column
                places.append(column)
                here[n].append((column, size))
        model.row(
            [*places, *(c for c, _ in workers)], [1] * len(places) + [-w for _, w in workers], 0, 0,
            lambda q=size: f"C1[pool {pool} workers of {q}]",  # type: ignore[misc]
        )  # fmt: skip
    for n in nodes:
        _node_row(program, n, here[n], free[n])


def _slot_rows(
    program: Program, pool: int, nodes: list[int], free: list[int], held: dict[int, Terms], brought: dict[int, Terms]
) -> None:
    s, model = program.snapshot, program.model
    for size in sorted(brought):
        slots = 0
        columns: list[int] = []
        values: list[int] = []
        for n in nodes:
            odd = [(c, q) for c, q in held[n] if q % size]
            if len(odd) <= 1:
                slots += free[n] // size
                for column, gpus in held[n]:
                    columns.append(column)
                    values.append(free[n] // size - (free[n] - gpus) // size)
                continue
            counter = model.column(
                0,
                free[n] // size,
                0,
                lambda n=n, q=size: f"slots of {q} on {s.nodes[n].name}",  # type: ignore[misc]
            )
            columns.append(counter)
            values.append(-1)
            model.row(
                [counter, *(c for c, _ in held[n])], [size, *(q for _, q in held[n])], -FREE, free[n],
                lambda n=n: f"C1[{s.nodes[n].name}]",  # type: ignore[misc]
            )  # fmt: skip
            for column, gpus in held[n]:
                drop = free[n] // size - (free[n] - gpus) // size
                model.row(
                    [counter, column],
                    [1, drop],
                    -FREE,
                    free[n] // size,
                    lambda n=n: f"C1[{s.nodes[n].name}]",  # type: ignore[misc]
                )
        for q, workers in brought.items():
            if q >= size:
                columns.extend(c for c, _ in workers)
                values.extend(w * (q // size) for _, w in workers)
        kept = [(c, v) for c, v in zip(columns, values, strict=True) if v]
        model.row(
            [c for c, _ in kept],
            [v for _, v in kept],
            -FREE,
            slots,
            lambda q=size: f"C1[pool {pool} slots of {q}]",  # type: ignore[misc]
        )
