"""A session's rounds are as good as rounds that know nothing of one another."""

from __future__ import annotations

from datetime import timedelta

import pytest
from instances import instance
from strategies import apply_plan
from strategies.sweeps import case

from evenhand import ClusterState, Policy, Session, allocate, audit
from evenhand.program import solve


def later(state: ClusterState, seconds: int) -> ClusterState:
    return ClusterState.model_validate({**dict(state), "now": state.now + timedelta(seconds=seconds)})


@pytest.mark.parametrize("seed", range(8))
def test_what_a_session_proves_is_worth_what_a_round_alone_proves(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solve, "FEW_MOVES", 0)
    state, policy = case(seed, "small")
    session = Session(policy)
    for _ in range(3):
        plan, alone = session.allocate(state), allocate(state, policy)
        assert audit(state, plan, policy).ok
        if plan.certificate.status == alone.certificate.status == "optimal":
            assert plan.certificate.objective == pytest.approx(alone.certificate.objective, abs=1e-3)
        state = later(apply_plan(state, plan), 60)


def test_the_second_round_of_a_session_starts_from_the_prices_of_the_first() -> None:
    """Plans are generated in fewer passes, and the bound is as good."""
    state = instance("medium")
    session = Session(Policy(time_limit_s=10.0))
    first, second = (session.allocate(state) for _ in range(2))
    assert 0 < second.solver.sizes["pricings"] < first.solver.sizes["pricings"]
    bounds = [plan.certificate.bound for plan in (first, second)]
    assert None not in bounds
    assert bounds[1] == pytest.approx(bounds[0], abs=0.01 * first.certificate.target_throughput)


def test_a_session_takes_any_state_after_any_other() -> None:
    session = Session(Policy(time_limit_s=10.0))
    for name in ("small", "philly_3vc_day40", "small"):
        state = instance(name)
        assert audit(state, session.allocate(state), session.policy).ok
