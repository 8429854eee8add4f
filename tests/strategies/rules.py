"""Random policies."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import strategies as st

from evenhand_models import ClusterState, Policy
from strategies.draws import Draws, HypothesisDraws, SeededDraws

OBJECTIVES = ("envy_free", "nash", "equal_throughput", "max_min", "max_throughput", "fair_share")


def longest_pending_contract(state: ClusterState) -> int:
    """Return the least `max_protection_s` under which a state is valid, in seconds."""
    return max((job.contract.min_runtime_s for job in state.jobs if job.state == "pending"), default=0)


def wire_policy(draws: Draws, least_cap_s: int) -> dict[str, Any]:
    """Draw a policy, as wire JSON; contracts of `least_cap_s` stay allowed."""
    policy: dict[str, Any] = {}
    if draws.chance(40):
        policy["objective"] = draws.pick(OBJECTIVES)
    if draws.chance(10):
        policy["half_life_s"] = 86_400
    if draws.chance(25):
        policy["horizon_s"] = draws.pick((86_400, 3_600, 60, 10_000_000))
    if draws.chance(20):
        policy["throughput_unit"] = "slowest"
    if draws.chance(25):
        policy["lookahead_s"] = draws.pick((7_200, 600, 300, 86_400))
    if draws.chance(30):
        policy["restart_cost_s"] = draws.pick((0, 60, 1_000, 10_000))
    if draws.chance(20):
        policy["allow_migration"] = False
    if draws.chance(20):
        policy["max_protection_s"] = max(least_cap_s, draws.pick((14_400, 3_600, 100, 0)))
    if draws.chance(40):
        policy["debug_contract_s"] = draws.pick((600, 0, 3_600, 28_800))
        policy["debug_share"] = draws.pick((0.5, 1.0, 0.25, 0.0))
    return policy


def random_policy(rng: Random, state: ClusterState | None = None) -> Policy:
    """Draw a policy with a seeded generator; valid for `state` if given, else for every drawn state."""
    least = 28_800 if state is None else longest_pending_contract(state)
    return Policy.model_validate(wire_policy(SeededDraws(rng), least))


@st.composite
def policies(draw: st.DrawFn, state: ClusterState | None = None) -> Policy:
    """Strategy: policies, valid for `state` if given, else for every drawn state."""
    least = 28_800 if state is None else longest_pending_contract(state)
    return Policy.model_validate(wire_policy(HypothesisDraws(draw), least))
