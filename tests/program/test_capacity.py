"""Slot rows are exact: what they let through can be placed, what they refuse cannot (rule C1)."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pytest

from evenhand.errors import PlacementError
from evenhand.placement import Arrival, place_workers
from evenhand.shelves import Floor

SIZES = (1, 2, 4, 8)


def slots_allow(free: list[int], workers: dict[int, int]) -> bool:
    return all(
        sum((q // s) * count for q, count in workers.items() if q >= s) <= sum(f // s for f in free)
        for s in SIZES
        if workers.get(s)
    )


def fits(free: list[int], workers: dict[int, int]) -> bool:
    """Try every place, largest first."""
    wanted = [q for q in sorted(workers, reverse=True) for _ in range(workers[q])]

    def put(left: tuple[int, ...], rest: list[int]) -> bool:
        if not rest:
            return True
        tried = set()
        for n, room in enumerate(left):
            if room >= rest[0] and room not in tried:
                tried.add(room)
                if put((*left[:n], room - rest[0], *left[n + 1 :]), rest[1:]):
                    return True
        return False

    return put(tuple(free), wanted)


def test_slot_rows_say_exactly_what_fits_on_three_nodes() -> None:
    rng = Random(7)
    seen = {True: 0, False: 0}
    for _ in range(3_000):
        free = [rng.randint(0, 8) for _ in range(3)]
        workers = {q: rng.randint(0, 3) for q in SIZES}
        allowed = slots_allow(free, workers)
        assert allowed == fits(free, workers), (free, workers)
        seen[allowed] += 1
    assert min(seen.values()) > 300


def test_best_fit_places_whatever_slot_rows_let_through() -> None:
    rng = Random(11)
    placed = 0
    for _ in range(2_000):
        free = [rng.randint(0, 8) for _ in range(rng.randint(1, 12))]
        workers = {q: rng.randint(0, 6) for q in SIZES}
        if not slots_allow(free, workers):
            continue
        placed += 1
        floor = Floor(list(free), list(free))
        arrivals = [Arrival(i, q, 1, 0) for i, q in enumerate(q for q in SIZES for _ in range(workers[q]))]
        found = place_workers(floor, [np.arange(len(free))], arrivals, {})
        assert min(floor.free) >= 0
        assert sum(sum(nodes.values()) for nodes in found.values()) == sum(a.worker for a in arrivals)
    assert placed > 250


def test_what_does_not_fit_is_a_defect_not_a_silent_loss() -> None:
    with pytest.raises(PlacementError):
        place_workers(Floor([4, 4], [4, 4]), [np.arange(2)], [Arrival(0, 8, 1, 0)], {})


def test_the_fullest_node_that_holds_a_worker_takes_it() -> None:
    floor = Floor([2, 4, 8], [2, 4, 8])
    assert floor.shelves(range(3)).best_fit(2) == 0
    assert floor.shelves(range(3)).best_fit(3) == 1


def test_gpus_that_are_free_at_once_go_before_those_somebody_has_to_leave() -> None:
    floor = Floor([2, 4], [0, 4])
    assert floor.shelves(range(2)).best_fit(2) == 1


def test_every_combination_of_a_full_node_is_known() -> None:
    for counts in product(range(9), range(5), range(3), range(2)):
        workers = dict(zip(SIZES, counts, strict=True))
        assert slots_allow([8], workers) == (sum(q * c for q, c in workers.items()) <= 8)
