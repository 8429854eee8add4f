"""O1 to O3: shortfall against guarantees, inner levels, leaves' aims and owed gangs, counted in `GRAIN`ths of a GPU.

short_c >= a_c - sum of [size rho] x over budgeted jobs below c; short_i >= aim_i - sum of [size r] x over the leaf's;
What is owed is rounded down to the grain, what a gang holds up, so that rounding alone makes nobody short: finer grains
make knapsacks that no solver closes, and nobody a job better off.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from evenhand.claims import claims, owed_weights
from evenhand.gangs_below import GRAIN, GangsBelow, in_grains, in_grains_held
from evenhand.program.prices import SCALE, guarantee_weight
from evenhand.program.variables import Program
from evenhand.shapes import IntArray
from evenhand.snapshot import Snapshot
from evenhand.solvers.linear_model import FREE


def applies(program: Program) -> bool:
    """Whether any work is budgeted."""
    return bool(program.snapshot.budgeted.any())


@dataclass(frozen=True, eq=False)
class _Ways:
    """What counts for groups: budgeted moves, then reservations, those of a group side by side.

    Attributes
    ----------
    job, column, charged, useful : eldest job, column, grains of charge and of throughput, int [W].
    first : where each group's begin, int [G + 1].
    charged_fixed, useful_fixed : grains that pinned jobs of each group hold, int [G].
    """

    job: IntArray
    column: IntArray
    charged: IntArray
    useful: IntArray
    first: IntArray
    charged_fixed: IntArray
    useful_fixed: IntArray


def _ways(program: Program) -> _Ways:
    s, moves = program.snapshot, program.columns.moves
    groups = len(s.tree.ids)
    mine = np.flatnonzero(s.budgeted[moves.job])
    reserved = np.array([(u.job, t, c) for u, t, c in program.columns.reserved], dtype=np.int64).reshape(-1, 3)
    job = np.concatenate([moves.job[mine], reserved[:, 0]])
    kind = np.concatenate([moves.gpu_type[mine], reserved[:, 1]])
    gpus = np.concatenate([moves.gpus[mine], s.size[reserved[:, 0]]])
    column = np.concatenate([moves.column[mine], reserved[:, 2]])
    order = np.argsort(s.group[job], kind="stable")
    job, kind, gpus, column = job[order], kind[order], gpus[order], column[order]
    fixed = np.array(program.fixed, dtype=np.int64)
    fixed = fixed[s.budgeted[fixed]]
    held, held_type, group = s.held[fixed], s.held_type[fixed], s.group[fixed]
    return _Ways(
        job, column,
        charged=in_grains_held(gpus * s.rate_milli[kind]),
        useful=in_grains_held(gpus * s.speed_milli[job, kind]),
        first=np.searchsorted(s.group[job], np.arange(groups + 1)),
        charged_fixed=_sums(group, in_grains_held(held * s.rate_milli[held_type]), groups),
        useful_fixed=_sums(group, in_grains_held(held * s.speed_milli[fixed, held_type]), groups),
    )  # fmt: skip


def _sums(group: IntArray, grains: IntArray, groups: int) -> IntArray:
    found = np.zeros(groups, dtype=np.int64)
    np.add.at(found, group, grains)
    return found


def add_rows(program: Program) -> None:
    """Shortfall columns and rows of the tree and the leaves, and the price of owed gangs."""
    s, tree, entitled = program.snapshot, program.snapshot.tree, program.entitlement
    ways, gangs, weight = _ways(program), GangsBelow(s), claims(s, entitled)
    _price_owed(program, ways, owed_weights(s, entitled, weight, program.owed))
    below = _groups_with_ways(s, ways)
    first = ways.first.tolist()
    top = max(tree.height, default=0)
    for c in range(len(tree.ids)):
        guaranteed = tree.groups[c].guaranteed_gpus is not None and entitled.guaranteed[c] > 0
        if not guaranteed and not tree.children[c]:
            continue
        some = [np.arange(first[g], first[g + 1]) for g in below[c]]
        parts = np.concatenate(some) if some else np.zeros(0, dtype=np.int64)
        columns, grains = ways.column[parts], ways.charged[parts]
        held = int(ways.charged_fixed[below[c]].sum())
        if guaranteed:
            need = gangs.grains_within(c, float(entitled.guaranteed[c])) - held
            row = _shortfall(program, f"O1[{tree.ids[c]}]", columns, grains, need, guarantee_weight(top))
            program.columns.inner_rows += row[:1] if row else ()
        if tree.children[c]:
            need = gangs.grains_within(c, float(entitled.entitled[c])) - held
            row = _shortfall(program, f"O2[{tree.ids[c]}]", columns, grains, need, weight.inner[c])
            program.columns.inner_rows += row[:1] if row else ()
    needs = in_grains(np.asarray(program.target.aim_milli, dtype=np.int64)) - ways.useful_fixed[program.target.leaves]
    for g, need in zip(program.target.leaves.tolist(), needs.tolist(), strict=True):
        here = slice(first[g], first[g + 1])
        row = _shortfall(program, f"O3[{tree.ids[g]}]", ways.column[here], ways.useful[here], need, weight.leaf[g])
        if row is not None:
            program.columns.leaf_rows[g] = row


def _price_owed(program: Program, ways: _Ways, weight: dict[int, float]) -> None:
    """O3: what a gang that is owed whole is worth, however it comes to run or has GPUs reserved."""
    s, model = program.snapshot, program.model
    price = {j: round(w * SCALE) * int(s.size[j]) for j, w in weight.items()}
    for j, worth in price.items():
        model.add_cost(ways.column[ways.job == j], worth)
    model.offset -= sum(worth for j, worth in price.items() if j not in program.fixed)


def _groups_with_ways(snapshot: Snapshot, ways: _Ways) -> list[list[int]]:
    """Of each group those below it, itself included, that have ways to go, ascending."""
    tree = snapshot.tree
    below: dict[int, list[int]] = defaultdict(list)
    for g in np.flatnonzero((np.diff(ways.first) > 0) | (ways.charged_fixed > 0)).tolist():
        for c in tree.path[g]:
            below[c].append(g)
    return [below[c] for c in range(len(tree.ids))]


def _shortfall(
    program: Program, name: str, parts: IntArray, grains: IntArray, need: int, weight: float
) -> tuple[int, int] | None:
    """short >= need - sum, priced; coefficients clipped at need (a tighter LP, the same integer answers).

    Returns row and column, None where nothing can be short.
    """
    if need <= 0:
        return None
    model, some = program.model, grains > 0
    short = model.column(0, need, -round(weight * SCALE / GRAIN), lambda: f"short {name}")
    columns = np.concatenate([[short], parts[some]])
    values = np.concatenate([[1], np.minimum(grains[some], need)])
    return model.rows([len(columns)], columns, values, need, FREE, lambda _: name), short
