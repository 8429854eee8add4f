"""Nothing better than the plan exists: tiny clusters, every outcome tried (rules O, A4)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from oracles.dues import stated_target
from oracles.enumeration import Enumeration, TooManyOutcomes
from strategies import policies, states
from strategies.sweeps import Unfit, hold, sweep

from evenhand import allocate
from evenhand_models import ClusterState, Policy

TOLERANCE = 1e-3
"""GPUs by which the solver's whole numbers may be off."""


def no_outcome_is_better(state: ClusterState, policy: Policy) -> str:
    plan = allocate(state, policy)
    try:
        best = Enumeration(state, policy, stated_target(state, plan)).best()
    except TooManyOutcomes as why:
        raise Unfit("too many outcomes") from why
    proof = plan.certificate
    reached = {goal.name: round(goal.value * goal.weight, 6) for goal in proof.goals}
    said = f"{reached} against {best.goals} by {best.moves}"
    assert proof.bound is not None
    assert proof.bound >= best.objective - TOLERANCE
    assert proof.objective <= best.objective + TOLERANCE, said
    if best.passed_over and proof.status == "feasible":
        return "R3 decides, not proven"
    assert proof.objective == pytest.approx(best.objective, abs=TOLERANCE), said
    assert proof.status == "optimal"
    return "R1 or R3 decides" if best.passed_over else "holds"


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(states("tiny"), policies())
def test_no_outcome_is_better(state: ClusterState, policy: Policy) -> None:
    hold(no_outcome_is_better, state, policy)


@pytest.mark.heavy
def test_no_outcome_is_better_on_2000_clusters() -> None:
    sweep(no_outcome_is_better, 2_000, "tiny", most_unfit=0.01)
