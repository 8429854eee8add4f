"""The enumeration and the audit read docs/model.md alike: both were written from it apart from each other."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from strategies.sweeps import sweep

from evenhand.audit.decisions import Choice, Decisions
from evenhand.audit.dues import dues as audit_dues
from evenhand.audit.reading import read
from evenhand.audit.target import aim_at
from evenhand.audit.worth import worth
from evenhand_models import Action, ClusterState, Job, Policy
from oracles.dues import Dues
from oracles.enumeration import GOALS, Enumeration
from oracles.moves import Move
from oracles.reading import Reader

SOME, MANY = 100, 2_000


@pytest.mark.parametrize(
    ("count", "profile"),
    [
        (SOME, "tiny"),
        (SOME, "small"),
        pytest.param(MANY, "small", marks=pytest.mark.heavy),
        pytest.param(MANY // 4, "medium", marks=pytest.mark.heavy),
    ],
)
def test_states_are_read_alike(count: int, profile: str) -> None:
    sweep(_reads_alike, count, profile)


@pytest.mark.parametrize("count", [SOME, pytest.param(MANY, marks=pytest.mark.heavy)])
def test_outcomes_are_worth_the_same(count: int) -> None:
    sweep(_worth_alike, count, "tiny")


def _reads_alike(state: ClusterState, policy: Policy) -> None:
    reader, reading = Reader(state, policy), read(state, policy)
    mine, theirs = Dues(reader), audit_dues(reading)
    for job in reader.jobs:
        other = reading.jobs[job.id]
        assert reader.fitting[job.id] == list(other.fits)
        assert reader.live(job) == other.live
        assert reader.budgeted(job) == other.budgeted
        assert reader.hit(job) == other.hit
        assert reader.pinned(job) == other.pinned
        if other.live:
            assert reader.demand(job) == pytest.approx(other.demand / 1000)
            assert reader.level(job) == pytest.approx(other.level)
            assert [reader.speed[job.id][t] for t in other.fits] == [other.rates[t] / 1000 for t in other.fits]
    assert {g: due.entitled for g, due in mine.of.items()} == pytest.approx(dict(theirs.entitled), abs=1e-6)
    leaves = {g: mine.leaf[g].entitled if g in mine.leaf else 0.0 for g in mine.of}
    assert leaves == pytest.approx(dict(theirs.leaf), abs=1e-6)
    for group, amount in theirs.within.items():
        assert mine.reach(group, mine.of[group].entitled) == pytest.approx(amount / 16)
    for group, amount in theirs.within_guarantee.items():
        assert mine.reach(group, mine.of[group].floor) == pytest.approx(amount / 16)
    assert mine.owed_gangs() == set(theirs.owed)


def _worth_alike(state: ClusterState, policy: Policy) -> None:
    rng = Random(len(state.jobs))
    enumeration = Enumeration(state, policy, {})
    capacity = enumeration.reader.capacity
    enumeration.target = {
        group: {kind: rng.random() * gpus for kind, gpus in capacity.items()} for group in enumeration.leaves()
    }
    picks = enumeration.picks()
    goals = enumeration.goals(picks)
    reading = read(state, policy)
    theirs = audit_dues(reading)
    target = aim_at(reading, theirs, enumeration.target)
    for row in rng.sample(range(len(picks)), min(8, len(picks))):
        said = worth(reading, theirs, target, _decisions(enumeration, picks[row]))
        weighted = {name: value * said.weights[name] for name, value in said.goals.items()}
        assert weighted == pytest.approx({name: float(goals[name][row]) for name in GOALS}, abs=1e-6)


def _decisions(enumeration: Enumeration, picks: np.ndarray) -> Decisions:
    """Put one outcome into the audit's words."""
    choices, reserved = {}, {}
    for (job, moves), pick in zip(enumeration.jobs, picks, strict=True):
        move = moves[pick]
        if move.what == "reserve":
            reserved[job.id] = str(move.kind)
        if move.what != "orphan":
            choices[job.id] = _choice(job, move, hit=enumeration.reader.hit(job))
    return Decisions(choices, reserved)


def _choice(job: Job, move: Move, *, hit: bool) -> Choice:
    match move.what:
        case "reserve" | "wait":
            return Choice(Action.WAIT)
        case "repair":
            return Choice(Action.MIGRATE, move.kind, move.gpus, move.changed)
        case "migrate":
            return Choice(Action.MIGRATE, move.kind, move.gpus, job.placed_gpus if hit else 0)
        case _:
            return Choice(Action(move.what), move.kind, move.gpus)
