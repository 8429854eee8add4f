"""What if a job came now: the forecast, what it rests on, and that nothing changes. Case 28."""

from datetime import timedelta

import pytest
from cases.states import NOW, after, changed_node, cluster, job, nodes

from evenhand import allocate, audit
from evenhand.whatif import what_if_start
from evenhand.whatif.forward import later_rounds, next_event, state_later
from evenhand_models import ClusterState, InvalidInput, Policy, canonical_state_bytes, state_hash
from evenhand_models.whatif import StartForecast, WhatIfStart

EVEN = {"A": 50, "B": 50}


def drained_and_protected(**more) -> ClusterState:
    on = changed_node(nodes("2x8 H100"), "n1", status="cordoned")
    jobs = [job("j1", "B", 8, on={"n0": 8}, ran=20, c=120, **more), job("p", "A", 8)]
    return cluster(on, EVEN, jobs, used={"A": 5_000.0, "B": 0.0})


def full_of_ones(ran: float, contract: float = 60) -> ClusterState:
    """Four nodes of eight, 32 jobs of B that started a minute apart, the first `ran` minutes ago."""
    ones = [job(f"b{i:02}", "B", 1, on={f"n{i // 8}": 1}, ran=ran - i, c=contract) for i in range(32)]
    return cluster(nodes("4x8 H100"), EVEN, ones, used={"A": 0.0, "B": 5_000.0})


def one(answer: WhatIfStart) -> StartForecast:
    assert len(answer.jobs) == 1
    return answer.jobs[0]


def test_case_28_a_job_that_nobody_makes_room_for_gets_no_date_and_the_state_is_as_it_was() -> None:
    state = drained_and_protected()
    before = canonical_state_bytes(state)
    answer = what_if_start(state, [job("p2", "A", 8, c=0)])
    p2 = one(answer)
    assert p2.action == "wait"
    assert (p2.earliest_start_at, p2.latest_start_at, p2.would_go) == (None, None, ())
    assert p2.reasons
    assert answer.reservation is False
    assert "not a reservation" in answer.note
    assert answer.state_hash == state_hash(state)
    assert canonical_state_bytes(state) == before


def test_case_28_an_expected_end_gives_the_range_of_start() -> None:
    state = drained_and_protected(expected_end_at=after(130))
    answer = what_if_start(state.model_copy(update={"jobs": state.jobs[:1]}), [job("p2", "A", 8, c=0)])
    p2 = one(answer)
    assert p2.earliest_start_at == after(130)
    assert p2.latest_start_at == after(130)
    assert p2.basis == "expected_ends"
    assert "if jobs end when they are expected to" in p2.summary


def test_a_start_in_this_round_names_who_goes_as_the_plan_with_it_does() -> None:
    state, new = full_of_ones(ran=155), job("g", "A", 16)
    answer = what_if_start(state, [new])
    g = one(answer)
    plan = allocate(state.model_copy(update={"jobs": (*state.jobs, new)}))
    stopped = sorted(a.job for a in plan.assignments if a.action == "preempt")
    assert len(stopped) == 16
    assert [going.job for going in g.would_go] == stopped
    assert {(going.action, going.requeue, going.group) for going in g.would_go} == {("preempt", True, "B")}
    assert (g.action, g.earliest_start_at, g.latest_start_at, g.basis) == ("start", NOW, NOW, "now")
    assert [(c.job, c.without, c.with_added) for c in answer.changes] == [(j, "keep", "preempt") for j in stopped]


def test_a_later_start_lies_between_the_first_end_of_protection_that_could_do_and_its_round() -> None:
    answer = what_if_start(full_of_ones(ran=55), [job("g", "A", 16)])
    g = one(answer)
    assert g.action == "wait"
    assert g.earliest_start_at == after(20)  # the sixteenth contract ends
    assert g.earliest_start_at <= g.latest_start_at <= after(26)
    assert g.basis == "contracts"
    assert len(g.would_go) == 16
    assert answer.changes == ()
    assert "even if no job ends by itself" in g.summary


def test_a_job_that_fits_nowhere_is_infeasible_and_costs_no_look_ahead() -> None:
    answer = what_if_start(full_of_ones(ran=55), [job("h", "A", 64)])
    assert one(answer).action == "infeasible"
    assert "32" in one(answer).summary
    assert answer.rounds == 1


def test_jobs_that_come_together_are_weighed_together() -> None:
    state = cluster(nodes("1x8 H100"), EVEN, [])
    answer = what_if_start(state, [job("y", "A", 8), job("x", "A", 8)])
    assert [f.job for f in answer.jobs] == ["x", "y"]
    assert sorted(f.action for f in answer.jobs) == ["start", "wait"]


def test_rounds_0_looks_at_this_round_only_and_progress_counts_every_round() -> None:
    seen: list[int] = []
    answer = what_if_start(full_of_ones(ran=55), [job("g", "A", 16)], rounds=0, progress=seen.append)
    assert one(answer).latest_start_at is None
    assert answer.rounds == 1
    assert seen == [1]


def test_a_job_that_cannot_be_added_is_refused_with_pointers() -> None:
    state = drained_and_protected()
    bad = [job("j1", "A", 1), job("r", "A", 8, on={"n0": 8}), job("c", "A", 1, c=600)]
    with pytest.raises(InvalidInput) as refused:
        what_if_start(state, bad)
    assert [e.pointer for e in refused.value.errors] == ["/add/0/id", "/add/1/state", "/add/2/contract/min_runtime_s"]


def test_every_later_round_is_a_plan_the_audit_passes_on_the_state_it_answers() -> None:
    state, policy = full_of_ones(ran=55), Policy()
    rounds = list(
        later_rounds(state, allocate(state), policy, ends_believed=False, until=after(480), most=30),
    )
    assert rounds
    assert all(audit(later.state, later.plan, policy).ok for later in rounds)
    times = [later.state.now for later in rounds]
    assert times == sorted(set(times))


def test_time_passing_charges_what_runs_and_lets_what_was_expected_to_end_end() -> None:
    ending = job("e", "B", 4, on={"n0": 4}, ran=10, expected_end_at=after(30))
    state = cluster(nodes("1x8 H100"), EVEN, [ending, job("n", "A", 4), job("u", "A", 0 + 4, c=0)], used={"B": 1.0})
    plan = allocate(state)
    assert next_event(state, plan, timedelta(0), ends_believed=True) == after(30)
    assert next_event(state, plan, timedelta(0), ends_believed=False) == after(50)
    believed = state_later(state, plan, after(30), ends_believed=True)
    assert [j.id for j in believed.jobs] == ["n", "u"]
    assert {u.group: u.charged_gpu_hours for u in believed.usage} == {"A": 2.0, "B": 1.0}
    doubted = state_later(state, plan, after(30), ends_believed=False)
    assert [(j.id, j.state, j.expected_end_at) for j in doubted.jobs] == [
        ("e", "running", None), ("n", "running", None), ("u", "pending", None),
    ]  # fmt: skip
    assert {u.group: u.charged_gpu_hours for u in doubted.usage} == {"A": 2.0, "B": 3.0}
