"""E1: envy beyond one gang, in GPUs of the envied; added only for pairs that a solution has shown to envy.

excess_l (e_i/e_l) >= L_i((e_i/e_l) X_l) - thr_i - big_i, everything in thousandths; L_i as in T3.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import numpy.typing as npt

from evenhand.goals import largest_gangs
from evenhand.program.prices import SCALE, WEIGHT_ENVY
from evenhand.program.variables import MoveColumn, Program
from evenhand.solvers.linear_model import FREE

FloatArray = npt.NDArray[np.float64]
FINE = 1000
"""Envy rows are scaled by this once more, so that rounding a coefficient costs a millionth of a GPU."""


def applies(program: Program) -> bool:
    """Whether there are two groups to compare."""
    return len(program.target.leaves) > 1


def add_pairs(program: Program, pairs: list[tuple[int, int]], columns: dict[int, int]) -> None:
    """Add rows for pairs (envious, envied) of leaf positions; `columns` remembers each envied leaf's excess."""
    s, model, target = program.snapshot, program.model, program.target
    biggest = largest_gangs(s)
    most = _most(program)
    moves: dict[int, list[MoveColumn]] = defaultdict(list)
    for m in program.columns.moves:
        if s.budgeted[m.unit.job]:
            moves[int(s.group[m.unit.job])].append(m)
    fixed: dict[int, list[int]] = defaultdict(list)
    for j in program.fixed:
        if s.budgeted[j]:
            fixed[int(s.group[j])].append(j)
    for i, other in pairs:
        gi, gl = int(target.leaves[i]), int(target.leaves[other])
        if other not in columns:
            columns[other] = model.column(
                0, int(most[other]), -round(WEIGHT_ENVY * SCALE / (1000 * FINE)),
                lambda g=gl: f"excess[{s.tree.ids[g]}]",  # type: ignore[misc]
            )  # fmt: skip
        ratio = float(target.entitled[other] / target.entitled[i])
        constant, slope = float(target.values.base[i]), target.values.lever[i]
        unit = 1000 * FINE
        right = (constant - float(biggest[gi])) * ratio * unit
        terms: dict[int, float] = {columns[other]: 1.0}
        for m in moves[gl]:
            terms[m.column] = terms.get(m.column, 0.0) - slope[m.gpu_type] * m.gpus * unit
        for m in moves[gi]:
            speed = int(s.speed_milli[m.unit.job, m.gpu_type]) / 1000.0
            terms[m.column] = terms.get(m.column, 0.0) + speed * m.gpus * ratio * unit
        for unit_, t, column in program.columns.reserved:
            if int(s.group[unit_.job]) == gi:
                terms[column] = int(s.speed_milli[unit_.job, t]) / 1000.0 * int(s.size[unit_.job]) * ratio * unit
        for j in fixed[gl]:
            right += slope[int(s.held_type[j])] * int(s.held[j]) * unit
        for j in fixed[gi]:
            right -= s.held_speed_milli(j) / 1000.0 * int(s.held[j]) * ratio * unit
        model.row(
            list(terms), [round(v) for v in terms.values()], round(right), FREE,
            lambda a=gi, b=gl: f"E1[{s.tree.ids[a]} envies {s.tree.ids[b]}]",  # type: ignore[misc]
        )  # fmt: skip


def held(program: Program, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What a point, in parts if need be, gives to groups: GPUs by group and type, float [G, T], and throughput, float [G]."""
    s = program.snapshot
    bundles, work = np.zeros((len(s.tree.ids), len(s.types))), np.zeros(len(s.tree.ids))
    moves = [m for m in program.columns.moves if m.gpu_type >= 0]
    column, job, kind, gpus = np.array([(m.column, m.unit.job, m.gpu_type, m.gpus) for m in moves]).reshape(-1, 4).T
    fixed = np.array([j for j in program.fixed if s.held_type[j] >= 0], dtype=np.int64)
    speed = np.concatenate([s.speed_milli[job, kind], [s.held_speed_milli(j) for j in fixed.tolist()]]) / 1000.0
    job, kind = np.concatenate([job, fixed]), np.concatenate([kind, s.held_type[fixed]])
    gpus = np.concatenate([gpus * x[column], s.held[fixed]])
    mine = s.budgeted[job]
    np.add.at(bundles, (s.group[job[mine]], kind[mine]), gpus[mine])
    np.add.at(work, s.group[job[mine]], (gpus * speed)[mine])
    for unit, t, at in program.columns.reserved:
        j = unit.job
        work[int(s.group[j])] += float(x[at]) * float(s.size[j]) * float(s.speed_milli[j, t]) / 1000.0
    return bundles, work


def _most(program: Program) -> FloatArray:
    """More than any excess by envied leaf, scaled, float [L]: tight, for a solver must be able to add them all up."""
    values, entitled = program.target.values, program.target.entitled
    fixed = float((values.base / entitled).max()) * entitled
    slope = float(values.lever.max(initial=0.0)) * program.snapshot.total_gpus
    return np.asarray(np.ceil((fixed + slope + 1.0) * 1000 * FINE))
