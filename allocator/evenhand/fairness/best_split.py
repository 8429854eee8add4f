"""The best split of a bundle among job classes (rule T1): a transport problem with few rows and columns.

Classes come in one by one, and each takes the dearest path: GPUs of a type, perhaps moving other classes
from type to type or out. Many such problems are solved side by side.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_DUST = 1e-12
"""GPUs, relative to the cap, and throughput that are rounding."""
_NEVER = 1e30


def split_of(weights: FloatArray, cap: FloatArray, bundles: FloatArray) -> FloatArray:
    """GPUs by class and type that bring most, float [M, K, T]; none where W = 0.

    Parameters
    ----------
    weights : float [M, K, T]; cap : GPUs of each class, float [M, K]; bundles : float [M, T].
    """
    many, classes, types = weights.shape
    rate = np.concatenate([np.where(weights > 0, weights, -_NEVER), np.zeros((many, classes, 1))], axis=2)
    held = np.zeros((many, classes, types + 1))
    free = np.concatenate([np.maximum(bundles, 0.0), np.full((many, 1), np.inf)], axis=1)
    dust = _DUST * np.maximum(1.0, cap.max(axis=1, initial=0.0))
    for k in range(classes):
        left = cap[:, k].astype(np.float64)
        while True:
            some = np.flatnonzero(left > dust)
            if not len(some):
                break
            left[some] -= _pushed(rate, held, free, left, dust, k, some)
    return held[:, :, :types]


def moves_of(rate: FloatArray, held: FloatArray, dust: FloatArray) -> tuple[FloatArray, IntArray]:
    """Least loss of moving a GPU from place to place, float [M, P, P], and the class that moves, int [M, P, P].

    Parameters
    ----------
    rate, held : float [M, K, P], the last place for holding nothing; dust : what counts as nothing held, float [M].
    """
    many, classes, places = rate.shape
    holds = held > dust[:, None, None]
    least, mover = np.full((many, places, places), _NEVER), np.zeros((many, places, places), dtype=np.int64)
    for k in range(classes):  # one after the other: numpy is slow to find minima along an axis in the middle
        loss = np.where(holds[:, k, :, None], rate[:, k, :, None] - rate[:, k, None, :], _NEVER)
        if k:
            np.copyto(mover, k, where=loss < least)
        np.minimum(least, loss, out=least)
    return least, mover


def _pushed(
    rate: FloatArray, held: FloatArray, free: FloatArray, left: FloatArray, dust: FloatArray, k: int, some: IntArray
) -> FloatArray:
    """Send GPUs of class k along the dearest path of each problem; how many went, float [len(some)]."""
    places, at = rate.shape[2], np.arange(len(some))
    loss, mover = moves_of(rate[some, : k + 1], held[some, : k + 1], dust[some])
    gain = rate[some, k].copy()
    came = np.full((len(some), places), -1)
    for _ in range(places - 1):
        through = gain[:, :, None] - loss
        best = through.max(axis=1)
        better = best > gain + _DUST
        if not better.any():
            break
        came = np.where(better, through.argmax(axis=1), came)
        gain = np.where(better, best, gain)
    end = np.where(free[some] > dust[some, None], gain, -2 * _NEVER).argmax(axis=1)
    amount = np.minimum(left[some], free[some, end])
    steps, to = [], end.copy()
    for _ in range(places):
        source = came[at, to]
        going = np.flatnonzero(source >= 0)
        if not len(going):
            break
        who = mover[going, source[going], to[going]]
        amount[going] = np.minimum(amount[going], held[some[going], who, source[going]])
        steps.append((going, who, source[going], to[going]))
        to[going] = source[going]
    free[some, end] -= amount
    held[some, k, to] += amount
    for going, who, source, target in steps:
        held[some[going], who, source] -= amount[going]
        held[some[going], who, target] += amount[going]
    return np.asarray(amount)
