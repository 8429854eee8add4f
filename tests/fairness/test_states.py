"""What the objectives promise of whole states, and the counter-examples to what they do not."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

import pytest
from audit.build import group as grouped
from audit.build import job, node, running
from audit.build import state as built
from entitlement.built import group, jobs, snapshot
from strategies.clusters import random_state
from strategies.transforms import changed

from evenhand import allocate, compare_objectives
from evenhand.fairness import envy_free
from evenhand.speedups import misreport_gain
from evenhand_models import ClusterState, Objective, ObjectiveComparison, ObjectiveOutcome, Policy, ThroughputUnit

SLOWEST = Policy(throughput_unit=ThroughputUnit.SLOWEST)


def by_vectors(
    vectors: dict[str, tuple[float, ...]], gpus: tuple[int, ...], counts: dict[str, int] | None = None, **share: float
) -> ClusterState:
    """Types t0, t1 ...; every group has jobs of one GPU, twice as many as there are GPUs unless told."""
    types = [f"t{i}" for i in range(len(gpus))]
    work: list[dict[str, Any]] = []
    for name, vector in vectors.items():
        count = (counts or {}).get(name, 2 * sum(gpus))
        work += jobs(name, count, speedup=dict(zip(types, vector, strict=True)))
    owners = [group(name, share.get(name, 1.0)) for name in vectors]
    return snapshot(dict(zip(types, gpus, strict=True)), owners, work).state


def under(state: ClusterState, objective: Objective, policy: Policy | None = None) -> ObjectiveOutcome:
    return compare_objectives(state, policy).outcome(objective)


def throughput(outcome: ObjectiveOutcome) -> dict[str, float]:
    return {one.group: one.throughput for one in outcome.groups}


# Counter-examples, in the unit in which they are stated


def test_envy_free_is_not_pareto_efficient_for_three_groups():
    state = by_vectors({"a": (1, 8, 9), "b": (1, 1, 4), "c": (1, 6, 8)}, (2, 2, 2))
    found = under(state, Objective.ENVY_FREE, SLOWEST)
    assert found.value == pytest.approx(30.75)
    assert found.pareto_gap == pytest.approx(32 / 30.75 - 1)
    assert found.max_envy == 0.0
    assert found.least_sharing_incentive >= 1 - 1e-6


def test_equal_throughput_rewards_declaring_too_little():
    """W = (1,2) and (1,4), one GPU of each: reporting (1,3) lifts the second from 2 to 2.4."""
    state = by_vectors({"a": (1, 2), "b": (1, 4)}, (1, 1))
    policy = SLOWEST.model_copy(update={"objective": Objective.EQUAL_THROUGHPUT})
    found = misreport_gain(state, policy, "b", factors={"t1": 0.75})
    assert found.honest == pytest.approx(2.0, abs=1e-3)
    assert found.declared == pytest.approx(2.4, abs=2e-3)


def test_equal_throughput_can_leave_a_group_below_its_own_slice():
    state = by_vectors({"a": (1, 1), "b": (1, 10)}, (5, 5))
    assert under(state, Objective.EQUAL_THROUGHPUT, SLOWEST).least_sharing_incentive < 0.5


def test_nash_can_miss_a_floor_where_a_group_is_at_its_cap():
    """W = (1,2) with a cap of 1.5 and (1,4), m = (3,1), e = (1.5, 2.5), all doubled, as GPUs are whole."""
    state = by_vectors({"a": (1, 2), "b": (1, 4)}, (6, 2), {"a": 3}, a=3, b=5)
    seen = compare_objectives(state, SLOWEST)
    assert {o.group: o.entitled_gpus for o in seen.owed} == pytest.approx({"a": 3.0, "b": 5.0})
    assert {o.group: o.floor for o in seen.owed} == pytest.approx({"a": 3.75, "b": 8.75})
    found = seen.outcome(Objective.NASH)
    assert throughput(found) == pytest.approx({"a": 3.0, "b": 11.0}, abs=1e-4)
    assert found.least_sharing_incentive == pytest.approx(0.8, abs=1e-4)
    assert found.pareto_gap <= 1e-6
    assert seen.outcome(Objective.ENVY_FREE).least_sharing_incentive >= 1 - 1e-6


def test_max_min_can_leave_envy():
    state = by_vectors({"a": (1, 5), "b": (1, 6), "c": (1, 9)}, (4, 4))
    found = compare_objectives(state, SLOWEST)
    assert found.outcome(Objective.MAX_MIN).max_envy == pytest.approx(0.0518, abs=1e-3)
    assert found.outcome(Objective.ENVY_FREE).max_envy == 0.0


def test_max_throughput_can_leave_a_group_nothing():
    state = by_vectors({"a": (0, 1), "b": (1, 9)}, (6, 6))
    found = under(state, Objective.MAX_THROUGHPUT, SLOWEST)
    assert throughput(found) == pytest.approx({"a": 0.0, "b": 60.0})
    assert (found.least_sharing_incentive, found.least_served) == (0.0, "a")


def test_with_caps_envy_free_leaves_no_gpu_idle_that_lines_at_slices_alone_would(monkeypatch):
    """A can use the eighth GPU and B and C have all they can use: lines at their slices say that they would envy it."""
    kinds = [("a", (0, 1), 8), ("b", (1, 1), 2), ("b", (0.5, 1), 2), ("c", (1, 1), 1), ("c", (0.5, 1), 1)]
    work = []
    for place, (owner, vector, count) in enumerate(kinds):
        made = jobs(owner, count, speedup=dict(zip(("t0", "t1"), vector, strict=True)))
        work += [one | {"id": f"{one['id']}-{place}"} for one in made]
    state = snapshot({"t0": 4, "t1": 4}, [group(name) for name in "abc"], work).state
    for repeats, idle, gap in ((envy_free.MOST_REPEATS, 0.0, 0.0), (0, 1.0, 0.5 / 7)):
        monkeypatch.setattr(envy_free, "MOST_REPEATS", repeats)
        outcome = compare_objectives(state).outcome(Objective.ENVY_FREE)
        assert outcome.max_envy == pytest.approx(0.0, abs=1e-6)
        assert outcome.idle_gpus == pytest.approx(idle, abs=1e-6)
        assert outcome.pareto_gap == pytest.approx(gap, abs=1e-6)


def test_fair_share_leaves_what_some_cannot_use_idle():
    state = by_vectors({"a": (0, 1), "b": (1, 1)}, (6, 6))
    found = under(state, Objective.FAIR_SHARE)
    assert found.idle_gpus == pytest.approx(3.0)
    assert found.max_envy == 0.0
    assert found.least_sharing_incentive == pytest.approx(1.0)
    assert found.pareto_gap == pytest.approx(12 / 9 - 1)


# What changes nothing


def others(found: ObjectiveComparison, but: Iterable[str] = ()) -> list[Any]:
    """Owed and outcomes, left out who is named."""
    rows: list[Any] = [one.model_dump() for one in found.owed if one.group not in but]
    for outcome in found.objectives:
        rows += [one.model_dump(exclude={"max_envy"}) for one in outcome.groups if one.group not in but]
    return rows


@pytest.mark.parametrize("factor", [2.0, 0.125, 1024.0])
@pytest.mark.parametrize("unit", list(ThroughputUnit))
@pytest.mark.parametrize("seed", range(4))
def test_scaling_the_vector_of_a_job_changes_nothing(seed, unit, factor):
    state, policy, rng = random_state(Random(seed), "medium"), Policy(throughput_unit=unit), Random(seed)

    def scale(wire: dict[str, Any]) -> None:
        for one in wire["jobs"]:
            if rng.random() < 0.5:
                one["speedup"] = {name: factor * x for name, x in one["speedup"].items()}

    assert compare_objectives(changed(state, scale), policy) == compare_objectives(state, policy)


@pytest.mark.parametrize("seed", range(8))
def test_a_group_of_zero_share_changes_nothing_for_the_others(seed):
    rng = Random(seed)
    vectors = {name: tuple(rng.choice([1.0, 2.0, 5.0]) for _ in range(3)) for name in "abc"}
    state = by_vectors(vectors, (4, 7, 5))
    more = by_vectors(vectors | {"z": (1.0, 1.0, 9.0)}, (4, 7, 5), z=0)
    assert others(compare_objectives(more)) == others(compare_objectives(state))


@pytest.mark.parametrize("seed", range(8))
def test_a_group_that_can_use_no_type_changes_nothing_for_the_others(seed):
    rng = Random(seed)
    vectors = {name: tuple(rng.choice([1.0, 2.0, 5.0]) for _ in range(3)) for name in "abc"}
    state = by_vectors(vectors, (4, 7, 5))
    more = by_vectors(vectors | {"z": (0.0, 0.0, 0.0)}, (4, 7, 5), z=7)
    assert others(compare_objectives(more)) == others(compare_objectives(state))


# What is pinned


def held(protected: bool) -> ClusterState:
    """B's six of eight GPUs, under protection or just past it; A waits for as many as there are."""
    since = "2026-11-01T11:50:00Z" if protected else "2026-11-01T10:00:00Z"
    work = [job(f"a{i}", "A", 1) for i in range(8)] + [job(f"b{i}", "B", 1) for i in range(2, 4)]
    return built(
        [node("n1", 8)], [grouped("A"), grouped("B")], [running("b1", "B", {"n1": 6}, started_at=since), *work]
    )


@pytest.mark.parametrize("objective", list(Objective))
def test_the_target_does_not_depend_on_what_is_protected(objective):
    free, pinned = (compare_objectives(held(protected)).outcome(objective) for protected in (False, True))
    assert free == pinned


def test_protection_only_adds_envy_and_all_of_it_is_called_forced():
    free, pinned = (allocate(held(protected)).certificate for protected in (False, True))
    assert free.envy == ()
    (pair,) = pinned.envy
    assert (pair.group, pair.envied) == ("A", "B")
    assert pair.envy == pytest.approx(1.0)
    assert pair.forced_by_pins == pytest.approx(pair.envy)
    assert pair.ours == pytest.approx(0.0)
    assert (pinned.floor_slack, pinned.target_envy_slack) == (0.0, 0.0)


@pytest.mark.parametrize("seed", range(10))
def test_where_everything_is_protected_all_envy_is_called_forced(seed):
    """Each GPU is held by a protected job of a group with one kind of job: no plan could do otherwise."""
    rng = Random(seed)
    names, types = "ABCDE", ("k80", "v100")
    speed = {name: {"k80": 1.0, "v100": rng.choice([1.0, 2.0, 4.0])} for name in names}
    work = []
    for kind in types:
        for i in range(12):
            owner = rng.choice(names)
            work.append(
                running(f"{kind}{i}", owner, {kind: 1}, speedup=speed[owner], started_at="2026-11-01T11:50:00Z")
            )
    work += [job(f"w{name}", name, 1, speedup=speed[name]) for name in names for _ in range(1)]
    state = built([node(kind, 12, kind) for kind in types], [grouped(name) for name in names], work)
    proof = allocate(state).certificate
    assert all(pair.ours <= 1e-6 for pair in proof.envy)
    assert all(pair.forced_by_pins == pytest.approx(pair.envy, abs=1e-6) for pair in proof.envy)
