"""Random clusters: both formulations call the same objective the best."""

import pytest
from strategies.sweeps import case, sweep

from evenhand import allocate
from evenhand.crosscheck import Proof, crews, cross_check
from evenhand_models import ClusterState, Policy


def both_sides_agree(state: ClusterState, policy: Policy) -> str:
    plan = allocate(state, policy)
    found = cross_check(state, policy, plan)
    assert found.agrees, found.message
    return f"{plan.certificate.status.value} and {found.status.value}"


@pytest.mark.parametrize(("profile", "count"), [("tiny", 40), ("small", 20), ("medium", 4)])
def test_both_formulations_agree(profile: str, count: int) -> None:
    seen = sweep(both_sides_agree, count, profile)
    assert seen["optimal and optimal"] >= 0.8 * count


@pytest.mark.heavy
@pytest.mark.parametrize(("profile", "count"), [("tiny", 1000), ("small", 500), ("medium", 50)])
def test_both_formulations_agree_on_many(profile: str, count: int) -> None:
    sweep(both_sides_agree, count, profile)


@pytest.mark.parametrize("seed", range(8))
def test_counting_like_jobs_together_changes_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    state, policy = case(seed, "small")
    twins = [
        job.model_copy(update={"id": f"{job.id}-twin{number}"})
        for job in state.jobs
        if job.state == "pending"
        for number in range(2)
    ]
    doubled = state.model_copy(update={"jobs": (*state.jobs, *twins)})
    plan = allocate(doubled, policy)
    together = cross_check(doubled, policy, plan)
    monkeypatch.setattr(crews, "_likeness", lambda facts, job: job.job.id)
    one_by_one = cross_check(doubled, policy, plan)
    assert together.status is one_by_one.status is Proof.OPTIMAL
    assert together.objective == pytest.approx(one_by_one.objective, abs=1e-6)
    assert together.sizes["columns"] <= one_by_one.sizes["columns"]
