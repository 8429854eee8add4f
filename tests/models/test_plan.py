"""A plan has one spelling, survives being written, and its hash leaves out how it came about."""

import json
import pickle
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import pytest

from evenhand_models import (
    Assignment,
    CalendarEntry,
    Certificate,
    GroupReport,
    Placement,
    Plan,
    PlanWarning,
    Policy,
    Reason,
    SolverReport,
    Unlock,
    canonical_bytes,
    parse_plan,
    plan_hash,
    seal,
)

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)


def certificate(**fields):
    given = {
        "status": "optimal",
        "cut_by_time": False,
        "goals": (),
        "objective": 1.0,
        "bound": 1.0,
        "gap": 0.0,
    }
    given |= {"target_throughput": 8.0, "capacity_ok": True, "protection_ok": True, "gangs_ok": True}
    given |= {
        "max_envy": 0.0,
        "floor_slack": 0.0,
        "target_envy_slack": 0.0,
        "throughput": 8.0,
        "verified": True,
    }
    return Certificate.model_validate(given | fields)


def plan(**fields):
    wait = Reason(code="protected_work", message="j2 is protected until 13:40.", refs=("j2",))
    given = {
        "now": NOW,
        "policy": Policy(),
        "assignments": [
            Assignment(job="j2", action="keep", gpus=8, gpu_type="h100", protected_until_at=NOW + timedelta(hours=1)),
            Assignment(job="j1", action="wait", reasons=[wait], earliest_start_at=NOW + timedelta(hours=1)),
        ],
        "groups": [
            GroupReport(
                group=name,
                share=1,
                usage_gpu_hours=0,
                demand_gpus=8,
                entitled_gpus=4,
                floor=4,
                throughput=8,
                standing=1,
            )
            for name in ("b", "a")
        ],
        "certificate": certificate(),
        "calendar": [CalendarEntry(job="j1", latest_start_at=NOW + timedelta(hours=1), nodes=("n0",))],
        "unlocks": [Unlock(gpu_type="h100", at=NOW + timedelta(hours=h), gpus=8) for h in (2, 1)],
        "solver": SolverReport(engine_version="0.1.0", state_hash="00", stages_ms={"solve": 1.5, "place": 0.5}),
        "warnings": [PlanWarning(code=code, message="m") for code in ("zero_shares", "node_gone")],
    }
    return Plan(**given | fields)


def test_a_plan_comes_back_equal_after_being_written():
    first = plan()
    assert parse_plan(first.to_json_bytes()) == first
    assert parse_plan(first.to_json_bytes()).to_json_bytes() == first.to_json_bytes()


def test_lists_given_in_any_order_make_the_same_plan():
    first = plan()
    turned = plan(
        **{name: getattr(first, name)[::-1] for name in ("assignments", "groups", "calendar", "unlocks", "warnings")}
    )
    assert turned.to_json_bytes() == first.to_json_bytes()
    assert [item.job for item in turned.assignments] == ["j1", "j2"]
    assert turned.unlocks[0].at < turned.unlocks[1].at


def test_a_placement_is_put_in_the_order_of_its_nodes():
    parts = [Placement(node="n1", gpus=2), Placement(node="n0", gpus=2)]
    assert [part.node for part in Assignment(job="j", action="start", placement=parts).placement] == [
        "n0",
        "n1",
    ]


def test_the_hash_leaves_out_the_solver_and_sees_everything_else():
    first = plan()
    slower = plan(solver=SolverReport(engine_version="0.1.0", state_hash="00", stages_ms={"solve": 9.0}))
    assert canonical_bytes(slower) == canonical_bytes(first)
    assert plan_hash(slower) == plan_hash(first)
    assert plan_hash(plan(policy=Policy(seed=1))) != plan_hash(first)
    assert plan_hash(plan(certificate=certificate(verified=False))) != plan_hash(first)
    assert "solver" not in json.loads(canonical_bytes(first))


def test_a_sealed_plan_carries_the_hash_anyone_can_compute():
    sealed = seal(plan())
    assert sealed.solver.plan_hash == plan_hash(sealed) == plan_hash(plan())


def test_instants_in_a_plan_are_written_with_z():
    assert json.loads(plan().to_json_bytes())["unlocks"][0]["at"] == "2026-11-01T13:00:00Z"


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_certificate_cannot_hold_what_is_no_number(value):
    with pytest.raises(ValueError, match="finite"):
        certificate(max_envy=value)


def test_a_reason_outside_the_closed_list_cannot_be_given():
    with pytest.raises(ValueError, match="Input should be"):
        Reason(code="because", message="m")


def test_every_character_is_written_as_the_model_writes_it():
    letters = [chr(code) for code in (*range(0x250), 0x2028, 0xFFFD, 0x10FFFF)]
    said = [Reason(code="priority", message=f"a{letter}b", cheapest_change=letter) for letter in letters]
    every = Assignment(
        job="j1",
        action="preempt",
        gpus=3,
        gpu_type="é",
        placement=[{"node": "n1", "gpus": 2}, {"node": "n0", "gpus": 1}],
        after=("j2", "j3"),
        protected_until_at=NOW,
        requeue=False,
        unallocated=True,
        reasons=said,
    )
    for reasons in (said, said[0x61:0x7B], said[:1]):
        given = plan(assignments=(every.model_copy(update={"reasons": tuple(reasons)}),))
        assert given.to_json_bytes() == given.model_dump_json().encode()


def test_a_copy_of_a_sealed_plan_is_written_as_the_copy_is():
    sealed = seal(plan())
    other = sealed.model_copy(update={"groups": ()})
    assert other.to_json_bytes() == other.model_dump_json().encode() != sealed.to_json_bytes()
    timed = sealed.with_solver(sealed.solver.model_copy(update={"stages_ms": {"audit": 1.0}}))
    assert timed.to_json_bytes() == timed.model_dump_json().encode() != sealed.to_json_bytes()
    assert pickle.loads(pickle.dumps(sealed)) == sealed == seal(plan())


def odd_assignments(count):
    """Reasons that many share, reasons of one's own, none at all; names and sentences that look like JSON."""
    odd = '},{"job":"x"},{"code":"b" \\ é \u2028'
    shared = [Reason(code="capacity", message=f"{odd} {k}", refs=(odd, "b")) for k in range(3)]
    for i in range(count):
        own = Reason(code="priority", message=f"{odd} own {i}", cheapest_change=odd if i % 2 else None)
        yield Assignment(
            job=f"j{i:02d}{odd}",
            action="wait",
            cheapest_change=odd if i % 3 else None,
            earliest_start_at=datetime(2026, 11, 1, tzinfo=UTC) + timedelta(microseconds=i),
            reasons=(*shared[: i % 4], own)[i % 2 :] if i % 5 else (),
        )


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 7])
def test_a_plan_is_written_byte_for_byte_as_its_model_says(count, monkeypatch):
    monkeypatch.setattr("evenhand_models.writing._AT_ONCE", 3)
    given = plan(assignments=tuple(odd_assignments(count)))
    assert given.to_json_bytes() == given.model_dump_json().encode()
    assert canonical_bytes(given) == given.model_dump_json(exclude={"solver"}).encode()
    assert plan_hash(given) == sha256(canonical_bytes(given)).hexdigest()
    assert parse_plan(given.to_json_bytes()) == given
