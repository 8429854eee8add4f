"""G1 to G4: a gang whole or not at all, on one type (G2: every way to go has one), in its shape (G3, G4).

For each unit u: sum over its ways to go of x_u <= jobs in it (= 1 where it is pinned and may only stay or grow).
For a gang of W workers over pools p: sum_p a_p = W x. For a gang placed node by node: block * sum_n f_n = sum_s size_s y_s;
f_n <= most_n b_n, f_n >= b_n, sum_n b_n = sum_s nodes_s y_s where its shape prescribes the number of nodes.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from evenhand.outcome import Move
from evenhand.program.variables import Program, Spread
from evenhand.shapes import IntArray
from evenhand.solvers.linear_model import FREE


def applies(program: Program) -> bool:
    """Whether there is anything to decide."""
    return bool(program.columns.moves)


def add_rows(program: Program) -> None:
    """Add the rows of every unit, split gang and spread gang."""
    _add_units(program)
    _add_splits(program)
    for spread in program.columns.spreads:
        _add_spread(program, spread)
    _add_replacements(program)


def _add_units(program: Program) -> None:
    """G1: a unit goes at most as often as it has jobs, by moves and reservations."""
    s, model, index, moves = program.snapshot, program.model, program.index, program.columns.moves
    place = {j: u for u, j in enumerate(index.eldest.tolist())} if program.columns.reserved else {}
    reserved = np.array([(place[u.job], c) for u, _, c in program.columns.reserved], dtype=np.int64).reshape(-1, 2)
    unit = np.concatenate([moves.unit, reserved[:, 0]])
    columns = np.concatenate([moves.column, reserved[:, 1]])
    order = np.argsort(unit, kind="stable")
    lengths = np.bincount(unit, minlength=len(index.eldest))
    some = np.flatnonzero(lengths)
    jobs, most = index.eldest[some], index.count[some]
    first = model.rows(
        lengths[some], columns[order], 1, np.where(s.pinned[jobs], most, 0), most,
        lambda k: f"G1[{s.jobs[int(jobs[k])].id}]",
    )  # fmt: skip
    program.columns.unit_rows.update(zip(jobs.tolist(), range(first, first + len(jobs)), strict=True))


def _add_splits(program: Program) -> None:
    """G3: the workers of a gang in all its pools."""
    model, moves, splits = program.model, program.columns.moves, program.columns.splits
    move, count = np.unique(splits.move, return_counts=True)
    end = np.cumsum(count)
    columns = np.insert(splits.column, end, moves.column[move])
    values = np.insert(np.ones(len(splits.column), dtype=np.int64), end, -program.index.sites.workers[moves.site[move]])
    model.rows(count + 1, columns, values, 0, 0, lambda k: f"G3[{model.column_name(int(moves.column[move[k]]))}]")


def _add_spread(program: Program, spread: Spread) -> None:
    """G3, G4: the GPUs of one gang, node by node."""
    model, name = program.model, program.snapshot.jobs[spread.job].id
    sizes, needs, ways = np.array(spread.sizes, dtype=np.int64).reshape(-1, 3).T
    _balance(program, spread.amount, spread.block, ways, sizes, f"G3[gpus {name}]")
    asked = spread.used >= 0
    amount, used = spread.amount[asked], spread.used[asked]
    if not used.size:
        return
    _balance(program, used, 1, ways, needs, f"G3[nodes {name}]")
    count = len(used)
    values = np.ones((count, 2, 2), dtype=np.int64)
    values[:, 0, 1], values[:, 1, 1] = -model.upper_of(amount), -1
    model.rows(
        np.full(2 * count, 2), np.repeat(np.stack([amount, used], axis=1), 2, axis=0).reshape(-1), values.reshape(-1),
        np.tile([-FREE, 0], count), np.tile([0, FREE], count), lambda k: f"G3[{'used' if k % 2 else 'uses'} {name}]",
    )  # fmt: skip


def _balance(program: Program, parts: IntArray, block: int, ways: IntArray, needs: IntArray, name: str) -> None:
    """What is on the nodes is what the way that is gone needs."""
    values = np.concatenate([np.full(len(parts), block), -needs])
    program.model.rows([len(values)], np.concatenate([parts, ways]), values, 0, 0, lambda _: name)


def _add_replacements(program: Program) -> None:
    """R2: where a gang has no workers, no node replaces two lost ones."""
    s, model = program.snapshot, program.model
    replaced: dict[tuple[int, int], list[int]] = defaultdict(list)
    for spread in program.columns.spreads:
        if spread.move is Move.REPAIR and s.jobs[spread.job].worker_gpus is None:
            for n, column in zip(spread.node.tolist(), spread.amount.tolist(), strict=True):
                replaced[spread.job, n].append(column)
    for (job, n), columns in replaced.items():
        if len(columns) > 1:
            model.row(
                columns, [1] * len(columns), -FREE, 1,
                lambda j=job, n=n: f"G3[{s.jobs[j].id} once on {s.nodes[n].name}]",  # type: ignore[misc]
            )  # fmt: skip
