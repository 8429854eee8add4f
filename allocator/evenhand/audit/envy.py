"""The envy a plan leaves, pair by pair, as its certificate reports it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from evenhand.audit.classes import best_split, brought, cap_prices, slope_of
from evenhand.audit.numbers import close, slack
from evenhand.audit.reading import MILLI, Reading
from evenhand.audit.report import Finding
from evenhand.audit.target import Leaf, Target
from evenhand.audit.worth import Tally
from evenhand_models import Plan


class PairEnvy:
    """[v_i((e_i/e_l) X_l) - throughput of i] / floor_i, at least 0, by pair; 0 where the floor is 0.

    A leaf with one class is valued at once. For others there are bounds from above: lines over `v_i`, each of
    which a pair that is worked out makes one more of.

    Attributes
    ----------
    most : array of float, shape (leaves, leaves)
        The envy, or more than it; the envious first.
    known : array of bool, shape (leaves, leaves)
        Where it is the envy itself.
    """

    def __init__(
        self, types: Sequence[str], target: Target, held: NDArray[np.float64], reached: Sequence[float]
    ) -> None:
        """Bound every pair.

        Parameters
        ----------
        held : array of float, shape (leaves, types)
            GPUs that are envied, those of each leaf.
        reached : sequence of float
            Throughput that each leaf has.
        """
        self._leaves, self._types, self._entitled = target.leaves, types, target.entitled
        self._held, self._reached = held, reached
        count = len(self._leaves)
        self.most = np.zeros((count, count))
        self.known = np.eye(count, dtype=bool)
        for row, leaf in enumerate(self._leaves):
            scaled = self._held * (leaf.entitled / self._entitled)[:, None]
            if len(leaf.classes) == 1:
                self.most[row] = self._over_floor(row, self._values(leaf, scaled))
                self.known[row] = True
            else:
                top = sum(max(one.speed.values(), default=0.0) * one.gpus for one in leaf.classes)
                line = target.base[row] + scaled @ target.slope[row]
                self.most[row] = self._over_floor(row, np.minimum(line, top))
        np.fill_diagonal(self.most, 0.0)

    @classmethod
    def of_plan(cls, reading: Reading, target: Target, counted: Tally) -> PairEnvy:
        """Return the envy among what a plan lets run."""
        held = [[float(counted.runs[leaf.group].get(kind, 0)) for kind in reading.types] for leaf in target.leaves]
        reached = [counted.running.get(leaf.group, 0) / MILLI for leaf in target.leaves]
        return cls(reading.types, target, np.array(held).reshape(len(target.leaves), len(reading.types)), reached)

    @classmethod
    def of_target(cls, reading: Reading, target: Target) -> PairEnvy | None:
        """Return the envy among the bundles of a target; None where lines at the slices say that there is none (T3)."""
        bundles = [target.bundle[leaf.group] for leaf in target.leaves]
        rows = [[max(bundle.get(kind, 0.0), 0.0) for kind in reading.types] for bundle in bundles]
        held = np.array(rows).reshape(len(bundles), len(reading.types))
        reached = [target.brings[leaf.group] for leaf in target.leaves]
        beyond = target.entitled[:, None] / target.entitled[None, :]
        beyond *= target.slope @ held.T
        beyond += (target.base - np.array(reached))[:, None]
        np.fill_diagonal(beyond, 0.0)
        return cls(reading.types, target, held, reached) if (beyond > slack()).any() else None

    def _over_floor(self, row: int, value: NDArray[np.float64]) -> NDArray[np.float64]:
        floor = self._leaves[row].floor
        if floor <= 0:
            return np.zeros_like(value)
        gain: NDArray[np.float64] = np.maximum(value - self._reached[row], 0.0) / floor
        return gain

    def _values(self, leaf: Leaf, bundles: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return `v_i` of many bundles at once for a leaf with one class (T1)."""
        speed = leaf.classes[0].speed
        left = np.full(len(bundles), float(leaf.cap))
        value = np.zeros(len(bundles))
        for kind in sorted(speed, key=lambda kind: (-speed[kind], kind)):
            taken = np.minimum(left, bundles[:, self._types.index(kind)])
            value += speed[kind] * taken
            left -= taken
        return value

    def of(self, row: int, column: int) -> float:
        """Work out the envy of a pair."""
        if not self.known[row, column]:
            leaf, bundle = self._leaves[row], self._scaled(row, column)
            self._learn(row, column, brought(leaf.classes, best_split(leaf.classes, bundle)))
        return float(self.most[row, column])

    def _narrow(self, row: int, column: int) -> None:
        """Work out the envy of a pair that is not known, and bound others of the row by the line that touches there."""
        leaf, bundle = self._leaves[row], self._scaled(row, column)
        split = best_split(leaf.classes, bundle)
        prices = cap_prices(leaf.classes, split)
        slope = slope_of(leaf.classes, prices)
        base = sum(price * one.gpus for price, one in zip(prices, leaf.classes, strict=True))
        scaled = self._held * (leaf.entitled / self._entitled)[:, None]
        line = base + scaled @ np.array([slope.get(kind, 0.0) for kind in self._types])
        lower = np.minimum(self.most[row], self._over_floor(row, line))
        self.most[row] = np.where(self.known[row], self.most[row], lower)
        self._learn(row, column, brought(leaf.classes, split))

    def _scaled(self, row: int, column: int) -> dict[str, float]:
        """Return what a leaf envies another for, for what it is owed itself."""
        scale = self._leaves[row].entitled / self._entitled[column]
        return dict(zip(self._types, (self._held[column] * scale).tolist(), strict=True))

    def _learn(self, row: int, column: int, value: float) -> None:
        self.most[row, column] = self._over_floor(row, np.array([value]))[0]
        self.known[row, column] = True

    def largest(self) -> tuple[float, int, int]:
        """Return the largest envy of all, who envies and who is envied."""
        if not self.most.size:
            return 0.0, 0, 0
        while True:
            row, column = divmod(int(self.most.argmax()), len(self.most))
            if self.known[row, column]:
                return float(self.most[row, column]), row, column
            self._narrow(row, column)

    def beyond(self, limits: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the pairs that envy by more than their limits, shape (pairs, 2), all of them worked out.

        Parameters
        ----------
        limits : array of float, shape (leaves, leaves) or (leaves, 1)
            0 or more; by the envious first.
        """
        while True:
            over = np.where(self.known, 0.0, self.most - limits)
            if not over.size or over.max() <= 0:
                return np.argwhere(self.most > limits)
            self._narrow(*(int(place) for place in np.unravel_index(over.argmax(), over.shape)))

    def any_above(self, limits: NDArray[np.float64]) -> bool:
        """Say whether anybody envies by more than its limit.

        Parameters
        ----------
        limits : array of float, shape (leaves,)
            By the envious.
        """
        while len(places := np.argwhere(self.most > limits[:, None])):
            row, column = (int(place) for place in places[0])
            if self.known[row, column]:
                return True
            self._narrow(row, column)
        return False


def check_envy_report(reading: Reading, target: Target, counted: Tally, plan: Plan) -> Iterator[Finding]:
    """Check `max_envy` and the reported pairs (A4)."""
    seal = plan.certificate
    envy = PairEnvy.of_plan(reading, target, counted)
    most = envy.largest()[0]
    if not close(seal.max_envy, most):
        yield Finding("A4", f"max_envy says {seal.max_envy:g}, should be {most:g}.")
    place = {leaf.group: row for row, leaf in enumerate(target.leaves)}
    for pair in seal.envy:
        refs = (pair.group, pair.envied)
        if pair.group not in place or pair.envied not in place:
            yield Finding("A4", f"envy of {pair.group!r} for {pair.envied!r}, not both owed anything.", refs)
            continue
        true = envy.of(place[pair.group], place[pair.envied])
        if not close(pair.envy, true):
            message = f"envy of {pair.group!r} for {pair.envied!r} says {pair.envy:g}, should be {true:g}."
            yield Finding("A4", message, refs)
        parts = pair.forced_by_pins + pair.ours
        if not close(parts, pair.envy) or min(pair.forced_by_pins, pair.ours) < -slack():
            yield Finding("A4", f"envy of {pair.group!r} for {pair.envied!r} is not its two parts.", refs)
    gangs = np.array([leaf.biggest / MILLI / leaf.floor if leaf.floor > 0 else np.inf for leaf in target.leaves])
    if not seal.envy and target.leaves and envy.any_above(gangs + slack()):
        yield Finding("A4", "somebody envies by more than one gang, but no pair is reported.")
