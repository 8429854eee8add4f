"""One bar for leaves of one taste: what each must bring for what it is owed, as high as what any of them would envy.

Leaves whose lines L have the same slopes (rule T3) ask the same of a bundle of another leaf l: with a bar b for
their taste, v_i(x_i) - base_i >= e_i b for each of them and b >= slope (x_l / e_l) say what all their pairs with l
say. That is one constraint for each taste and leaf instead of one for each pair of leaves, and no prices that can
be shifted at will between pairs that are alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.fairness.group_value import FloatArray, GroupValues
from evenhand.fairness.rows import Grid, columns_of, compressed
from evenhand.shapes import BoolArray, IntArray
from evenhand.solvers.lp import INFINITY, Rows

FEW_LEAVES = 30
"""Up to so many leaves bars save nothing."""


@dataclass(frozen=True, eq=False)
class Bars:
    """Tastes that several of L leaves share; Q of them, T types.

    Attributes
    ----------
    taste : the bar of each leaf, -1 where nobody shares its taste, int [L].
    slope : of each taste, throughput per GPU, float [Q, T].
    pays : pairs that go by a bar, the envious first, bool [L, L]; all others need a constraint of their own.
    own : what a bar counts for each leaf: what it is owed in its unit, over the most of those of its taste, float [L].
    scale : that most, float [Q].
    """

    taste: IntArray
    slope: FloatArray
    pays: BoolArray
    own: FloatArray
    scale: FloatArray

    @property
    def count(self) -> int:
        """Number of bars."""
        return len(self.slope)

    @property
    def leaves(self) -> IntArray:
        """Leaves that have a bar, int."""
        return np.flatnonzero(self.taste >= 0)

    def highest(self, table: FloatArray) -> FloatArray:
        """The largest entry of the leaves of each taste: [L, L] as [Q, L]; pairs that go by no bar are left out."""
        found = np.full((self.count, len(self.taste)), -np.inf)
        some = self.leaves
        np.maximum.at(found, self.taste[some], np.where(self.pays, table, -np.inf)[some])
        return found

    def links(self, grid: Grid, first: int) -> Rows:
        """v_i(x_i) - e_i b >= base_i for each of `leaves`; bars are the columns from `first` on."""
        values, leaves = grid.values, self.leaves
        keys, columns = columns_of(grid, leaves)
        unit = grid.unit[leaves]
        return compressed(
            np.concatenate([keys, np.arange(len(leaves))]),
            np.concatenate([columns, first + self.taste[leaves]]),
            np.concatenate([grid.own[columns], -self.own[leaves]]),
            values.base[leaves] / unit,
            np.full(len(leaves), INFINITY),
        )

    def rows(self, grid: Grid, first: int, taste: IntArray, envied: IntArray) -> Rows:
        """b >= slope (x_l / e_l), one row for each of n pairs of a taste and a leaf."""
        keys, columns = columns_of(grid, envied)
        other = envied[keys]
        wished = self.slope[taste[keys], grid.gpu_type[columns]] * self.scale[taste[keys]]
        wished *= grid.unit[other] / grid.values.entitled[other]
        return compressed(
            np.concatenate([np.arange(len(taste)), keys]),
            np.concatenate([first + taste, columns]),
            np.concatenate([np.ones(len(taste)), -wished]),
            np.zeros(len(taste)),
            np.full(len(taste), INFINITY),
        )

    def pairs(self, link_price: FloatArray, taste: IntArray, envied: IntArray, price: FloatArray) -> BoolArray:
        """Pairs whose own constraints, in place of the bars, could have prices with the same optimum, bool [L, L].

        What a taste pays for others is dealt out to its leaves in order, to each as much as its link pays.

        Parameters
        ----------
        link_price : of the links of `leaves`, float.
        taste, envied, price : of the constraints of bars that are there, int [n], int [n], float [n].
        """
        found = np.zeros(self.pays.shape, dtype=bool)
        leaves = self.leaves
        paid = link_price * self.own[leaves]
        for q in range(self.count):
            mine = leaves[(self.taste[leaves] == q) & (paid > 0)]
            theirs = np.flatnonzero((taste == q) & (price > 0))
            if len(mine) and len(theirs):
                there, here = _ends(price[theirs]), _ends(paid[(self.taste[leaves] == q) & (paid > 0)])
                cuts = np.unique(np.concatenate([here, there]))
                middle = (cuts + np.append(0.0, cuts[:-1])) / 2
                found[mine[np.searchsorted(here, middle)], envied[theirs[np.searchsorted(there, middle)]]] = True
        return found


def _ends(amounts: FloatArray) -> FloatArray:
    """Where each ends that is laid behind those before it, the last at 1."""
    ends = np.cumsum(amounts)
    return np.asarray(ends / ends[-1])


def no_bars(values: GroupValues) -> Bars:
    """Every pair for itself."""
    leaves, types = values.slices.shape
    return Bars(
        np.full(leaves, -1), np.zeros((0, types)), np.zeros((leaves, leaves), dtype=bool), np.ones(leaves), np.zeros(0)
    )


def shared_bars(values: GroupValues, unit: FloatArray, oneself: BoolArray) -> Bars:
    """Bars for all slopes that several leaves have.

    Parameters
    ----------
    unit : as in `Grid`, float [L].
    oneself : leaves that may break their own line, where that is more than their value, bool [L]: a bar would hold
        them to it, so leaves of their own taste go by pairs.
    """
    if len(values.leaves) <= FEW_LEAVES:
        return no_bars(values)
    slope, taste, many = np.unique(values.lever, axis=0, return_inverse=True, return_counts=True)
    taste = taste.reshape(-1)
    number = np.where(many > 1, np.cumsum(many > 1) - 1, -1)
    taste = number[taste]
    scale = np.zeros(int((many > 1).sum()))
    some = taste >= 0
    owed = values.entitled / unit
    np.maximum.at(scale, taste[some], owed[some])
    own = np.ones(len(taste))
    own[some] = owed[some] / scale[taste[some]]
    pays = np.broadcast_to(some[:, None], (len(taste), len(taste))) & ~(
        (taste[:, None] == taste[None, :]) & oneself[None, :]
    )
    return Bars(taste, slope[many > 1], pays, own, scale)
