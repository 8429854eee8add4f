"""Rounds decomposed into groups and searched by neighbourhoods agree with those solved whole (rule A4)."""

from __future__ import annotations

import pytest
from instances import instance
from strategies.sweeps import case, sweep

from evenhand import ClusterState, Policy, allocate, audit
from evenhand.program import solve

NEAR = 1e-3


def agrees(state: ClusterState, policy: Policy, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whole against decomposed, and decomposed without the whole program: bounds hold, and what is proven is the same."""
    whole = allocate(state, policy).certificate
    for most in (solve.WHOLE_MOVES, 0):
        with monkeypatch.context() as patch:
            patch.setattr(solve, "FEW_MOVES", 0)
            patch.setattr(solve, "WHOLE_MOVES", most)
            plan = allocate(state, policy)
        assert audit(state, plan, policy).ok
        parts = plan.certificate
        assert parts.status != "fallback", plan.warnings
        if whole.status == "optimal":
            assert parts.objective <= whole.objective + NEAR
            assert parts.bound is None or parts.bound >= whole.objective - NEAR
            if parts.status == "optimal":
                assert parts.objective == pytest.approx(whole.objective, abs=NEAR)
    return "held against a proven optimum" if whole.status == "optimal" else "nothing proven to hold it against"


@pytest.mark.parametrize("profile", ["tiny", "small"])
@pytest.mark.parametrize("seed", range(6))
def test_a_decomposed_round_agrees_with_the_whole_one(profile: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    agrees(*case(seed, profile), monkeypatch)


@pytest.mark.parametrize("seed", [4, 8, 10, 12])
def test_where_neighbourhoods_stall_the_whole_program_is_tried(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However far bound and plan are apart, and however many moves there are up to the most."""
    state, policy = case(seed, "small")
    whole = allocate(state, policy).certificate
    assert whole.status == "optimal"
    for name, value in (("FEW_MOVES", 0), ("SURE_MOVES", 0), ("HOPEFUL", -1.0)):
        monkeypatch.setattr(solve, name, value)
    parts = allocate(state, policy).certificate
    assert parts.status == "optimal"
    assert parts.objective == pytest.approx(whole.objective, abs=NEAR)


@pytest.mark.heavy
@pytest.mark.parametrize(("profile", "count"), [("tiny", 1_500), ("small", 500)])
def test_decomposed_rounds_agree_with_whole_ones(profile: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep(lambda state, policy: agrees(state, policy, monkeypatch), count, profile)


def test_1000_jobs_of_36_groups_are_solved_to_a_gap_of_two_percent_at_once() -> None:
    proof = allocate(instance("medium"), Policy(time_limit_s=20)).certificate
    assert proof.gap is not None
    assert proof.gap <= 0.02
