"""Most throughput subject to envy-freeness and sharing incentive (rule T4, cooperative OEF with caps).

Envy constraints are met lazily: at first those between leaves of like taste, then the worst found
violated; in the first program leaves of one taste go by one bar (`bars`). Among optima the one nearest
to the slices is chosen. Lines that touch at the slices are too careful elsewhere where caps bind, so the
program is repeated with lines that touch where bundles lie. Work is bounded by simplex iterations: where
they do not do for the first program, the answer is the last one found, if next to nobody envies anybody
under it, else the slices themselves, which are always envy-free and at their floors; where they do not do
for a repeat, the division before it.
"""

from __future__ import annotations

import numpy as np

from evenhand.errors import SolverError
from evenhand.fairness.bars import Bars, no_bars, shared_bars
from evenhand.fairness.bundle_program import BundleProgram, LimitHit
from evenhand.fairness.fair_share import NearTo, fair_share, near_slices
from evenhand.fairness.group_value import FloatArray, GroupValues
from evenhand.fairness.lines import Lines, slice_lines
from evenhand.fairness.rows import (
    Grid,
    capacity_rows,
    floor_rows,
    grid_of,
    largest,
    largest_both_ways,
    line_rows,
)
from evenhand.fairness.twins import Twins, merged
from evenhand.shapes import BoolArray, IntArray

ALL_PAIRS_UP_TO = 30
"""Up to so many leaves all envy constraints are there from the start."""
LIKE_TASTES = 8
WORST_PER_LEAF = 3
SLACK = 1e-8
"""Envy up to this, in throughput, counts as none."""
ROUGH = 0.01
"""Envy, as a share of the floor, up to which an answer is served that is not finished."""
MOST_REPEATS = 8
LEAST_REPEATED = 4000
"""Iterations that all repeats together may take at least, so far as they are allowed."""
REPEATED = 1.5
"""And so many times what the first program took, where that is more; but no more than this part of all work:"""
REPEATED_SHARE = 4
NEAR = 0.02
"""Envy of a pair is near if by its line no more than this is missing, as a share of the floor."""
ENOUGH = 1e-4
"""Share of the throughput that a repeat must add to be taken."""


def envy_free(values: GroupValues, iterations: int = 100_000) -> tuple[FloatArray, bool]:
    """Best bundles, float [L, T], and whether they are proven best: not if the iterations did not do.

    Leaves that are owed next to nothing get their slices: nobody who is at its floor envies them.
    """
    useful = values.usable.any(axis=0)
    if not useful.any():
        return np.zeros(values.slices.shape), True
    if useful.sum() == 1 and not values.several.any():
        return _one_type(values, int(np.flatnonzero(useful)[0])), True
    x, weighty = fair_share(values), values.weighty
    twins = merged(values.only(weighty))
    try:
        bundles, best = _best(twins, iterations)
    except (LimitHit, SolverError):
        return x, False
    x[weighty] = twins.lift(bundles)
    return x, best


def _one_type(values: GroupValues, gpu_type: int) -> FloatArray:
    """Closed form for one class a leaf: leaves with a slice above their cap get the cap, others alike for what they are owed."""
    e, cap, weight = values.entitled, values.cap, values.weights[:, gpu_type]
    full = values.pi > 0
    rest = (weight > 0) & ~full
    x = np.zeros(values.slices.shape)
    x[full, gpu_type] = cap[full]
    if rest.any():
        left = float(values.capacity[gpu_type] - cap[full].sum())
        level = min(float((cap[rest] / e[rest]).min()), left / float(e[rest].sum()))
        x[rest, gpu_type] = level * e[rest]
    return x


def _best(twins: Twins, iterations: int) -> tuple[FloatArray, bool]:
    """Solve with the lines at the slices, then again and again with lines that touch where the bundles lie.

    Returns
    -------
    The best bundles, and whether the last program that counts was solved to its end.

    Raises
    ------
    LimitHit
        If the iterations do not do, and the last answer is unfair.
    """
    values = twins.values
    never = (values.base <= 0) & ~values.several  # its own line is its value
    grid = grid_of(values)
    bars = shared_bars(values, grid.unit, ~twins.several & ~never)
    found = _Program(grid, np.diag(~twins.several | never), slice_lines(values), bars, iterations)
    found.meet_bars(*_liked_by_tastes(values, bars))
    found.meet(*_like_tastes(values, bars))
    x, done = found.nearest()
    if done:
        x = _again(found, x, iterations)
    return found.grid.lift(x), done


def _again(found: _Program, x: FloatArray, iterations: int) -> FloatArray:
    """Repeat with lines that touch v where the last bundles lie, while that brings enough and the work allowed does.

    There they are at their least, so the last division meets the new lines: throughput never falls. Where the
    lines of all pairs that bind are the old ones, the last division is the best one with the new ones, too.
    """
    grid, lines, oneself = found.grid, found.lines, np.eye(len(found.met), dtype=bool)
    none = no_bars(grid.values)
    used = iterations - found.left
    left = min(found.left, max(min(int(REPEATED * used), iterations // REPEATED_SHARE), LEAST_REPEATED))
    for _ in range(MOST_REPEATS):
        bundles, binding = grid.lift(x), found.binding()
        if used > left or not (lines.touching(bundles, *np.nonzero(binding))[1] | binding & oneself).any():
            break
        lines, _ = lines.touching(bundles, *np.nonzero(found.near(x) | binding))
        binding &= ~oneself
        again = _Program(grid, oneself.copy(), lines, none, left, found.slices)
        again.meet(*np.nonzero(binding))
        try:
            better, done = again.nearest()
        except (LimitHit, SolverError):
            break
        if not done or grid.worth @ better <= grid.worth @ x * (1 + ENOUGH):
            break
        used, left = left - again.left, again.left
        found, x = again, better
    return x


class _Program:
    """Most throughput subject to floors and lines, and which pairs' constraints are there.

    Parameters
    ----------
    met : pairs whose constraints are there or need not be, bool [L, L]; kept up.
    slices : what to stay near to, where it is known from another program.
    """

    def __init__(
        self, grid: Grid, met: BoolArray, lines: Lines, bars: Bars, iterations: int, slices: NearTo | None = None
    ) -> None:
        self.grid, self.met, self.lines, self.bars, self.slices = grid, met, lines, bars, slices
        self._program = BundleProgram(np.concatenate([grid.worth, np.zeros(bars.count)]), iterations)
        self._above = np.zeros((bars.count, len(met)), dtype=bool)
        first, floors, links = capacity_rows(grid), floor_rows(grid), bars.links(grid, grid.count)
        self._program.at_most(first)
        self._program.at_least(floors)
        self._program.at_least(links)
        self._links = np.arange(links.count) + first.count + floors.count
        nobody = np.full(first.count + floors.count + links.count, -1)
        self._kinds = [(nobody, nobody, nobody)]

    @property
    def left(self) -> int:
        """Iterations that are not used up."""
        return self._program.left

    def nearest(self) -> tuple[FloatArray, bool]:
        """The optimum nearest to the slices, and whether that was found to the end.

        Raises
        ------
        LimitHit
            If the iterations do not do, and the last answer is unfair.
        """
        x, done = self._settled(None)
        if done and not self._program.unique:
            self.slices = self.slices or near_slices(self.grid)
            self._program.nearest_to(*self.slices)
            x, done = self._settled(x)
        return x, done

    def binding(self) -> BoolArray:
        """Pairs whose constraints have a price, bool [L, L]."""
        prices = self._program.prices
        taste, envious, envied = (np.concatenate(part)[: len(prices)] for part in zip(*self._kinds, strict=True))
        some, high = (prices > 0) & (envious >= 0), taste >= 0
        found = self.bars.pairs(prices[self._links], taste[high], envied[high], prices[high])
        found[envious[some], envied[some]] = True
        return found

    def meet(self, envious: IntArray, envied: IntArray) -> None:
        """Add the constraints of pairs that are not there yet."""
        fresh = ~self.met[envious, envied]
        envious, envied = envious[fresh], envied[fresh]
        self.met[envious, envied] = True
        self._kinds.append((np.full(len(envied), -1), envious, envied))
        self._program.at_least(line_rows(self.grid, envious, envied, *self.lines.of(envious, envied)))

    def meet_bars(self, taste: IntArray, envied: IntArray) -> None:
        """Add constraints of bars that are not there yet; they stand for those of all pairs that go by them."""
        fresh = ~self._above[taste, envied]
        taste, envied = taste[fresh], envied[fresh]
        self._above[taste, envied] = True
        mine = self.bars.leaves
        self.met[mine] |= self._above[self.bars.taste[mine]] & self.bars.pays[mine]
        self._kinds.append((taste, np.full(len(envied), -1), envied))
        self._program.at_least(self.bars.rows(self.grid, self.grid.count, taste, envied))

    def _settled(self, last: FloatArray | None) -> tuple[FloatArray, bool]:
        """Solve and meet what is violated until nothing is; else the last answer, if it is fair but for a rest."""
        while True:
            try:
                x = self._program.best()[: self.grid.count]
            except LimitHit:
                if last is None or self._roughness(last) > ROUGH:
                    raise
                return last, False
            last = x
            envy = np.where(self.met, -1.0, self._envy(x))
            worst = largest_both_ways(np.where(self.bars.pays, -1.0, envy), WORST_PER_LEAF, SLACK)
            higher = largest_both_ways(self.bars.highest(envy), WORST_PER_LEAF, SLACK)
            if not len(worst[0]) and not len(higher[0]):
                return x, True
            self.meet_bars(*higher)
            self.meet(*worst)

    def _envy(self, x: FloatArray) -> FloatArray:
        """By how much each pair's line is above what the envious has, float [L, L]."""
        values, split = self.grid.values, self.grid.split(x)
        return np.asarray(self.lines.wished(values.per_leaf(split)) - values.brought(split)[:, None])

    def near(self, x: FloatArray) -> BoolArray:
        """Pairs that are next to envy by their lines, bool [L, L]: theirs are worth touching."""
        return np.asarray(self._envy(x) >= -NEAR * self.grid.values.floor[:, None])

    def _roughness(self, x: FloatArray) -> float:
        """Most envy as a share of a floor."""
        envy = self._envy(x)
        np.fill_diagonal(envy, -1.0)
        floor = np.maximum(self.grid.values.floor, SLACK)[:, None]
        return float(np.where(envy > SLACK, envy / floor, 0.0).max())


def _like_tastes(values: GroupValues, bars: Bars) -> tuple[IntArray, IntArray]:
    """For each leaf without a bar those of most like taste: whom it will envy first. All pairs if there are few."""
    count = len(values.leaves)
    if count <= ALL_PAIRS_UP_TO:
        return np.repeat(np.arange(count), count), np.tile(np.arange(count), count)
    likeness = _likeness(values.lever, values.lever)
    np.fill_diagonal(likeness, -1.0)
    single = np.flatnonzero(bars.taste < 0)
    envious, envied = largest(likeness[single], LIKE_TASTES)
    return single[envious], envied


def _liked_by_tastes(values: GroupValues, bars: Bars) -> tuple[IntArray, IntArray]:
    """For each leaf the bars of most like taste, and the leaf; its own only if it is held to it."""
    likeness = _likeness(values.lever, bars.slope)
    mine = bars.leaves
    leaves = mine[~bars.pays[mine, mine]]
    likeness[leaves, bars.taste[leaves]] = -1.0
    envied, taste = largest(likeness, LIKE_TASTES)
    some = likeness[envied, taste] >= 0
    return taste[some], envied[some]


def _likeness(one: FloatArray, other: FloatArray) -> FloatArray:
    """How like tastes are, 1 if alike: float [n, m] for slopes, float [n, T] and float [m, T]."""
    turned = [t / np.maximum(np.linalg.norm(t, axis=1, keepdims=True), 1e-12) for t in (one, other)]
    return np.asarray(np.round(turned[0] @ turned[1].T, 12))
