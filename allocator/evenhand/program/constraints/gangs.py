"""G1 to G4: a gang whole or not at all, on one type (G2: every way to go has one), in its shape (G3, G4).

For each unit u: sum over its ways to go of x_u <= jobs in it (= 1 where it is pinned and may only stay or grow).
For a gang of W workers over pools p: sum_p a_p = W x. For a gang placed node by node: block * sum_n f_n = sum_s size_s y_s;
f_n <= most_n b_n, f_n >= b_n, sum_n b_n = sum_s nodes_s y_s where its shape prescribes the number of nodes.
"""

from __future__ import annotations

from collections import defaultdict

from evenhand.outcome import Move
from evenhand.program.variables import Program
from evenhand.solvers.linear_model import FREE


def applies(program: Program) -> bool:
    """Whether there is anything to decide."""
    return bool(program.columns.moves)


def add_rows(program: Program) -> None:
    """Add the rows of every unit, split gang and spread gang."""
    s, model = program.snapshot, program.model
    reserved_of: dict[int, list[int]] = defaultdict(list)
    for unit, _, column in program.columns.reserved:
        reserved_of[unit.job].append(column)
    for unit in (*program.index.pending, *program.index.running):
        ways = [m.column for m in program.columns.by_unit.get(unit.job, ())]
        reserved = reserved_of[unit.job] if s.pending[unit.job] else []
        if ways or reserved:
            most = len(unit.jobs)
            least = most if s.pinned[unit.job] else 0
            ways += reserved
            name = lambda u=unit: f"G1[{s.jobs[u.job].id}]"  # noqa: E731
            program.columns.unit_rows[unit.job] = model.row(ways, [1] * len(ways), least, most, name)
    for move in program.columns.moves:
        split = program.columns.workers.get(move.column)
        if split is not None and move.site is not None:
            model.row(
                [*split.values(), move.column], [1] * len(split) + [-move.site.workers], 0, 0,
                lambda m=move: f"G3[{model.column_name(m.column)}]",  # type: ignore[misc]
            )  # fmt: skip
    _add_spreads(program)


def _add_spreads(program: Program) -> None:
    s, model = program.snapshot, program.model
    replaced: dict[tuple[int, int], list[int]] = defaultdict(list)
    for spread in program.columns.spreads:
        name = s.jobs[spread.unit.job].id
        columns = [*spread.amount.values(), *(c for _, _, c in spread.sizes)]
        values = [spread.block] * len(spread.amount) + [-size for size, _, _ in spread.sizes]
        model.row(columns, values, 0, 0, lambda n=name: f"G3[gpus {n}]")  # type: ignore[misc]
        if spread.used:
            ways = [*spread.used.values(), *(c for _, _, c in spread.sizes)]
            needs = [1] * len(spread.used) + [-need for _, need, _ in spread.sizes]
            model.row(ways, needs, 0, 0, lambda n=name: f"G3[nodes {n}]")  # type: ignore[misc]
        for n, used in spread.used.items():
            amount = spread.amount[n]
            model.row([amount, used], [1, -model.upper_of(amount)], -FREE, 0, lambda n=name: f"G3[uses {n}]")  # type: ignore[misc]
            model.row([amount, used], [1, -1], 0, FREE, lambda n=name: f"G3[used {n}]")  # type: ignore[misc]
        if spread.move is Move.REPAIR and s.jobs[spread.unit.job].worker_gpus is None:
            for n, column in spread.amount.items():
                replaced[spread.unit.job, n].append(column)
    for (job, n), columns in replaced.items():
        if len(columns) > 1:
            model.row(
                columns, [1] * len(columns), -FREE, 1,
                lambda j=job, n=n: f"G3[{s.jobs[j].id} once on {s.nodes[n].name}]",  # type: ignore[misc]
            )  # fmt: skip
