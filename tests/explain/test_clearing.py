"""Who would have to go for a gang: found row by row, the same as when every node and every job is tried (rules C1, G3)."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace

import numpy as np
import pytest

from evenhand.explain.clearing import Clearing
from evenhand.explain.giving import Gives
from evenhand.explain.ground import Domain, Shape
from evenhand.explain.yard import Staying, Yard
from evenhand.program.pools import Ask
from evenhand.shapes import Filter


def draw(rng):
    """A small domain with jobs on it, a gang's shape, and who would give way."""
    nodes, room = rng.randint(1, 30), rng.choice((2, 4, 8))
    rows = []
    free = [0] * nodes
    for n in range(nodes):
        left = room
        while left and rng.random() < 0.8:
            gpus = rng.randint(1, left)
            rows.append((rng.randrange(3 * nodes), n, gpus))
            left -= gpus
        free[n] = left if rng.random() < 0.5 else 0
    rows.sort()
    kind = rng.choice(("worker", "per_node", "one", "many", "elastic"))
    piece, count = rng.randint(1, room), rng.randint(1, 4)
    worker = piece if kind == "worker" else None
    per_node = piece if kind == "per_node" else None
    sizes, needs = (piece * count,), ()
    if kind == "one":
        sizes, needs = (piece,), ((piece, 1),)
    if kind == "many":
        sizes, needs = (room * count,), ((room * count, count),)
    if kind == "elastic":
        sizes = tuple(range(piece, piece + 3 * room, room))
        needs = tuple((size, -(-size // room)) for size in sizes)
    shape = Shape(Ask(Filter((), None), 0), (0,), sizes, worker, per_node)
    alone = sizes[0] if needs and max(k for size, k in needs if size == sizes[0]) == 1 else 1
    ground = SimpleNamespace(shape=shape, unit=worker or per_node or alone)
    gives = [rng.random() < rng.choice((0.2, 0.9)) for _ in rows]
    loss = [float(rng.randint(0, 3)) for _ in range(3 * nodes)]
    return Domain(0, None, np.arange(nodes), needs), ground, np.array(free), rows, gives, loss


def stands(shape, needs, left):
    if shape.worker is not None:
        return sum(n // shape.worker for n in left) * shape.worker >= shape.least
    if shape.per_node is not None:
        return sum(n >= shape.per_node for n in left) * shape.per_node >= shape.least
    most = sorted(left, reverse=True)
    return any(k <= len(most) and sum(most[:k]) >= size for size, k in needs)


def tried(domain, ground, free, rows, gives, loss):
    """The same by trying: nodes one more at a time, most free first, then jobs one more at a time, least loss first."""

    def left(chosen):
        found = free.tolist()
        for place, (_, n, gpus) in enumerate(rows):
            if gives[place] and chosen(place):
                found[n] += gpus
        return found

    everything = left(lambda place: True)
    useful = [n for n in range(len(free)) if everything[n] > free[n] and everything[n] >= ground.unit]
    useful.sort(key=lambda n: (-free[n], n))
    for count in range(1, len(useful) + 1):
        near = useful[:count]
        if stands(ground.shape, domain.needs, left(lambda place, near=near: rows[place][1] in near)):
            break
    else:
        return ()
    jobs = sorted({rows[i][0] for i in range(len(rows)) if gives[i] and rows[i][1] in near}, key=lambda j: (loss[j], j))
    for count in range(1, len(jobs) + 1):
        gone = jobs[:count]
        if stands(
            ground.shape, domain.needs, left(lambda place, gone=gone: rows[place][0] in gone and rows[place][1] in near)
        ):
            return tuple(gone)
    raise AssertionError("all of them make room")


@pytest.mark.parametrize("seed", range(40))
def test_the_jobs_to_go_are_those_that_trying_finds(seed, monkeypatch):
    monkeypatch.setattr("evenhand.explain.yard._FIRST_ROWS", 2)
    rng, found = Random(seed), 0
    for _ in range(20):
        domain, ground, free, rows, gives, loss = draw(rng)
        if stands(ground.shape, domain.needs, free.tolist()):
            continue
        job, node, gpus = np.array(rows, dtype=np.int64).reshape(len(rows), 3).T
        staying = Staying(job, node, gpus, loss)
        clearing = Clearing(staying, Yard(staying, domain.nodes, free), ground.unit, ground.shape, domain)
        asked = Gives(staying, np.array([np.zeros(len(rows)), gives], dtype=bool), np.zeros(len(rows), dtype=bool))
        expected = tried(domain, ground, free, rows, gives, loss)
        assert clearing.victims(asked, 1) == expected
        assert clearing.victims(asked, 1) == expected
        found += bool(expected)
    assert found
