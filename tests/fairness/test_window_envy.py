"""Envy over many rounds (DESIGN 7): by hand, and falling where only usage carries over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from audit.build import group as grouped
from audit.build import job, node, running
from audit.build import state as built
from entitlement.built import group, jobs, snapshot

from evenhand import allocate, window_envy
from evenhand.window_envy import EnvyWindow
from evenhand_models import ClusterState, Plan, Policy, Usage


def carried(state: ClusterState, count: int, hours: float = 1.0, **policy: Any) -> Iterator[tuple[ClusterState, Plan]]:
    """Rounds in which every job comes again and only usage remembers."""
    usage = {one.id: 0.0 for one in state.groups}
    for _ in range(count):
        told = tuple(Usage(group=name, charged_gpu_hours=spent) for name, spent in usage.items())
        asked = state.model_copy(update={"usage": told})
        plan = allocate(asked, Policy.model_validate(policy))
        yield asked, plan
        for report in plan.groups:
            usage[report.group] += hours * sum(report.allocated.values())


def three_gpus_for_two() -> ClusterState:
    return snapshot({"h100": 3}, [group("a"), group("b")], jobs("a", 4) + jobs("b", 4), node=3).state


def test_one_round_by_hand():
    """Who has 1 where 2 are scaled to its own 1.5 envies by 1, of a floor of 1.5; and the other not at all."""
    found = window_envy(carried(three_gpus_for_two(), 1))
    assert found.rounds == 1
    (pair,) = found.pairs
    assert {pair.group, pair.envied} == {"a", "b"}
    assert pair.envy == pytest.approx(1 / 1.5)
    assert (pair.forced_by_pins, pair.ours, pair.rounds) == (0.0, pair.envy, 1)
    assert found.max_envy == pair.envy
    assert found.sharing_incentive[pair.group] == pytest.approx(1 / 1.5)
    assert found.least_sharing_incentive == pytest.approx(1 / 1.5)


def test_what_rounding_left_comes_back_and_envy_falls_as_one_over_the_rounds():
    window, largest = EnvyWindow(), {}
    for t, (state, plan) in enumerate(carried(three_gpus_for_two(), 50), start=1):
        window.add(state, plan)
        largest[t] = window.report().max_envy
    # What is owed moves with usage by the length of a round over the horizon, 1/168, and so does the scale.
    assert all(envy <= (1 / 1.5) / t + 1 / 168 for t, envy in largest.items())
    assert largest[1] > 0.6
    assert window.report().least_sharing_incentive >= 0.99


def test_three_groups_with_gangs_take_turns():
    """Six GPUs, three groups, gangs of 4: one gang and a half each over any three rounds."""
    work = jobs("a", 2, 4) + jobs("b", 2, 4) + jobs("c", 2, 4)
    state = snapshot({"h100": 4}, [group("a"), group("b"), group("c")], work, node=4).state
    window = EnvyWindow()
    for t, (seen, plan) in enumerate(carried(state, 24, horizon_s=3600 * 168), start=1):
        window.add(seen, plan)
        assert window.report().max_envy <= 3.2 / t + 0.05
    assert min(window.report().sharing_incentive.values()) >= 0.95


def test_a_short_horizon_pays_back_what_rounding_left_sooner():
    """41 GPUs for six groups, one gang of eight each: what six whole GPUs leave goes to the same two for a while."""
    work = [one for name in "abcdef" for one in jobs(name, 41) + jobs(name, 1, 8)]
    state = snapshot({"h100": 41}, [group(name) for name in "abcdef"], work, node=41).state
    after = {h: window_envy(carried(state, 24, horizon_s=3600 * h)) for h in (6, 168)}
    assert after[6].max_envy < 0.5 * after[168].max_envy
    assert after[6].least_sharing_incentive > after[168].least_sharing_incentive
    assert after[6].least_sharing_incentive >= 0.95


def test_rounds_in_which_one_of_the_two_is_away_do_not_count_for_the_pair():
    both = snapshot({"h100": 3}, [group("a"), group("b")], jobs("a", 4) + jobs("b", 4), node=3).state
    alone = snapshot({"h100": 3}, [group("a"), group("b")], jobs("a", 4), node=3).state
    found = window_envy((state, allocate(state)) for state in (both, alone, alone))
    assert found.rounds == 3
    assert {pair.rounds for pair in found.pairs} == {1}
    assert found.pairs == window_envy([(both, allocate(both))]).pairs


def test_what_protected_jobs_hold_is_called_forced():
    """B holds six of eight GPUs under protection: A, owed four, has two and would have six."""
    held = [running("b1", "B", {"n1": 6}, started_at="2026-11-01T11:50:00Z")]
    work = [job(f"a{i}", "A", 1) for i in range(8)] + [job(f"b{i}", "B", 1) for i in range(2, 4)]
    state = built([node("n1", 8)], [grouped("A"), grouped("B")], held + work)
    found = window_envy([(state, allocate(state))])
    (pair,) = found.pairs
    assert (pair.group, pair.envied) == ("A", "B")
    assert pair.envy == pytest.approx(1.0)
    assert pair.forced_by_pins == pytest.approx(pair.envy)
    assert pair.ours == pytest.approx(0.0)


def test_a_longer_round_counts_for_more():
    rounds = list(carried(three_gpus_for_two(), 2, horizon_s=3600))
    assert {plan.groups[0].allocated["h100"] for _, plan in rounds} == {1, 2}
    window = EnvyWindow()
    for weight, (state, plan) in zip((3.0, 1.0), rounds, strict=True):
        window.add(state, plan, weight)
    thrice = window_envy([rounds[0]] * 3 + [rounds[1]])
    assert [(p.group, p.envied, p.envy) for p in window.report().pairs] == [
        (p.group, p.envied, pytest.approx(p.envy)) for p in thrice.pairs
    ]


def test_groups_inside_the_tree_count_their_own_jobs_only():
    groups = [group("a"), group("a/x", parent="a"), group("b")]
    work = jobs("a", 4) + jobs("a/x", 4) + jobs("b", 4)
    found = window_envy(carried(snapshot({"h100": 8}, groups, work, node=8).state, 1))
    assert set(found.sharing_incentive) == {"a", "a/x", "b"}
    assert found.sharing_incentive == pytest.approx(dict.fromkeys(("a", "a/x", "b"), 1.0))
    assert found.max_envy == 0.0


def test_no_rounds_no_envy():
    found = window_envy([])
    assert (found.rounds, found.pairs, found.max_envy, found.least_sharing_incentive) == (0, (), 0.0, None)
