"""T5's V: the most throughput that jobs could draw from a bundle of GPUs if they could be split.

A transport problem with few types, solved exactly without a solver: classes of equal jobs come in one by
one, and each takes the dearest path, perhaps pushing others from type to type or out. Rates are whole
thousandths, so that paths compare exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from math import fsum, inf

NOTHING = 1e-11
"""GPUs below which an amount counts as none."""


def most_throughput(classes: Mapping[tuple[int, ...], int], bundle: Sequence[float]) -> float:
    """Return the largest throughput, thousandths.

    Parameters
    ----------
    classes : mapping of tuple of int to int
        GPUs wanted, by throughput of one GPU on each type, thousandths.
    bundle : sequence of float
        GPUs of each type, in the same order.
    """
    if len(bundle) == 1:
        return _one_type({rates[0]: gpus for rates, gpus in classes.items()}, bundle[0])
    if (plain := _type_by_type(classes, bundle)) is not None:
        return plain
    flow = _Flow(bundle)
    for rates in sorted(classes, key=lambda rates: (-max(rates), rates)):
        flow.add(rates, float(classes[rates]))
    return flow.value()


def flow_of(
    rates: Sequence[tuple[int, ...]], wanted: Sequence[int], bundle: Sequence[float]
) -> list[tuple[float, ...]]:
    """Return the GPUs by type of each class under the largest throughput.

    Parameters
    ----------
    rates : sequence of tuple of int
        Throughput of one GPU on each type, by class; whole numbers of any unit.
    wanted : sequence of int
        GPUs by class.
    bundle : sequence of float
        GPUs of each type, in the same order.
    """
    flow = _Flow(bundle)
    for one, gpus in zip(rates, wanted, strict=True):
        flow.add(one, float(gpus))
    return [tuple(held[:-1]) for held in flow.held]


def _one_type(wanted: Mapping[int, int], gpus: float) -> float:
    """Serve the fastest first."""
    left, reached = gpus, []
    for rate in sorted(wanted, reverse=True):
        taken = min(left, float(wanted[rate]))
        reached.append(rate * taken)
        left -= taken
    return fsum(reached)


def _type_by_type(classes: Mapping[tuple[int, ...], int], bundle: Sequence[float]) -> float | None:
    """Serve the fastest on each type, than which nothing is better; None if that needs more of a class than there is.

    Of those that are equally fast those come first that are slow elsewhere.
    """
    left: dict[tuple[int, ...], float] = {**classes}
    reached = []
    slowest = sorted(classes, key=lambda rates: (max(rates), sum(rates)))
    used_by = [sum([rates[place] > 0 for rates in classes]) for place in range(len(bundle))]
    for place in sorted(range(len(bundle)), key=used_by.__getitem__):
        tiers: dict[int, list[tuple[int, ...]]] = {}
        for rates in slowest:
            tiers.setdefault(rates[place], []).append(rates)
        wanted = bundle[place]
        for rate in sorted(tiers, reverse=True):
            if rate == 0 or wanted <= 0:
                break
            taken = min(wanted, float(sum([classes[rates] for rates in tiers[rate]])))
            missing = taken
            for rates in tiers[rate]:
                served = min(missing, left[rates])
                left[rates] -= served
                missing -= served
            if missing > 0:
                return None
            reached.append(rate * taken)
            wanted -= taken
    return fsum(reached)


class _Flow:
    """An optimal flow of the classes that came in so far; the last place stands for holding nothing."""

    def __init__(self, bundle: Sequence[float]) -> None:
        self.places = len(bundle) + 1
        self.free = [*bundle, inf]
        self.rates: list[tuple[int, ...]] = []
        self.held: list[list[float]] = []
        self.moves: list[list[list[tuple[int, int]]]] = [[[] for _ in range(self.places)] for _ in range(self.places)]
        self._best: list[list[tuple[int, int, int]] | None] = [None] * self.places

    def value(self) -> float:
        """Return the throughput reached, thousandths."""
        return fsum(
            rate * gpus
            for rates, held in zip(self.rates, self.held, strict=True)
            for rate, gpus in zip(rates, held, strict=True)
        )

    def add(self, rates: tuple[int, ...], gpus: float) -> None:
        """Let one more class in, along the dearest paths until all of it has a place."""
        new, free = len(self.rates), self.free
        self.rates.append((*rates, 0))
        self.held.append([0.0] * self.places)
        left = gpus
        while left > NOTHING:
            path = self._dearest_path(new)
            end = path[-1][1]
            pushed = min(left, free[end])
            for place in range(1, len(path)):
                pushed = min(pushed, self.held[path[place][0]][path[place - 1][1]])
            free[end] -= pushed
            left -= pushed
            for place, (mover, to) in enumerate(path):
                if place:
                    self._take(mover, path[place - 1][1], pushed)
                self._put(mover, to, pushed)

    def _put(self, mover: int, to: int, gpus: float) -> None:
        """Give a class GPUs in a place, and note what moving on from there would bring."""
        if self.held[mover][to] <= NOTHING:
            rates, self._best[to] = self.rates[mover], None
            for place, listed in enumerate(self.moves[to]):
                if place != to:
                    heappush(listed, (rates[to] - rates[place], mover))
        self.held[mover][to] += gpus

    def _take(self, mover: int, start: int, gpus: float) -> None:
        """Take GPUs in a place from a class."""
        self.held[mover][start] -= gpus
        if self.held[mover][start] <= NOTHING:
            self._best[start] = None

    def _best_moves(self, start: int) -> list[tuple[int, int, int]]:
        """Return end, loss (perhaps negative) and class of the best moves from a place."""
        found, held = [], self.held
        for to, listed in enumerate(self.moves[start]):
            while listed and held[listed[0][1]][start] <= NOTHING:
                heappop(listed)
            if listed:
                found.append((to, *listed[0]))
        self._best[start] = found
        return found

    def _dearest_path(self, new: int) -> list[tuple[int, int]]:
        """Return who goes where, from the newcomer to a place with room, such that most is gained."""
        gain: list[float] = list(self.rates[new])
        top = max(gain)
        roomy = [p for p, free in enumerate(self.free) if free > NOTHING]
        for at in reversed(roomy):
            if gain[at] == top:  # nobody gains by moving to where there is room, so no path brings more
                return [(new, at)]
        by: list[tuple[int, int] | None] = [None] * self.places  # who came to a place, and from where
        moves = [(start, self._best[start] or self._best_moves(start)) for start in range(self.places - 1)]
        for _ in range(self.places):
            changed = False
            for start, ends in moves:
                for to, loss, mover in ends:
                    if gain[start] - loss > gain[to]:
                        gain[to], by[to], changed = gain[start] - loss, (mover, start), True
            if not changed:
                break
        at = max(roomy, key=lambda p: (gain[p], p))
        path: list[tuple[int, int]] = []
        while (step := by[at]) is not None:
            path.append((step[0], at))
            at = step[1]
        path.append((new, at))
        return path[::-1]
