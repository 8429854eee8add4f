"""Where choices come from: one small interface over `random.Random` and over Hypothesis.

Low draws mean dull choices, so that Hypothesis shrinks towards plain clusters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Protocol, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


class Draws(Protocol):
    """A source of choices."""

    def below(self, n: int) -> int:
        """Return a whole number from 0 to n - 1; 0 is the dullest."""

    def chance(self, percent: int) -> bool:
        """Return true in so many of a hundred cases; false is the dull one."""

    def pick(self, options: Sequence[T]) -> T:
        """Return one of the options; the first is the dullest."""


class SeededDraws:
    """Choices of a seeded generator: fast, for sweeps over thousands of clusters."""

    def __init__(self, rng: Random) -> None:
        self._random = rng.random

    def below(self, n: int) -> int:
        return int(self._random() * n)

    def chance(self, percent: int) -> bool:
        return self._random() * 100 >= 100 - percent

    def pick(self, options: Sequence[T]) -> T:
        return options[int(self._random() * len(options))]


class HypothesisDraws:
    """Choices of Hypothesis: slower, and they shrink."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self._draw = draw

    def below(self, n: int) -> int:
        return self._draw(st.integers(0, n - 1)) if n > 1 else 0

    def chance(self, percent: int) -> bool:
        return self._draw(st.integers(0, 99)) >= 100 - percent

    def pick(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]


def many(draws: Draws, low: int, high: int) -> int:
    """Draw a whole number from low to high, the higher ones more often."""
    span = high - low + 1
    return low + max(draws.below(span), draws.below(span))


def between(draws: Draws, low: int, high: int) -> int:
    """Draw a whole number from low to high, both included."""
    return low + draws.below(high - low + 1)
