"""A plan worked out with a pencil, which the audit accepts, and what it says when one number is wrong.

Two nodes of 4, h100 (charged 2) and a100 (charged 1): 12 charged GPUs. The lab has red and blue, equal
shares; red has used 336 GPU-hours, 2 GPUs over the horizon of a week, blue nothing: of 12, red is owed 5 and
blue 7 (lambda = 7). Every job is twice as fast on an h100. Red runs r1 and r2 (2 each) on the h100 node, r2
protected; r3 is unallocated. Blue's b1 (2) starts on a100; its b2 (4, charged 8 > 7) is owed at the lab, and
waits.

Slices: red 5/12, blue 7/12 of 4 + 4; worth 1.5 a pair: floors 2.5 and 3.5, and these are the targets. Aims: 2
of red's {2, 2}, 2 of blue's {2, 4}.
Guarantee of blue: 4; b1 gives 2, so 2 short at 200 x 2: 800. Lab: {4, 4, 4, 8} within 12 is 12, held 8 + 2,
so 2 short at 1 x 2: 4 (it has used as much as the average: itself). Leaves: blue reaches 1 of 2, and b2 counts 4: 500.
Envy: L of red's 4 h100 for blue is 7/5 x 4 = 5.6, it reaches 1 and its biggest gang 4: 0.6 x 5/7 = 3/7.
Order: r1 2 (1/16 + 1/2 + 3/224), r2 2 (1/16 + 0 + 1/224), b1 2 (1/16 + 1/2 + 2/224): 17/7.
Work: r1 ends in half an hour 1, r2 2, b1 1 x 11/12.
Unallocated r3: 1/16 + 1/2 + 1/224 + 1/2 x 11/12, times 1/512.
"""

import pytest

from audit.build import NOW, answer, at, changed, group, job, node, running, state
from evenhand.audit import audit
from evenhand_models import Plan, Policy

SPEEDS = {"h100": 2.0, "a100": 1.0}
STATE = state(
    [node("n1", 4), node("n2", 4, kind="a100")],
    [group("lab"), group("red", 1, "lab"), group("blue", 1, "lab", guaranteed_gpus=4)],
    [
        running("r1", "red", {"n1": 2}, speedup=SPEEDS, priority=1, expected_end_at=at(30)),
        running("r2", "red", {"n1": 2}, speedup=SPEEDS, started_at=at(-10), submitted_at=at(-10)),
        job("r3", "red", 1, speedup=SPEEDS, c=0, submitted_at=at(-5)),
        job("b1", "blue", 2, speedup=SPEEDS, c=7200),
        job("b2", "blue", 4, speedup=SPEEDS),
        job("odd", "nobody", 1),
    ],
    usage={"red": 336},
    charges={"h100": 2.0, "a100": 1.0},
)
UNALLOCATED = 1 / 16 + 1 / 2 + 1 / 224 + 11 / 24
OBJECTIVE = -3904 - 3 / 7 / 16 + 17 / 7 + 3 + 11 / 12 + UNALLOCATED / 512
FACE = [
    ("guarantees", 2400.0, -1.0),
    ("inner_levels", 4.0, -1.0),
    ("leaves", 1500.0, -1.0),
    ("envy", 3 / 7, -1 / 16),
    ("order", 17 / 7, 1.0),
    ("work", 3 + 11 / 12, 1.0),
    ("least_change", 0.0, -1.0),
    ("unallocated_use", UNALLOCATED, 1 / 512),
]


def report(name, usage, demand, owed, target, floor, held, free, reached, standing):
    return {
        "group": name,
        "share": 1.0,
        "usage_gpu_hours": usage,
        "demand_gpus": demand,
        "entitled_gpus": owed,
        "target": {"h100": target, "a100": target},
        "floor": floor,
        "allocated": held,
        "unallocated_use": free,
        "throughput": reached,
        "throughput_target": floor,
        "sharing_incentive": reached / floor,
        "standing": standing,
    }


WIRE = {
    "now": NOW,
    "policy": {},
    "assignments": [
        answer("b1", "start", {"n2": 2}, gpu_type="a100", protected_until_at=at(120), why="entitled"),
        answer("b2", "wait", why="protected_work"),
        answer("odd", "infeasible", why="unknown_group"),
        answer("r1", "keep", {"n1": 2}),
        answer("r2", "keep", {"n1": 2}, protected_until_at=at(50), why="protected"),
        answer("r3", "start", {"n2": 1}, gpu_type="a100", unallocated=True, why="unallocated_fill"),
    ],
    "groups": [
        report("lab", 336.0, 12.0, 12.0, 4.0, 6.0, {"h100": 4, "a100": 2}, {"a100": 1}, 5.0, 1),
        report("red", 336.0, 8.0, 5.0, 5 / 3, 2.5, {"h100": 4}, {"a100": 1}, 4.0, 2),
        report("blue", 0.0, 12.0, 7.0, 7 / 3, 3.5, {"a100": 2}, {}, 1.0, 1),
    ],
    "certificate": {
        "status": "feasible",
        "cut_by_time": False,
        "goals": [{"name": name, "value": v, "weight": w, "unit": "GPUs"} for name, v, w in FACE],
        "objective": OBJECTIVE,
        "bound": OBJECTIVE + 3,
        "gap": 0.5,
        "target_throughput": 6.0,
        "capacity_ok": True,
        "protection_ok": True,
        "gangs_ok": True,
        "max_envy": 4.6 / 3.5,
        "envy": [{"group": "blue", "envied": "red", "envy": 4.6 / 3.5, "forced_by_pins": 1.0, "ours": 1.1 / 3.5}],
        "floor_slack": 0.0,
        "target_envy_slack": 0.0,
        "throughput": 5.0,
        "verified": False,
    },
    "solver": {"engine_version": "0", "state_hash": "0"},
}
PLAN = Plan.model_validate(WIRE)


def rules(plan, policy=None):
    return {finding.rule for finding in audit(STATE, plan, policy).findings}


def test_the_plan_is_accepted():
    found = audit(STATE, PLAN)
    assert found.findings == ()
    assert found.ok


PLACE = {"n2": 2}
FAULTS = [
    # what is said of groups
    ("groups|red|share", 2.0, "S7"),
    ("groups|lab|usage_gpu_hours", 300.0, "D3"),
    ("groups|blue|demand_gpus", 13.0, "D1"),
    ("groups|red|entitled_gpus", 5.00001, "D4"),
    ("groups|blue|standing", 2, "D5"),
    ("groups|blue|floor", 3.4, "T2"),
    ("groups|blue|throughput_target", 3.6, "T5"),
    ("groups|red|throughput", 4.1, "A4"),
    ("groups|red|sharing_incentive", None, "A4"),
    ("groups|red|allocated", {"h100": 3}, "A4"),
    ("groups|lab|unallocated_use", {}, "A4"),
    # targets
    ("groups|red|target", {"h100": 1.5, "a100": 5 / 3}, "T4"),
    # goals
    ("certificate|goals|guarantees|value", 2399.9, "O1"),
    ("certificate|goals|inner_levels|value", 0.0, "O2"),
    ("certificate|goals|leaves|value", 100.0, "O3"),
    ("certificate|goals|envy|value", 0.0, "E1"),
    ("certificate|goals|order|value", 2.43, "O4"),
    ("certificate|goals|work|value", 4.4, "O5"),
    ("certificate|goals|least_change|value", 0.1, "O6"),
    ("certificate|goals|unallocated_use|value", 1.0, "O7"),
    ("certificate|goals|leaves|weight", -2.0, "A4"),
    ("certificate|goals|leaves|name", "leafs", "A4"),
    ("certificate|goals|leaves|bound", 1501.0, "A4"),
    # the certificate
    ("certificate|objective", OBJECTIVE + 1, "A4"),
    ("certificate|bound", OBJECTIVE - 0.1, "A4"),
    ("certificate|bound", None, "A4"),
    ("certificate|gap", 0.4, "A4"),
    ("certificate|status", "optimal", "A4"),
    ("certificate|target_throughput", 5.0, "T5"),
    ("certificate|throughput", 5.5, "A4"),
    ("certificate|floor_slack", 1.0, "T2"),
    ("certificate|target_envy_slack", 1.0, "T3"),
    ("certificate|max_envy", 0.1, "A4"),
    ("certificate|envy", (), "A4"),
    ("certificate|capacity_ok", False, "A4"),
    # answers
    ("now", at(1), "A1"),
    ("assignments|b1|reasons", (), "A1"),
    ("assignments|b1|reasons", [{"code": "entitled", "message": "?", "refs": ("ghost",)}], "A1"),
    ("assignments|b2|reasons", (), "A1"),
    ("assignments|b2|action", "preempt", "A1"),
    ("assignments|b2|action", "infeasible", "S5"),
    ("assignments|odd|action", "wait", "S4"),
    ("assignments|b2|gpus", 4, "A1"),
    ("assignments|b2|requeue", True, "A1"),
    ("assignments|b1|gpus", 1, "G1"),
    ("assignments|b1|gpu_type", "h100", "G2"),
    ("assignments|b1|unallocated", True, "S8"),
    ("assignments|r3|unallocated", False, "S8"),
    ("assignments|b1|protected_until_at", at(60), "P1"),
    ("assignments|r1|protected_until_at", at(60), "P1"),
    ("assignments|r2|protected_until_at", None, "P1"),
    ("assignments|b1|after", ("r1",), "A2"),
    ("assignments|b1|job", "b0", "A1"),
    ("calendar", [{"job": "nobody"}], "A1"),
]


@pytest.mark.parametrize(("path", "value", "rule"), FAULTS, ids=[f"{path} {rule}" for path, _, rule in FAULTS])
def test_one_wrong_number_is_found(path, value, rule):
    assert rule in rules(changed(PLAN, path, value))


@pytest.mark.parametrize("missing", ["assignments", "groups"])
def test_nothing_may_be_missing_or_said_twice(missing):
    wire = PLAN.model_dump()
    shorter = Plan.model_validate({**wire, missing: wire[missing][:-1]})
    twice = Plan.model_validate({**wire, missing: [*wire[missing], wire[missing][0]]})
    assert rules(shorter) == {"A1"}
    assert rules(twice) == {"A1"}


def test_assignments_are_in_order():
    backwards = PLAN.model_copy(update={"assignments": PLAN.assignments[::-1]})
    assert rules(backwards) == {"A1"}


def test_envy_pairs_are_recomputed():
    pair = {"group": "blue", "envied": "red", "envy": 4.6 / 3.5, "forced_by_pins": 1.0, "ours": 1.1 / 3.5}
    for wrong in ({"envy": 1.0}, {"ours": 0.0}, {"group": "red", "envied": "blue"}, {"envied": "lab"}):
        assert "A4" in rules(changed(PLAN, "certificate|envy", [{**pair, **wrong}]))


def test_an_unfair_target_is_found_however_consistent():
    """Blue's target moved to red, with every number that follows from it."""
    moved = changed(PLAN, "groups|red|target", {"h100": 2.0, "a100": 5 / 3})
    moved = changed(moved, "groups|blue|target", {"h100": 2.0, "a100": 7 / 3})
    assert {"T2", "T3"} <= rules(moved)


def test_the_policy_asked_for_must_be_the_one_in_force():
    assert rules(PLAN, Policy()) == set()
    assert "A1" in rules(PLAN, Policy(horizon_s=3600))
    assert "D4" in rules(changed(PLAN, "policy|horizon_s", 3600))


def test_the_plan_is_not_changed():
    before = PLAN.to_json_bytes()
    audit(STATE, PLAN)
    assert PLAN.to_json_bytes() == before
