"""Most entitlement-weighted product of throughputs (rule T4, Eisenberg-Gale): fair, and nothing is wasted.

Outer approximation over linear programs: each logarithm is bounded from above by tangents around the last
answer, each round closer together. What is found is held against the dual bound that the prices of GPUs
and caps prove, in plain arithmetic and whatever the solver's tolerances: for any prices p and q,
`sum e_i log v_i <= p m + q cap + sum e_i (log(e_i max_t W_it / (p_t + q_i)) - 1)`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.errors import SolverError
from evenhand.fairness.bundle_program import LimitHit
from evenhand.fairness.fair_share import fair_share
from evenhand.fairness.group_value import FloatArray, GroupValues
from evenhand.fairness.max_min import nearest_with, solved
from evenhand.fairness.rows import Grid, capacity_rows, compressed, grid_of
from evenhand.fairness.twins import merged
from evenhand.solvers.lp import INFINITY, LinearProgram, stack

GAP, ROUGH = 1e-7, 1e-3
"""Proven distance from the best, in `sum e_i log v_i` over `sum e_i`, up to which an answer is called best, and up
to which it is served at all."""
_NEAR = np.linspace(-1.0, 1.0, 9)
_FAR = np.array([0.25, 0.5, 0.75, 1.0])
_TANGENTS = len(_NEAR) + 2 * len(_FAR)
_WIDEST, _CLOSEST = 1.5, 2e-7
"""How far the near tangents reach to either side, in logarithms: at first, and at last. The far ones go on
to `_FARTHEST` in equal ratios, so that nobody is thrown far by a tangent that is right only nearby."""
_FARTHEST = 3.0
_CLOSER = 4.0
_MOST_ROUNDS = 40


def nash(values: GroupValues, iterations: int = 100_000) -> tuple[FloatArray, bool]:
    """Best bundles, of optima the nearest to the slices, float [L, T], and whether the gap is proven.

    Where the iterations do not do, the answer is the last one found if the gap is small, else the slices.
    """
    x, weighty = fair_share(values), values.weighty
    if not len(values.leaves):
        return x, True
    twins = merged(values.only(weighty))
    grid = grid_of(twins.values)
    if not grid.count:
        return x, True
    try:
        found = _Tangents(grid, iterations).best()
        split = nearest_with(grid, found.split, iterations)
    except (LimitHit, SolverError):
        return x, False
    gap = gap_of(twins.values, twins.values.brought(split), found.type_price, found.cap_price)
    if gap <= ROUGH:
        x[weighty] = twins.lift(twins.values.per_leaf(split))
    return x, gap <= GAP


def gap_of(values: GroupValues, value: FloatArray, type_price: FloatArray, cap_price: FloatArray) -> float:
    """How far `sum e_i log v_i` of values can be from the best, over `sum e_i`.

    Parameters
    ----------
    value : what bundles within capacity and caps bring, float [L].
    type_price, cap_price : any prices of a GPU by type and of a class's cap, 0 or more, float [T] and [K].
    """
    usable = (values.weights > 0) & (values.capacity > 0)
    some = values.usable.any(axis=1)
    if not some.any():
        return 0.0
    price = np.maximum(type_price[None, :] + cap_price[:, None], 1e-300)
    ratios = np.zeros(len(values.leaves))
    np.maximum.at(ratios, values.of, np.where(usable, values.weights / price, 0.0).max(axis=1))
    e, value, ratio = values.entitled[some], value[some], ratios[some]
    if (value <= 0).any():
        return np.inf
    spent = float(type_price @ values.capacity + cap_price[usable.any(axis=1)] @ values.cap[usable.any(axis=1)])
    return float((e * (np.log(e * ratio / value) - 1)).sum() + spent) / float(e.sum())


@dataclass(frozen=True, eq=False)
class _Found:
    """GPUs, float [K, T], and the prices that prove them: of types, float [T], and of caps, float [K]."""

    split: FloatArray
    type_price: FloatArray
    cap_price: FloatArray


class _Tangents:
    """The program: amounts, and for each leaf its value in parts between the tangents' crossings.

    A leaf's value is counted in e_i for what its floor brings: slopes are then about 1 for every leaf.
    """

    def __init__(self, grid: Grid, iterations: int) -> None:
        values = grid.values
        self._grid, self._left = grid, iterations
        self._some = np.unique(grid.leaf)
        place = np.full(len(values.leaves), -1, dtype=np.int64)
        place[self._some] = np.arange(len(self._some))
        self._place = place[grid.leaf]
        self._unit = grid.unit[self._some]
        self._whole = values.entitled[self._some] / self._unit
        self._own = grid.own * (values.entitled / np.maximum(values.floor, 1e-300))[grid.leaf]
        n, leaves = grid.count, len(self._some)
        parts = leaves * _TANGENTS
        zero = np.zeros(leaves)
        tied = compressed(
            np.concatenate([self._place, np.repeat(np.arange(leaves), _TANGENTS)]),
            np.arange(n + parts),
            np.concatenate([self._own, np.full(parts, -1.0)]),
            zero,
            zero,
        )
        self._columns = n + np.arange(parts)
        self._program = LinearProgram(
            np.zeros(n + parts),
            stack(capacity_rows(grid), tied),
            np.zeros(n + parts),
            np.full(n + parts, INFINITY),
            maximize=True,
        )

    def best(self) -> _Found:
        """Bring the tangents closer and closer to the answer; the last one found if the iterations do not do.

        Raises
        ------
        LimitHit
            If there is none, or if the rounds do not do.
        """
        leaves = len(self._some)
        middle, reach = np.ones(leaves), np.full(leaves, _WIDEST)
        last: _Found | None = None
        for _ in range(_MOST_ROUNDS):
            self._draw(middle, reach)
            try:
                found = solved(self._program, self._left)
            except LimitHit:
                if last is None:
                    raise
                return last
            self._left -= found.iterations
            amounts = np.maximum(found.x[: self._grid.count], 0.0)
            level = np.bincount(self._place, weights=self._own * amounts, minlength=leaves) / self._whole
            step = np.log(np.maximum(level, 1e-300) / middle)
            if reach.max() <= _CLOSEST and (np.abs(step) <= reach).all():
                return self._priced(amounts, found.row_dual)
            last = self._priced(amounts, found.row_dual)
            far, step = np.abs(step), np.clip(step, -_FARTHEST, _FARTHEST)
            middle = middle * np.exp(step)
            closer = np.maximum(reach / _CLOSER, far / 3)
            reach = np.clip(np.where(far <= 0.9 * reach, closer, 1.5 * far), _CLOSEST, _WIDEST)
        raise LimitHit("the iterations allowed do not do")

    def _draw(self, middle: FloatArray, reach: FloatArray) -> None:
        """Put the tangents of each leaf around `middle`, near ones up to `reach` away."""
        wide = reach[:, None]
        far = wide * (_FARTHEST / wide) ** _FAR
        place = np.concatenate([-far[:, ::-1], wide * _NEAR, far], axis=1)
        touch, apart = middle[:, None] * np.exp(place), np.diff(place, axis=1)
        cross = touch[:, 1:] * apart / np.expm1(apart) * self._whole[:, None]
        width = np.full(touch.shape, INFINITY)
        width[:, :-1] = np.diff(cross, axis=1, prepend=0.0)
        slope = self._unit[:, None] / touch
        self._program.set_columns(self._columns, np.zeros(width.size), width.reshape(-1))
        self._program.set_cost(np.concatenate([np.zeros(self._grid.count), slope.reshape(-1)]))

    def _priced(self, amounts: FloatArray, dual: FloatArray) -> _Found:
        types, classes = len(self._grid.values.capacity), len(self._grid.values.cap)
        price = np.maximum(dual, 0.0)
        return _Found(self._grid.split(amounts), price[:types], price[types : types + classes] / self._grid.class_unit)
