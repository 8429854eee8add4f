"""E1: envy beyond one gang, in GPUs of the envied; added only for pairs that a solution has shown to envy.

excess_l (e_i/e_l) >= L_i((e_i/e_l) X_l) - thr_i - big_i, everything in thousandths; L_i as in T3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.goals import largest_gangs
from evenhand.program.prices import SCALE, WEIGHT_ENVY
from evenhand.program.variables import Program
from evenhand.shapes import BoolArray, IntArray
from evenhand.solvers.linear_model import FREE

FloatArray = npt.NDArray[np.float64]
FINE = 1000
"""Envy rows are scaled by this once more, so that rounding a coefficient costs a millionth of a GPU."""


def applies(program: Program) -> bool:
    """Whether there are two groups to compare."""
    return len(program.target.leaves) > 1


@dataclass(frozen=True, eq=False)
class Holders:
    """What can hold budgeted GPUs: ways and fixed jobs, ordered by group.

    Attributes
    ----------
    column : of each, int [H], -1 of what is fixed; group, kind, gpus : group, GPU type and GPUs, int [H]; speed : throughput of
        one GPU, float [H]; bundle : whether the GPUs count as held (reservations only work), bool [H].
    starts : first of each group, int [G + 1].
    """

    column: IntArray
    group: IntArray
    kind: IntArray
    gpus: IntArray
    speed: FloatArray
    bundle: BoolArray
    starts: IntArray

    def of(self, group: int) -> slice:
        """Those of one group."""
        return slice(int(self.starts[group]), int(self.starts[group + 1]))


def holders(program: Program) -> Holders:
    """Who can hold budgeted GPUs."""
    s, moves = program.snapshot, program.columns.moves
    goes = np.stack([moves.column, moves.job, moves.gpu_type, moves.gpus, np.ones_like(moves.column)], axis=1)
    more = [(column, unit.job, t, int(s.size[unit.job]), 0) for unit, t, column in program.columns.reserved]
    more += [(-1, j, int(s.held_type[j]), int(s.held[j]), 1) for j in program.fixed if s.held_type[j] >= 0]
    others = np.array(more, dtype=np.int64).reshape(-1, 5)
    column, job, kind, gpus, bundle = np.concatenate([goes[moves.gpu_type >= 0], others]).T
    mine = np.flatnonzero(s.budgeted[job])
    mine = mine[np.argsort(s.group[job[mine]], kind="stable")]
    job, kind = job[mine], kind[mine]
    return Holders(
        column[mine], s.group[job], kind, gpus[mine], s.speed_milli[job, kind] / 1000.0, bundle[mine] > 0,
        np.searchsorted(s.group[job], np.arange(len(s.tree.ids) + 1)),
    )  # fmt: skip


def add_pairs(program: Program, pairs: list[tuple[int, int]], columns: dict[int, int]) -> None:
    """Add rows for pairs (envious, envied) of leaf positions; `columns` remembers each envied leaf's excess."""
    s, model, target = program.snapshot, program.model, program.target
    ids, leaves = s.tree.ids, target.leaves.tolist()
    fresh = sorted({other for _, other in pairs} - columns.keys())
    if fresh:
        first = model.columns(
            len(fresh), 0, _most(program)[fresh].astype(np.int64), -round(WEIGHT_ENVY * SCALE / (1000 * FINE)),
            lambda k: f"excess[{ids[leaves[fresh[k]]]}]",
        )  # fmt: skip
        columns.update({other: first + k for k, other in enumerate(fresh)})
    biggest, all_ = largest_gangs(s), holders(program)
    unit = 1000 * FINE
    found, values, lengths, lower = [], [], [], []
    for i, other in pairs:
        gi, gl = leaves[i], leaves[other]
        ratio = float(target.entitled[other] / target.entitled[i])
        slope, own, theirs = target.values.lever[i], all_.of(gi), all_.of(gl)
        wanted = np.where(all_.bundle[theirs], slope[all_.kind[theirs]] * all_.gpus[theirs], 0.0) * unit
        reached = all_.speed[own] * all_.gpus[own] * (ratio * unit)
        their_way, own_way = all_.column[theirs] >= 0, all_.column[own] >= 0
        right = (float(target.values.base[i]) - float(biggest[gi])) * ratio * unit
        right += float(wanted[~their_way].sum()) - float(reached[~own_way].sum())
        some = their_way & all_.bundle[theirs]
        found += [np.array([columns[other]]), all_.column[theirs][some], all_.column[own][own_way]]
        values += [np.ones(1), -wanted[some], reached[own_way]]
        lengths.append(1 + int(some.sum()) + int(own_way.sum()))
        lower.append(round(right))
    if pairs:
        model.rows(
            np.array(lengths), np.concatenate(found), np.rint(np.concatenate(values)).astype(np.int64), np.array(lower), FREE,
            lambda k: f"E1[{ids[leaves[pairs[k][0]]]} envies {ids[leaves[pairs[k][1]]]}]",
        )  # fmt: skip


def held(program: Program, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What a point, in parts if need be, gives to groups: GPUs by group and type, float [G, T], and throughput, float [G]."""
    all_ = holders(program)
    gpus = all_.gpus * np.where(all_.column >= 0, x[all_.column], 1.0)
    bundles = np.zeros((len(program.snapshot.tree.ids), len(program.snapshot.types)))
    np.add.at(bundles, (all_.group[all_.bundle], all_.kind[all_.bundle]), gpus[all_.bundle])
    return bundles, np.asarray(np.bincount(all_.group, gpus * all_.speed, len(bundles)), dtype=np.float64)


def _most(program: Program) -> FloatArray:
    """More than any excess by envied leaf, scaled, float [L]: tight, for a solver must be able to add them all up."""
    values, entitled = program.target.values, program.target.entitled
    fixed = float((values.base / entitled).max()) * entitled
    slope = float(values.lever.max(initial=0.0)) * program.snapshot.total_gpus
    return np.asarray(np.ceil((fixed + slope + 1.0) * 1000 * FINE))
