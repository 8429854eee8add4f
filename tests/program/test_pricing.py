"""A block's best plan under prices is the best of all its plans."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pytest
from strategies.blocks import random_blocks, worth

from evenhand.program.blocks import Blocks
from evenhand.program.climb import Steps, climb
from evenhand.program.pricing import best_plans


def every_plan(blocks: Blocks, block: int) -> list[tuple[int, ...]]:
    """All counts of the block's ways that its units allow."""
    first, end = blocks.span(block)
    found = []
    for counts in product(*(range(int(blocks.most[blocks.way_unit[w]]) + 1) for w in range(first, end))):
        goes = np.zeros(len(blocks.most), dtype=np.int64)
        np.add.at(goes, blocks.way_unit[first:end], counts)
        own = blocks.unit_block == block
        if (goes[own] <= blocks.most[own]).all() and (goes[own] >= blocks.least[own]).all():
            found.append(counts)
    return found


@pytest.mark.parametrize("seed", range(60))
def test_no_plan_of_a_block_is_worth_more_and_the_one_found_is_worth_what_it_says(seed: int) -> None:
    blocks, price, short = random_blocks(Random(seed))
    for plan in best_plans(blocks, price, short):
        first, end = blocks.span(plan.block)
        cost = float(short[plan.block])
        best = max(worth(blocks, plan.block, np.array(c), price, cost) for c in every_plan(blocks, plan.block))
        counts = np.zeros(end - first, dtype=np.int64)
        counts[plan.columns - first] = plan.counts
        assert tuple(counts) in every_plan(blocks, plan.block)
        assert plan.value == pytest.approx(best)
        assert worth(blocks, plan.block, counts, price, cost) == pytest.approx(best)
        assert plan.short == max(0, int(blocks.need[plan.block]) - int((counts * blocks.gain[first:end]).sum()))


def random_steps(rng: Random) -> Steps:
    """Blocks of up to a dozen units, with prices of which many tie."""
    gain, price, first, copies, begin, needs = [], [], [0], [], [0], []
    for _ in range(rng.randint(1, 4)):
        needs.append(rng.choice([1, 9, 60, 300]))
        for _ in range(rng.randint(0, 12)):
            for _ in range(rng.randint(1, 4)):
                gain.append(min(needs[-1], rng.choice([1, 2, 3, 8, 16, 21, 32])))
                price.append(
                    -rng.choice([0.0, 0.1, 0.1, 0.3, 0.7, round(rng.uniform(0, 1), 3)]) * rng.choice([1, gain[-1]])
                )
            first.append(len(gain))
            copies.append(rng.choice([1, 1, 1, 2, 5]))
        begin.append(len(copies))
    weight = np.array([rng.choice([0.3, 0.5, 1.0]) for _ in needs])
    return Steps(*(np.array(a) for a in (gain, price, first, copies, begin, needs)), weight)


def one_by_one(steps: Steps, block: int) -> tuple[np.ndarray, float]:
    """The same search without bounds: every job of every unit in turn, every number of grains."""
    need, weight = int(steps.need[block]), float(steps.weight[block])
    counts = np.zeros(len(steps.gain), dtype=np.int64)
    best = np.full(need + 1, -np.inf)
    best[need] = 0.0
    trail = []
    for unit in range(steps.begin[block], steps.begin[block + 1]):
        for _ in range(steps.copies[unit]):
            fresh, choice = best.copy(), np.full(need + 1, -1)
            for k in range(steps.first[unit], steps.first[unit + 1]):
                better = best[np.minimum(np.arange(need + 1) + steps.gain[k], need)] + steps.price[k]
                choice[better > fresh] = k
                fresh = np.maximum(fresh, better)
            best = fresh
            trail.append(choice)
    total = best - weight * np.arange(need + 1)
    r = int(np.argmax(total))
    worth = float(total[r])
    for choice in reversed(trail):
        if choice[r] >= 0:
            counts[choice[r]] += 1
            r = min(r + int(steps.gain[choice[r]]), need)
    return counts, worth


@pytest.mark.parametrize("seed", range(300))
def test_settling_units_by_a_bound_changes_no_choice_and_no_bit_of_its_worth(seed: int) -> None:
    steps = random_steps(Random(seed))
    counts, worth = climb(steps)
    for block in range(len(steps.need)):
        expected, value = one_by_one(steps, block)
        own = slice(int(steps.first[steps.begin[block]]), int(steps.first[steps.begin[block + 1]]))
        assert counts[own].tolist() == expected[own].tolist()
        assert float(worth[block]) == value
