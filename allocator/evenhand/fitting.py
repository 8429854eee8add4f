"""Which types each job fits and how fast it is there (rules S5, S6): once per distinct shape, then by array."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.shapes import BoolArray, Filter, IntArray, Sites
from evenhand_models import Job, ThroughputUnit

MOST_SPEED_MILLI = 1_000_000
"""A GPU never counts for more than 1,000 of a job's slowest (rule S6)."""
Shape = tuple[Filter, int | None, int | None, int, int]
"""Filter, worker, GPUs a node, least and full size: all but speedups that decides where a job fits."""

_ASKED = attrgetter("requires", "same", "worker_gpus", "gpus_per_node", "min_gpus", "gpus")
_Asked = tuple[tuple[tuple[str, str], ...], str | None, int | None, int | None, int, int]


class Fitting(NamedTuple):
    """What the jobs ask for, and where that fits.

    Attributes
    ----------
    fits, full : types each job fits at its least size, at its full size, bool [J, T].
    speed : its speed on the former in thousandths, int [J, T].
    shape : number of each job's shape in `shapes`, int [J].
    """

    fits: BoolArray
    full: BoolArray
    speed: IntArray
    shape: IntArray
    shapes: tuple[Shape, ...]


class _Places(dict[str, int]):
    """Index of each type by name, -1 for names the cluster does not have."""

    def __missing__(self, name: str) -> int:
        return -1


def fit_and_speed(jobs: Sequence[Job], types: tuple[str, ...], sites: Sites, unit: ThroughputUnit) -> Fitting:
    """Find the types that each job fits, and how fast it is there."""
    shape = (len(jobs), len(types))
    fits, full = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    speed = np.zeros(shape, dtype=np.int64)
    row, kind, declared = _declared(jobs, types)
    numbers, shapes = _shapes(jobs)
    pairs, which = np.unique(numbers[row] * max(1, len(types)) + kind, return_inverse=True)
    stand = np.array([_stand(sites, shapes[p // len(types)], p % len(types)) for p in pairs.tolist()], dtype=bool)
    least, whole = stand.reshape(-1, 2)[which.reshape(-1)].T
    row, kind, declared, whole = row[least], kind[least], declared[least], whole[least]
    fits[row, kind] = True
    full[row, kind] = whole
    base = np.full(len(jobs), 0.0 if unit is ThroughputUnit.BEST else np.inf)
    (np.maximum if unit is ThroughputUnit.BEST else np.minimum).at(base, row, declared)
    with np.errstate(over="ignore"):
        ratio = np.minimum(MOST_SPEED_MILLI, 1000 * declared / base[row])  # before rounding: it may be infinite
    speed[row, kind] = np.maximum(1, np.rint(ratio)).astype(np.int64)
    return Fitting(fits, full, speed, numbers, tuple(shapes))


def _declared(jobs: Sequence[Job], types: tuple[str, ...]) -> tuple[IntArray, IntArray, npt.NDArray[np.float64]]:
    """Speedups above 0 on types of the cluster: job, type and value, job by job."""
    place = _Places({name: t for t, name in enumerate(types)})
    tables = list(map(attrgetter("speedup"), jobs))
    row = np.repeat(np.arange(len(jobs)), np.fromiter(map(len, tables), dtype=np.int64, count=len(jobs)))
    kind = np.fromiter(map(place.__getitem__, chain.from_iterable(tables)), dtype=np.int64, count=len(row))
    values = chain.from_iterable([table.values() for table in tables])
    declared = np.fromiter(values, dtype=np.float64, count=len(row))
    some = (kind >= 0) & (declared > 0)
    return row[some], kind[some], declared[some]


def _shapes(jobs: Sequence[Job]) -> tuple[IntArray, list[Shape]]:
    """Number of each job's shape, int [J], and the shapes."""
    known: dict[_Asked, int] = {}  # without a filter: to look one up takes as long as all the rest
    numbers = []
    for requires, same, worker, per_node, least, size in map(_ASKED, jobs):
        labels = tuple(sorted(requires.items())) if requires else ()
        numbers.append(known.setdefault((labels, same, worker, per_node, least or size, size), len(known)))
    return np.array(numbers, dtype=np.int64), [(Filter(key[0], key[1]), *key[2:]) for key in known]


def _stand(sites: Sites, shape: Shape, gpu_type: int) -> tuple[bool, bool]:
    """Whether a shape stands on a type at its least size, and at its full one."""
    where, worker, per_node, least, size = shape
    if not sites.stands(where, gpu_type, worker, per_node, least):
        return False, False
    return True, sites.stands(where, gpu_type, worker, per_node, size)
