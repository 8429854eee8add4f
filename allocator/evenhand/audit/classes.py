"""T1: job classes of a leaf, the best split of a bundle among them, and the prices that go with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from evenhand.audit.jobs import MILLI, Kind
from evenhand.audit.numbers import slack
from evenhand.audit.transport import flow_of, most_throughput

Rates = tuple[tuple[str, int], ...]
"""Whole numbers by type, types in order."""
GRIDS = (16, 8, 4, 2, 1, 0)
"""Steps to which speeds are rounded, finest first (T1)."""
MOST_CLASSES = 6
"""Classes a leaf may have (T1)."""
FINE = 10**12
"""Speeds are compared in whole parts of this, so that paths compare exactly."""
EVEN = 1e-9
"""GPUs, relative to a cap of at least one, and prices that count as equal (T3)."""


@dataclass(frozen=True, slots=True)
class JobClass:
    """Jobs of a leaf that take to GPU types alike.

    Attributes
    ----------
    gpus : int
        `cap_ik`: GPUs they can hold.
    speed : mapping of str to float
        `W_ikt`: throughput of one GPU, by the types it can use.
    """

    gpus: int
    speed: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Split:
    """A bundle split among classes such that it brings most.

    Attributes
    ----------
    held : tuple of mapping of str to float
        GPUs of each class by type.
    spare : tuple of float
        GPUs that each class could hold besides.
    left : mapping of str to float
        GPUs of each type that nobody holds.
    """

    held: tuple[Mapping[str, float], ...]
    spare: tuple[float, ...]
    left: Mapping[str, float]


def alike_in(kinds: Mapping[Kind, int]) -> dict[Rates, int]:
    """Return the GPUs that a leaf's jobs, counted by kind, can hold, by their throughput on the types they can use."""
    gpus: dict[Rates, int] = {}
    for kind, count in kinds.items():
        gpus[kind.paces] = gpus.get(kind.paces, 0) + count * kind.gpus
    return gpus


def classes_of(alike: Mapping[Rates, int]) -> tuple[JobClass, ...]:
    """Sort a leaf's jobs, summed up as alike, into classes: the finest grid that makes few enough, else one class (T1)."""
    for grid in GRIDS:
        found: dict[Rates, list[Rates]] = {}
        for rates in alike:
            found.setdefault(_look(rates, grid), []).append(rates)
            if len(found) > MOST_CLASSES:
                break
        else:
            return tuple(_class(found[look], alike) for look in sorted(found))
    return (_class(list(alike), alike),)


def _look(rates: Rates, grid: int) -> Rates:
    """Return what jobs of one class agree in: usable types, and speed there for the best, rounded, halves up."""
    best = max([rate for _, rate in rates], default=0)
    return tuple([(kind, (2 * grid * rate + best) // (2 * best)) for kind, rate in rates if rate])


def _class(members: Sequence[Rates], alike: Mapping[Rates, int]) -> JobClass:
    """Sum up jobs of one class."""
    whole, total = 0, dict[str, int]()
    for rates in members:
        gpus = alike[rates]
        whole += gpus
        for kind, rate in rates:
            total[kind] = total.get(kind, 0) + gpus * rate
    return JobClass(whole, {kind: summed / (whole * MILLI) for kind, summed in sorted(total.items()) if summed})


def best_split(classes: Sequence[JobClass], bundle: Mapping[str, float]) -> Split:
    """Split a bundle among classes such that it brings most (T1)."""
    kinds = [kind for kind, gpus in bundle.items() if gpus > 0]
    if len(classes) == 1:
        held = [_by_one(classes[0], bundle, kinds)]
    elif (plain := _by_best(classes, bundle, kinds)) is not None:
        held = plain
    else:
        rates = [tuple(round(FINE * one.speed.get(kind, 0.0)) for kind in kinds) for one in classes]
        flows = flow_of(rates, [one.gpus for one in classes], [bundle[kind] for kind in kinds])
        held = [
            {kind: gpus for kind, gpus in zip(kinds, flow, strict=False) if gpus > 0 and kind in one.speed}
            for one, flow in zip(classes, flows, strict=True)
        ]
    spare = tuple([one.gpus - sum(mine.values()) for one, mine in zip(classes, held, strict=True)])
    left = {kind: gpus - sum([mine.get(kind, 0.0) for mine in held]) for kind, gpus in bundle.items()}
    return Split(tuple(held), spare, left)


def _by_one(one: JobClass, bundle: Mapping[str, float], kinds: Iterable[str]) -> dict[str, float]:
    """Serve a class alone: best types first."""
    room, held = float(one.gpus), {}
    for kind in sorted((kind for kind in kinds if kind in one.speed), key=lambda kind: (-one.speed[kind], kind)):
        held[kind] = min(room, bundle[kind])
        room -= held[kind]
    return held


def _by_best(
    classes: Sequence[JobClass], bundle: Mapping[str, float], kinds: Iterable[str]
) -> list[dict[str, float]] | None:
    """Give each type to the class that is fastest on it, than which nothing is better; None if one cannot hold that much."""
    held: list[dict[str, float]] = [{} for _ in classes]
    for kind in kinds:
        speed, place = max([(one.speed.get(kind, 0.0), -place) for place, one in enumerate(classes)])
        if speed > 0:
            held[-place][kind] = bundle[kind]
    fits = all(sum(mine.values()) <= one.gpus for one, mine in zip(classes, held, strict=True))
    return held if fits else None


def most_held(classes: Sequence[JobClass], bundle: Mapping[str, float]) -> float:
    """Return how many GPUs of a bundle classes can hold, each on types it can use."""
    kinds = [kind for kind, gpus in bundle.items() if gpus > 0]
    alike: dict[tuple[int, ...], int] = {}
    for one in classes:
        key = tuple([int(kind in one.speed) for kind in kinds])
        alike[key] = alike.get(key, 0) + one.gpus
    return most_throughput(alike, [bundle[kind] for kind in kinds]) if kinds else 0.0


def brought(classes: Sequence[JobClass], split: Split) -> float:
    """Return what a split brings."""
    return sum(
        [one.speed[kind] * gpus for one, held in zip(classes, split.held, strict=True) for kind, gpus in held.items()]
    )


def cap_prices(classes: Sequence[JobClass], split: Split) -> tuple[float, ...]:
    """Return `pi`: 0 for classes of which more would bring nothing, and with this the greatest (T3)."""
    moves = _Moves(classes, split, EVEN * max(1.0, sum([one.gpus for one in classes])))
    least = _of_classes(classes, moves.dearest())
    nothing = [price <= EVEN for price in least]
    start: dict[str, float] = {}
    for one, free in zip(classes, nothing, strict=True):
        for kind, speed in one.speed.items() if free else ():
            start[kind] = max(start.get(kind, 0.0), speed)
    return _of_classes(classes, moves.cheapest(start))


def gain_of_more(classes: Sequence[JobClass], split: Split) -> dict[str, float]:
    """Return what a sliver more of each type would bring at least: the least prices of types."""
    sliver = slack(sum(one.gpus for one in classes))
    return slope_of(classes, _of_classes(classes, _Moves(classes, split, sliver).cheapest({})))


def slope_of(classes: Sequence[JobClass], pi: Sequence[float]) -> dict[str, float]:
    """Return `q`: the most that a GPU of each type is worth above the price of a cap (T3)."""
    slope: dict[str, float] = {}
    for one, price in zip(classes, pi, strict=True):
        for kind, speed in one.speed.items():
            slope[kind] = max(slope.get(kind, 0.0), speed - price)
    return slope


def _of_classes(classes: Sequence[JobClass], price: Mapping[str | None, float]) -> tuple[float, ...]:
    """Return the least prices of classes that go with prices of types."""
    return tuple(
        [max(0.0, max([speed - price[kind] for kind, speed in one.speed.items()], default=0.0)) for one in classes]
    )


class _Moves:
    """What moving from one type to another costs whoever holds it; what is left, and to hold nothing, costs nothing.

    Prices of types are such that nobody would rather hold another type: who holds one pays for it at most what moving
    to any other loses, and the price of that.
    """

    def __init__(self, classes: Sequence[JobClass], split: Split, tiny: float) -> None:
        """Note the least loss of every move; up to `tiny` GPUs count as none."""
        self._kinds = sorted({kind for one in classes for kind in one.speed})
        self._free = {kind for kind, gpus in split.left.items() if gpus > tiny} | {None}
        loss: dict[tuple[str | None, str | None], float] = {}
        for one, held, spare in zip(classes, split.held, split.spare, strict=True):
            worth = [(kind, one.speed.get(kind, 0.0)) for kind in self._kinds]
            holds: list[tuple[str | None, float]] = [pair for pair in worth if held.get(pair[0], 0.0) > tiny]
            if spare > tiny:
                holds.append((None, 0.0))
            for place, now in holds:
                for to, then in worth:
                    if to != place and now - then < loss.get((place, to), inf):
                        loss[place, to] = now - then
                if place is not None and now < loss.get((place, None), inf):
                    loss[place, None] = now
        self._moves = [(here, there, lost) for (here, there), lost in loss.items()]

    def dearest(self) -> dict[str | None, float]:
        """Return the greatest prices of types."""
        price = {place: 0.0 if place in self._free else inf for place in (*self._kinds, None)}
        for _ in self._kinds:
            changed = False
            for here, there, lost in self._moves:
                if (most := price[there] + lost) < price[here]:
                    price[here], changed = most, True
            if not changed:
                break
        return price

    def cheapest(self, start: Mapping[str, float]) -> dict[str | None, float]:
        """Return the least prices of types that are at least those to start from."""
        price: dict[str | None, float] = dict.fromkeys((*self._kinds, None), 0.0)
        price.update(start)
        for _ in self._kinds:
            changed = False
            for here, there, lost in self._moves:
                if (least := price[here] - lost) > price[there]:
                    price[there], changed = least, True
            if not changed:
                break
        return price
