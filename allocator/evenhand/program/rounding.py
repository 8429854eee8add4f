"""A whole point from a mix of plans, without a solver: each group's main plan, less arrivals that do not fit together."""

from __future__ import annotations

import numpy as np

from evenhand.program.decompose import Mixture
from evenhand.shapes import BoolArray, IntArray
from evenhand.solvers.linear_model import FREE, Arrays


def fitted(arrays: Arrays, mix: Mixture, ways: IntArray, arrives: IntArray, gpus: IntArray) -> IntArray:
    """Ways as the main plans take them, arrivals only while every row leaves room, int [c]; all other columns 0.

    Arrivals on which plans of the mix agree come first, then large ones.

    Parameters
    ----------
    ways : columns that plans decide, int [W]; arrives : those among them that may stay away, int [A]; gpus : what one job
        of each of these takes, int [A].
    """
    x = np.zeros(arrays.shape[1], dtype=np.int64)
    x[ways] = mix.main[ways]
    x[arrives] = 0
    by_column = np.argsort(arrays.columns, kind="stable")
    row = np.repeat(np.arange(arrays.shape[0]), np.diff(arrays.starts))[by_column]
    value = arrays.values[by_column]
    starts = np.searchsorted(arrays.columns[by_column], np.arange(arrays.shape[1] + 1))
    helps = np.flatnonzero(_may_help(arrays, ways))
    room = (arrays.row_upper - arrays.activity(x)).tolist()
    rows, values, firsts = row.tolist(), value.tolist(), starts.tolist()
    capped = (arrays.row_upper < FREE).tolist()
    # What makes room where it is needed goes as far as its own rows let it.
    for c in helps.tolist():
        here = range(firsts[c], firsts[c + 1])
        most = int(arrays.upper[c])
        for k in here:
            if values[k] > 0 and capped[rows[k]]:
                most = min(most, room[rows[k]] // values[k])
        if most > 0:
            for k in here:
                room[rows[k]] -= values[k] * most
    wanted = mix.main[arrives]
    some = np.flatnonzero(wanted > 0)
    sure = mix.x[arrives[some]] >= wanted[some] - 1e-6
    for a in some[np.lexsort((some, -gpus[some], ~sure))].tolist():
        c = int(arrives[a])
        here = range(firsts[c], firsts[c + 1])
        most = int(wanted[a])
        for k in here:
            if values[k] > 0 and capped[rows[k]]:
                most = min(most, max(0, room[rows[k]] // values[k]))
        if most:
            x[c] = most
            for k in here:
                room[rows[k]] -= values[k] * most
    return x


def _may_help(arrays: Arrays, ways: IntArray) -> BoolArray:
    """Columns other than ways that cost nothing and make room in a row with an upper bound, bool [c]."""
    row = np.repeat(np.arange(arrays.shape[0]), np.diff(arrays.starts))
    makes = (arrays.values < 0) & (arrays.row_upper[row] < FREE)
    found = np.zeros(arrays.shape[1], dtype=bool)
    found[arrays.columns[makes]] = True
    found[ways] = False
    return np.asarray(found & (arrays.cost == 0))
