"""Real and generated cluster states come back proven or bounded, audited and in time (rules A1 to A4)."""

from __future__ import annotations

from time import perf_counter

import pytest
from instances import instance

from evenhand import Plan, Policy, allocate, audit

LATE = 1.1
"""Share of the time limit within which the answer must have come."""


def timed(name: str, policy: Policy) -> Plan:
    state = instance(name)
    began = perf_counter()
    plan = allocate(state, policy)
    took = perf_counter() - began
    report = audit(state, plan, policy)
    assert report.ok, report.findings[:3]
    assert took <= policy.time_limit_s * LATE
    return plan


def test_a_cluster_of_16_nodes_is_proven_optimal() -> None:
    assert timed("small", Policy()).certificate.status == "optimal"


def test_a_cluster_of_128_nodes_and_1000_jobs_is_within_five_percent() -> None:
    proof = timed("medium", Policy()).certificate
    assert proof.gap is not None
    assert proof.gap <= 0.05


@pytest.mark.parametrize("name", ["philly_3vc_day40", "venus_day30"])
def test_thousands_of_waiting_jobs_on_a_real_cluster_are_proven_optimal(name: str) -> None:
    assert timed(name, Policy()).certificate.status == "optimal"


def test_181_groups_that_ask_for_twice_the_cluster_are_served_in_time() -> None:
    proof = timed("ai2_like_day12", Policy()).certificate
    assert proof.bound is not None
    assert proof.bound >= proof.objective


@pytest.mark.parametrize(("name", "limit_s"), [("small", 0.5), ("medium", 2.0)])
def test_a_shorter_limit_is_kept_too(name: str, limit_s: float) -> None:
    timed(name, Policy(time_limit_s=limit_s))


def test_the_same_state_gives_the_same_bytes() -> None:
    state = instance("small")
    first, second = allocate(state), allocate(state)
    assert first.solver.plan_hash == second.solver.plan_hash
