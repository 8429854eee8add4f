"""Order in the input, the number of threads and the spelling of names decide nothing."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from strategies import Renaming, comparable, policies, policy_with, shuffled, states, without_sentences
from strategies.sweeps import Law, Unfit, hold, sweep

from evenhand import allocate
from evenhand_models import ClusterState, Plan, Policy


def _uncut(state: ClusterState, policy: Policy) -> Plan:
    """Decide, with time enough for the deterministic limit to come first."""
    plan = allocate(state, policy_with(policy, time_limit_s=30.0))
    if plan.certificate.cut_by_time:
        raise Unfit("cut by time")
    return plan


def shuffles_change_nothing(state: ClusterState, policy: Policy) -> None:
    plan = comparable(_uncut(state, policy))
    for seed in range(2):
        mixed = shuffled(state, Random(seed))
        assert comparable(_uncut(mixed, policy)) == plan


def workers_change_nothing(state: ClusterState, policy: Policy) -> None:
    one = comparable(_uncut(state, policy))
    two = comparable(_uncut(state, policy_with(policy, workers=2)))
    assert (one["policy"].pop("workers", 1), two["policy"].pop("workers")) == (1, 2)
    assert one == two


def names_change_nothing(state: ClusterState, policy: Policy) -> None:
    names = Renaming(state)
    assert names.keeps_order()
    renamed = _uncut(names.state(state), policy)
    assert names.plan(renamed) == without_sentences(comparable(_uncut(state, policy)))


LAWS = (shuffles_change_nothing, workers_change_nothing, names_change_nothing)


@pytest.mark.parametrize("law", LAWS)
def test_it_decides_nothing(law: Law) -> None:
    @settings(max_examples=12, deadline=None, derandomize=True, database=None)
    @given(states("small"), policies())
    def holds(state: ClusterState, policy: Policy) -> None:
        hold(law, state, policy)

    holds()


@pytest.mark.heavy
@pytest.mark.parametrize("law", LAWS)
def test_it_decides_nothing_on_300_clusters(law: Law) -> None:
    sweep(law, 250, "small", most_unfit=0.01)
    sweep(law, 50, "medium", most_unfit=0.2)
