"""A cluster's rounds begin with what the last one has learnt where answers may vary, and only there."""

from __future__ import annotations

from datetime import timedelta

import pytest
from instances import instance

from evenhand import ClusterState, Policy, audit
from evenhand_api.rest.clusters import solve


@pytest.fixture(autouse=True)
def nothing_learnt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solve, "_SESSIONS", {})


def minute_later(state: ClusterState) -> ClusterState:
    return ClusterState.model_validate({**dict(state), "now": state.now + timedelta(seconds=60)})


def test_a_round_whose_answer_may_vary_begins_where_the_last_one_of_its_cluster_ended() -> None:
    state, policy = instance("medium"), Policy(time_limit_s=3.0, deterministic=False)
    first = solve.decided("ledger", "a", state, policy)
    second = solve.decided("ledger", "a", minute_later(state), policy)
    stranger = solve.decided("ledger", "b", minute_later(state), policy)
    pricings = [plan.solver.sizes["pricings"] for plan in (first, second, stranger)]
    assert pricings[1] < min(pricings[0], pricings[2])
    assert audit(minute_later(state), second, policy).ok


def test_rounds_that_must_repeat_learn_nothing() -> None:
    state, policy = instance("small"), Policy(time_limit_s=5.0)
    one, two = (solve.decided("ledger", "a", state, policy) for _ in range(2))
    assert one.assignments == two.assignments
    assert solve._SESSIONS == {}


def test_only_so_many_clusters_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solve, "MOST_SESSIONS", 2)
    state, policy = instance("two_groups_one_h100"), Policy(time_limit_s=1.0, deterministic=False)
    for cluster in ("a", "b", "a", "c"):
        solve.decided("ledger", cluster, state, policy)
    assert [cluster for _, cluster in solve._SESSIONS] == ["a", "c"]
