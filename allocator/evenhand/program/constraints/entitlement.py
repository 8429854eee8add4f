"""O1 to O3: shortfall against guarantees, inner levels, leaves' aims and owed gangs, counted in `GRAIN`ths of a GPU.

short_c >= a_c - sum of [size rho] x over budgeted jobs below c; short_i >= aim_i - sum of [size r] x over the leaf's;
What is owed is rounded down to the grain, what a gang holds up, so that rounding alone makes nobody short: finer grains
make knapsacks that no solver closes, and nobody a job better off.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from evenhand.claims import claims, gang_weight
from evenhand.program.index import parts_of
from evenhand.program.prices import SCALE, guarantee_weight
from evenhand.program.variables import Program
from evenhand.snapshot import Snapshot
from evenhand.solvers.linear_model import FREE
from evenhand.subset_sums import largest_sum_not_above


def applies(program: Program) -> bool:
    """Whether any work is budgeted."""
    return bool(program.snapshot.budgeted.any())


GRAIN = 16
"""Parts of a GPU in which shortfalls are counted."""


def grains(milli: int) -> int:
    """Thousandths of a GPU in whole grains, rounded down: gangs that fit an entitlement still do."""
    return milli * GRAIN // 1000


def grains_held(milli: int) -> int:
    """Thousandths of a GPU that a gang holds in whole grains, rounded up: rounding alone makes nobody short."""
    return -(-milli * GRAIN // 1000)


def whole_gangs(demands: list[int], entitled: float) -> int:
    """a_c: the largest sum of charged gangs not above what is entitled (GPUs), in grains."""
    return largest_sum_not_above(np.array(demands, dtype=np.int64), int(np.floor(entitled * GRAIN + 1e-6)))


def demands_below(snapshot: Snapshot) -> dict[int, list[int]]:
    """Charged sizes of the budgeted live jobs below each group, in grains."""
    below: dict[int, list[int]] = defaultdict(list)
    for j in np.flatnonzero(snapshot.budgeted):
        rate = int(snapshot.demand_milli[j]) // int(snapshot.size[j])
        parts = [grains(part * rate) for part in parts_of(snapshot, int(j))]
        for c in snapshot.tree.path[int(snapshot.group[j])]:
            below[c].extend(parts)
    return below


def add_rows(program: Program) -> None:
    """Shortfall columns and rows of the tree and the leaves, and the price of owed gangs."""
    s, model = program.snapshot, program.model
    tree = s.tree
    charged: dict[int, list[tuple[int, int]]] = defaultdict(list)
    useful: dict[int, list[tuple[int, int]]] = defaultdict(list)
    charged_fixed: dict[int, int] = defaultdict(int)
    useful_fixed: dict[int, int] = defaultdict(int)
    demands, weight = demands_below(s), claims(s, program.entitlement)
    owed = {j: round(gang_weight(s, program.entitlement, weight, j) * SCALE) * int(s.size[j]) for j in program.owed}

    def count(job: int, column: int, gpu_type: int, gpus: int) -> None:
        g = int(s.group[job])
        charged[g].append((column, grains_held(gpus * int(s.rate_milli[gpu_type]))))
        useful[g].append((column, grains_held(gpus * int(s.speed_milli[job, gpu_type]))))
        if job in owed:
            model.add_cost(column, owed[job])

    for move in program.columns.moves:
        if s.budgeted[move.unit.job]:
            count(move.unit.job, move.column, move.gpu_type, move.gpus)
    for unit, t, column in program.columns.reserved:
        count(unit.job, column, t, int(s.size[unit.job]))
    for j in program.fixed:
        if s.budgeted[j]:
            g, t = int(s.group[j]), int(s.held_type[j])
            charged_fixed[g] += grains_held(int(s.held[j]) * int(s.rate_milli[t]))
            useful_fixed[g] += grains_held(int(s.held[j]) * s.held_speed_milli(j))
    model.offset -= sum(price for j, price in owed.items() if j not in program.fixed)

    below: dict[int, list[int]] = defaultdict(list)
    for g in sorted(set(charged) | set(charged_fixed)):
        for c in tree.path[g]:
            below[c].append(g)
    top = max(tree.height, default=0)
    for c in range(len(tree.ids)):
        parts = [part for g in below[c] for part in charged[g]]
        held = sum(charged_fixed[g] for g in below[c])
        if tree.groups[c].guaranteed_gpus is not None and program.entitlement.guaranteed[c] > 0:
            need = whole_gangs(demands[c], float(program.entitlement.guaranteed[c]))
            _shortfall(program, f"O1[{tree.ids[c]}]", parts, need - held, guarantee_weight(top))
        if tree.children[c]:
            need = whole_gangs(demands[c], float(program.entitlement.entitled[c]))
            _shortfall(program, f"O2[{tree.ids[c]}]", parts, need - held, weight.inner[c])
    for i, g in enumerate(program.target.leaves.tolist()):
        need = grains(int(program.target.aim_milli[i]))
        row = _shortfall(program, f"O3[{tree.ids[g]}]", useful[g], need - useful_fixed[g], weight.leaf[g])
        if row is not None:
            program.columns.leaf_rows[g] = row


def _shortfall(
    program: Program, name: str, parts: list[tuple[int, int]], need: int, weight: float
) -> tuple[int, int] | None:
    """short >= need - sum, priced; coefficients clipped at need (a tighter LP, the same integer answers).

    Returns row and column, None where nothing can be short.
    """
    if need <= 0:
        return None
    model = program.model
    short = model.column(0, need, -round(weight * SCALE / GRAIN), lambda: f"short {name}")
    columns, values = [short], [1]
    for column, value in parts:
        if value > 0:
            columns.append(column)
            values.append(min(value, need))
    return model.row(columns, values, need, FREE, lambda: name), short
