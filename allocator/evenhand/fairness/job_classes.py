"""Jobs of a leaf that take to GPU types alike, as one class (rule T1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.shapes import IntArray

GRIDS = (16, 8, 4, 2, 1, 0)
"""Steps into which speeds are rounded to be called alike, finest first; 0: only which types are of use matters."""
MOST_CLASSES = 6
"""A leaf has at most so many classes: the finest grid that keeps to it is taken, one class where none does."""


@dataclass(frozen=True, eq=False)
class JobClasses:
    """Classes of all leaves, ordered by leaf; K of them.

    Attributes
    ----------
    leaf : position of the leaf, ascending, int [K]; size : GPUs its jobs want, int [K].
    speed_sum : sum of size times speed, thousandths, int [K, T]; of : class of each job, int [J].
    """

    leaf: IntArray
    size: IntArray
    speed_sum: IntArray
    of: IntArray


def job_classes(leaf: IntArray, size: IntArray, speed_milli: IntArray, most: int = MOST_CLASSES) -> JobClasses:
    """Sort jobs into classes.

    Parameters
    ----------
    leaf : position of each job's leaf, int [J]; size : GPUs, int [J]; speed_milli : int [J, T].
    most : classes that a leaf may have.
    """
    leaves = int(leaf.max(initial=-1)) + 1
    keys = np.zeros((len(leaf), 1 + speed_milli.shape[1]), dtype=np.int64)
    keys[:, 0] = leaf
    undecided = np.ones(leaves, dtype=bool)
    for grid in GRIDS:
        jobs = np.flatnonzero(undecided[leaf])
        if not len(jobs):
            break
        looks = looks_of(speed_milli[jobs], grid)
        kinds = np.unique(np.column_stack([leaf[jobs], looks]), axis=0)
        few = undecided & (np.bincount(kinds[:, 0], minlength=leaves) <= most)
        keys[jobs, 1:] = np.where(few[leaf[jobs]][:, None], looks, 0)
        undecided &= ~few
    found, of = np.unique(keys, axis=0, return_inverse=True)
    of = of.reshape(-1)
    count = np.zeros(len(found), dtype=np.int64)
    np.add.at(count, of, size)
    total = np.zeros((len(found), speed_milli.shape[1]), dtype=np.int64)
    np.add.at(total, of, size[:, None] * speed_milli)
    return JobClasses(found[:, 0], count, total, of)


def looks_of(speed_milli: IntArray, grid: int) -> IntArray:
    """What jobs of one class agree in: speed for the best type rounded to the grid, halves up; -1 where of no use.

    Parameters
    ----------
    speed_milli : int [J, T].
    """
    best = np.maximum(speed_milli.max(axis=1, initial=0), 1)[:, None]
    return np.where(speed_milli > 0, (2 * grid * speed_milli + best) // (2 * best), -1)
