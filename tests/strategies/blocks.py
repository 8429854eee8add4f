"""Blocks of a program that no state stands behind: groups with units, ways and needs, and prices."""

from __future__ import annotations

from random import Random

import numpy as np

from evenhand.program.blocks import Blocks


def random_blocks(rng: Random) -> tuple[Blocks, np.ndarray, np.ndarray]:
    """Two to three groups with a few units of one to three jobs and one to three ways each, prices of both signs."""
    unit_block, most, least, way_unit, gain, needs = [], [], [], [], [], []
    groups = rng.randint(2, 3)
    for b in range(groups):
        needs.append(rng.choice([0, 3, 7, 12]))
        for _ in range(rng.randint(1, 3)):
            unit = len(most)
            unit_block.append(b)
            pinned = rng.random() < 0.15
            most.append(1 if pinned else rng.randint(1, 3))
            least.append(1 if pinned else 0)
            for _ in range(rng.randint(1, 3)):
                way_unit.append(unit)
                gain.append(min(rng.randint(0, 8), needs[-1]))
    ways = len(way_unit)
    none = np.zeros(ways + groups, dtype=bool)
    blocks = Blocks(
        group=np.arange(groups), need=np.array(needs), short_cost=np.full(groups, 5),
        short_column=np.where(np.array(needs) > 0, ways + np.arange(groups), -1), unit_block=np.array(unit_block),
        most=np.array(most), least=np.array(least), way_unit=np.array(way_unit), column=np.arange(ways),
        gain=np.array(gain), shared_column=none, shared_row=np.zeros(0, dtype=bool),
    )  # fmt: skip
    price = np.array([round(rng.uniform(-9, 4), 2) for _ in range(ways)])
    return blocks, price, np.array([rng.choice([0.5, 1.0, 3.0]) for _ in range(groups)])


def worth(blocks: Blocks, block: int, counts: np.ndarray, price: np.ndarray, short: float) -> float:
    """What a plan of a block is worth under prices."""
    first, end = blocks.span(block)
    missing = max(0, int(blocks.need[block]) - int((counts * blocks.gain[first:end]).sum()))
    return float((counts * price[first:end]).sum()) - short * missing
