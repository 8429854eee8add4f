"""Rounds as far as the search over groups: the program, plans of groups, a first point."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from instances import instance
from strategies.sweeps import case

from evenhand import ClusterState, Policy
from evenhand.deadline import Deadline
from evenhand.entitlement import entitle
from evenhand.fairness.target import fair_target
from evenhand.greedy import greedy
from evenhand.owed_gangs import owed_gangs
from evenhand.program.blocks import blocks_of
from evenhand.program.budget import Budget
from evenhand.program.decompose import Generation
from evenhand.program.formulate import formulate
from evenhand.program.index import build_index
from evenhand.program.points import Points
from evenhand.program.variables import Program
from evenhand.shapes import IntArray
from evenhand.snapshot import take_snapshot
from evenhand.solvers.linear_model import Arrays

DECIDED = ("medium", 0, 2, 3)


@cache
def decomposed(name: str | int) -> tuple[Program, Arrays, Generation, np.ndarray]:
    """A round's program, its plans generated until bound and mix are close, and the greedy plan as a point."""
    state, policy = (instance(name), Policy()) if isinstance(name, str) else case(name, "small")
    return generated(state, policy)


def decided(state: ClusterState, policy: Policy) -> IntArray | None:
    """The greedy plan as a point of its round's program; None if it is none."""
    return _begun(state, policy)[2]


def _begun(state: ClusterState, policy: Policy) -> tuple[Program, Arrays, IntArray | None]:
    s = take_snapshot(state, policy)
    entitled = entitle(s)
    owed = owed_gangs(s, entitled)
    index = build_index(s, owed)
    program, counted = formulate(s, entitled, fair_target(s, entitled), owed, index)
    arrays = program.model.arrays()
    points = Points(program, arrays, Budget(program, Deadline(3_600.0), 0.0))
    return program, arrays, points.completed(greedy(s, entitled, index), counted)


def generated(state: ClusterState, policy: Policy) -> tuple[Program, Arrays, Generation, np.ndarray]:
    program, arrays, x = _begun(state, policy)
    assert x is not None
    blocks = blocks_of(program, arrays)
    if not blocks.count:
        pytest.fail("a state that decides nothing is no test of a search")
    generation = Generation(blocks, arrays, x, np.zeros(len(arrays.row_lower)), 1.0 + program.target.throughput)
    generation.run(3e-4, lambda: True)
    return program, arrays, generation, x
