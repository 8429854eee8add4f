"""Gangs onto nodes: equal workers by best fit, fullest nodes first, so that whole nodes stay free (rule O9)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from evenhand.errors import PlacementError
from evenhand.outcome import Places
from evenhand.shapes import IntArray
from evenhand.shelves import Floor, Shelves
from evenhand.snapshot import Snapshot


def open_floor(snapshot: Snapshot, stays: Mapping[int, Places]) -> Floor:
    """The floor once everything that stays is counted; leavers' GPUs are free, but not at once.

    Parameters
    ----------
    stays : what running jobs hold on, by job index.
    """
    rows = [(n, gpus) for parts in stays.values() for n, gpus in parts]
    node, part = np.array(rows, dtype=np.int64).reshape(len(rows), 2).T
    return floor_under(snapshot, node, part)


def floor_under(snapshot: Snapshot, node: IntArray, gpus: IntArray) -> Floor:
    """The same, from what is held as rows of node and GPUs."""
    s = snapshot
    open_room = np.where(s.opened, s.room, 0)
    listed = s.stands.node >= 0
    left = np.bincount(s.stands.node[listed], s.stands.gpus[listed], len(open_room)).astype(np.int64)
    free = open_room.copy()
    np.subtract.at(free, node, gpus)
    return Floor(free.tolist(), (open_room - left).tolist())


class Arrival(NamedTuple):
    """Equal workers of one gang that go to nodes of one pool."""

    job: int
    worker: int
    workers: int
    pool: int


def place_workers(
    floor: Floor, pools: list[IntArray], arrivals: list[Arrival], counted: Mapping[tuple[int, int], Mapping[int, int]]
) -> dict[int, dict[int, int]]:
    """Place all workers, largest first; returns GPUs by node for each job.

    Parameters
    ----------
    counted : workers that the program put on each node, by (pool, size): taken where best fit fails.

    Raises
    ------
    PlacementError
        If the workers do not fit: the program let through what nodes cannot hold.
    """
    placed: dict[int, dict[int, int]] = defaultdict(dict)
    by_pool: dict[int, list[Arrival]] = defaultdict(list)
    for arrival in arrivals:
        by_pool[arrival.pool].append(arrival)
    for pool, wanted in sorted(by_pool.items()):
        wanted.sort(key=attrgetter("worker"), reverse=True)
        found = _by_best_fit(floor, floor.shelves(pools[pool].tolist()), wanted)
        if found is None:
            found = _as_counted(pool, wanted, counted)
            for _, node, gpus in found:
                floor.take(node, gpus)
        for job, node, gpus in found:
            here = placed[job]
            here[node] = here.get(node, 0) + gpus
    return placed


def _by_best_fit(floor: Floor, shelves: Shelves, wanted: list[Arrival]) -> list[tuple[int, int, int]] | None:
    """Take all workers from the floor, or none.

    A node that was the best fit stays it while it has room, unless what is left on it has yet to be freed by leavers.
    """
    found: list[tuple[int, int, int]] = []
    for worker, alike in groupby(wanted, attrgetter("worker")):
        jobs = [arrival.job for arrival in alike for _ in range(arrival.workers)]
        at = 0
        while at < len(jobs):
            node = shelves.best_fit(worker)
            if node is None:
                for _, taken, gpus in found:
                    floor.take(taken, -gpus)
                return None
            at_once = floor.at_once[node] // worker
            many = at_once if at_once > 0 else floor.free[node] // worker
            here = jobs[at : at + min(many, floor.free[node] // worker)]
            floor.take(node, worker * len(here))
            found += [(job, node, worker) for job in here]
            at += len(here)
    return found


def _as_counted(
    pool: int, wanted: list[Arrival], counted: Mapping[tuple[int, int], Mapping[int, int]]
) -> list[tuple[int, int, int]]:
    left = {key: Counter(dict(nodes)) for key, nodes in counted.items() if key[0] == pool}
    found = []
    for arrival in wanted:
        spots = left.get((pool, arrival.worker), Counter())
        for _ in range(arrival.workers):
            node = next((n for n in sorted(spots) if spots[n] > 0), None)
            if node is None:
                raise PlacementError(pool, arrival.worker)
            spots[node] -= 1
            found.append((arrival.job, node, arrival.worker))
    return found
