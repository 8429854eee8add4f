"""Small plans that keep every rule, and the same plans with one thing done that a rule forbids."""

import pytest

from audit.build import answer, at, finish, group, job, node, running, state
from evenhand.audit import audit
from evenhand_models import Policy

A_AND_B = [group("A"), group("B")]
UNTIL = at(60)


def verdict(given, answers, policy=None):
    """Return the rules broken by a plan of these answers."""
    return {finding.rule for finding in audit(given, finish(given, answers, policy)).findings}


def start(name, where, **more):
    return answer(name, "start", where, **{"protected_until_at": UNTIL, "why": "entitled", **more})


def move(name, where, **more):
    return answer(name, "migrate", where, **{"protected_until_at": UNTIL, "why": "defragment", **more})


def stop(name, *, requeue=True, why="preempted_for"):
    return answer(name, "preempt", requeue=requeue, why=why)


# One victim makes room for one start.
SWAP = state(
    [node("n", 4), node("m", 4)],
    A_AND_B,
    [
        running("a", "A", {"n": 4}),
        running("pin", "A", {"m": 2}, started_at=at(-10)),
        job("b", "B", 4),
        job("c", "B", 2),
    ],
)
PIN = answer("pin", "keep", {"m": 2}, protected_until_at=at(50), why="protected")
SWAPPED = {
    "a": stop("a"),
    "b": start("b", {"n": 4}, after=["a"]),
    "c": start("c", {"m": 2}),
    "pin": PIN,
}


def swapped(**other):
    return verdict(SWAP, list({**SWAPPED, **other}.values()))


def test_a_swap_is_accepted():
    assert swapped() == set()


@pytest.mark.parametrize(
    ("other", "rules"),
    [
        ({"a": answer("a", "keep", {"n": 4})}, {"C1", "A2"}),  # both on one node
        ({"b": start("b", {"n": 4})}, {"A2"}),  # does not say for whom it waits
        ({"b": start("b", {"n": 4}, after=["a", "pin"])}, {"A2"}),  # pin does not leave
        ({"c": start("c", {"m": 2}, after=["a"])}, set()),  # waits for no reason, which harms nobody
        ({"b": answer("b", "wait")}, {"R1"}),  # stopped for nothing
        (
            {"b": answer("b", "wait"), "c": start("c", {"n": 2}, after=["a"])},
            set(),
        ),  # any GPU of it is enough
        ({"b": start("b", {"n": 3}, after=["a"])}, {"G1"}),
        ({"c": start("c", {"m": 1, "n": 1}), "b": answer("b", "wait")}, {"A2", "G3"}),
        ({"a": stop("a", requeue=False)}, {"A1"}),
        ({"a": stop("a", why="capacity")}, {"R1"}),
        ({"pin": stop("pin")}, {"P1", "R1"}),
        ({"pin": stop("pin"), "c": start("c", {"m": 2})}, {"P1", "R1"}),
        ({"pin": answer("pin", "keep", {"m": 1, "n": 1}, protected_until_at=at(50))}, {"P1"}),
        ({"pin": move("pin", {"n": 2}, after=["a"]), "b": answer("b", "wait")}, {"P1"}),
        (
            {"pin": answer("pin", "resize", {"m": 4}, protected_until_at=at(50)), "c": answer("c", "wait")},
            {"G1", "G4"},
        ),
        ({"c": start("c", {"elsewhere": 2})}, {"A1"}),
        ({"c": start("c", {"m": 2}, placement=[{"node": "m", "gpus": 1}] * 2)}, {"A1"}),
        ({"c": start("c", {"m": 2}, gpus=1)}, {"G1"}),
        ({"c": answer("c", "wait", {"m": 2})}, {"A1"}),
    ],
)
def test_a_swap_with_one_fault(other, rules):
    assert swapped(**other) == rules


def test_c1_arrivals_only_on_eligible_nodes():
    nodes = [
        node("ok", 2, labels={"rack": "1"}),
        node("bare", 2),
        node("cordoned", 2, status="cordoned", labels={"rack": "1"}),
        node("soon", 2, available_until_at=at(30), labels={"rack": "1"}),
        node("slow", 2, kind="t4", labels={"rack": "1"}),
    ]
    jobs = [job("j", "A", 2, requires={"rack": "1"})]
    given = state(nodes, [group("A")], jobs)
    assert verdict(given, [start("j", {"ok": 2})]) == set()
    for name, kind in (("bare", "h100"), ("cordoned", "h100"), ("soon", "h100"), ("slow", "t4")):
        assert "C1" in verdict(given, [start("j", {name: 2}, gpu_type=kind)])
    short = state(nodes, [group("A")], [job("j", "A", 2, c=0)])
    free = {"unallocated": True, "protected_until_at": None}
    assert verdict(short, [start("j", {"soon": 2}, **free)]) == set()  # no contract to keep


def test_c1_broken_and_foreign_gpus_are_no_room():
    given = state(
        [node("n", 4, unavailable_gpus=1, foreign_gpus=1)], [group("A")], [job("j", "A", 2), job("k", "A", 1)]
    )
    assert verdict(given, [start("j", {"n": 2}), answer("k", "wait")]) == set()
    assert verdict(given, [start("j", {"n": 2}), start("k", {"n": 1})]) == {"C1", "A2"}


def test_g2_one_type():
    nodes = [node("n", 1), node("m", 1, kind="a100"), node("o", 2, kind="a100")]
    given = state(nodes, [group("A")], [job("j", "A", 2, speedup={"h100": 1.0, "a100": 1.0})])
    assert verdict(given, [start("j", {"o": 2}, gpu_type="a100")]) == set()
    assert "G2" in verdict(given, [start("j", {"n": 1, "m": 1})])
    assert "G2" in verdict(given, [start("j", {"o": 2})])


@pytest.mark.parametrize(
    ("shape", "where", "rules"),
    [
        ({}, {"a": 4}, set()),
        ({}, {"a": 2, "b": 2}, {"G3"}),
        ({"worker_gpus": 2}, {"a": 2, "b": 2}, set()),
        ({"worker_gpus": 2}, {"a": 3, "b": 1}, {"G3"}),
        ({"gpus_per_node": 2}, {"a": 2, "c": 2}, set()),
        ({"gpus_per_node": 2}, {"a": 4}, {"G3"}),
        ({"gpus_per_node": 2, "same": "rack"}, {"a": 2, "b": 2}, set()),
        ({"gpus_per_node": 2, "same": "rack"}, {"a": 2, "c": 2}, {"G3"}),
        ({"min_gpus": 1}, {"a": 3}, set()),
        ({"min_gpus": 2, "worker_gpus": 2}, {"a": 3}, {"G1", "G3"}),
        ({"min_gpus": 3}, {"a": 2}, {"G1"}),
    ],
)
def test_g3_shapes(shape, where, rules):
    nodes = [
        node("a", 4, labels={"rack": "1"}),
        node("b", 4, labels={"rack": "1"}),
        node("c", 4, labels={"rack": "2"}),
    ]
    given = state(nodes, [group("A")], [job("j", "A", 4, **shape)])
    assert verdict(given, [start("j", where)]) == rules


def resize(where, protected=None):
    return answer("e", "resize", where, why="grown", protected_until_at=protected)


@pytest.mark.parametrize(
    ("where", "rules"),
    [
        ({"n": 4}, set()),
        ({"n": 3}, set()),
        ({"n": 1}, set()),
        ({"n": 2}, {"G4"}),
        ({"n": 5}, {"C1", "G1", "A2"}),
        ({"n": 2, "m": 1}, {"G4"}),  # one node would do
        ({"m": 3}, {"G4"}),
    ],
)
def test_g4_resizes(where, rules):
    given = state([node("n", 4), node("m", 4)], [group("A")], [running("e", "A", {"n": 2}, min_gpus=1, gpus=4)])
    assert verdict(given, [resize(where)]) == rules


def test_g4_a_protected_job_may_grow_but_not_shrink_and_only_elastic_jobs_resize():
    young = running("e", "A", {"n": 2}, min_gpus=1, gpus=4, started_at=at(-10))
    given = state([node("n", 4)], [group("A")], [young])
    assert verdict(given, [resize({"n": 3}, at(50))]) == set()
    assert verdict(given, [resize({"n": 1}, at(50))]) == {"P1"}
    rigid = state([node("n", 4)], [group("A")], [running("e", "A", {"n": 2})])
    assert verdict(rigid, [resize({"n": 3})]) == {"G1", "G4"}
    corded = state([node("n", 4, status="cordoned")], [group("A")], [young])
    assert verdict(corded, [resize({"n": 3}, at(50))]) == {"C1"}
    hit = state(
        [node("n", 4), node("m", 4, status="down")],
        [group("A")],
        [running("e", "A", {"n": 2, "m": 1}, min_gpus=1, gpus=4, worker_gpus=1)],
    )
    assert verdict(hit, [resize({"n": 2})]) == {"G4"}
    assert verdict(hit, [move("e", {"n": 2})]) == set()


MOVES = [node("n", 4), node("m", 4)]


def test_r2_who_may_move():
    def moved(policy=None, **more):
        given = state(MOVES, [group("A")], [running("j", "A", {"n": 2}, **more)])
        return verdict(given, [move("j", {"m": 2})], policy)

    assert moved() == set()
    assert moved(resumable=False) == {"R2"}
    assert moved(started_at=at(-10)) == {"P1"}
    assert moved(Policy(allow_migration=False)) == {"R2"}
    given = state(MOVES, [group("A")], [running("j", "A", {"n": 2})])
    assert verdict(given, [move("j", {"n": 2})]) == {"R2"}
    assert verdict(given, [answer("j", "keep", {"m": 2})]) == {"R2"}


def test_r2_hit_jobs_may_always_move_and_repairs_keep_their_shape():
    """8 over two nodes, in two 4s; one is down. A repair stays on two nodes, a move takes the fewest: one."""
    nodes = [node("n", 8), node("m", 8, status="down"), node("o", 8), node("p", 8)]
    hit = running("j", "A", {"n": 4, "m": 4}, resumable=False)
    given = state(nodes, [group("A")], [hit])
    never = Policy(allow_migration=False)
    assert verdict(given, [move("j", {"n": 4, "o": 4})], never) == set()
    assert verdict(given, [move("j", {"o": 8})], never) == set()
    assert verdict(given, [move("j", {"o": 4, "p": 4})], never) == {"G3"}
    assert verdict(given, [stop("j", why="node_loss")]) == set()
    assert verdict(given, [stop("j", requeue=False, why="node_loss")]) == {"A1"}
    assert verdict(given, [answer("j", "keep", {"n": 4, "m": 4})]) == {"C1"}


def test_r2_a_worker_by_worker_repair_may_join_nodes():
    nodes = [node("n", 8), node("m", 4, status="down"), node("o", 4)]
    hit = running("j", "A", {"n": 4, "m": 4}, worker_gpus=2)
    given = state(nodes, [group("A")], [hit])
    for where in ({"n": 8}, {"n": 6, "o": 2}, {"n": 4, "o": 4}):
        assert verdict(given, [move("j", where)]) == set()
    assert verdict(given, [move("j", {"n": 5, "o": 3})]) == {"G3"}


def test_s10_orphans_stay_and_hit_orphans_are_requeued():
    given = state([node("n", 4)], [group("A")], [running("o", "Z", {"n": 2})])
    assert verdict(given, [answer("o", "keep", {"n": 2})]) == set()
    assert "P1" in verdict(given, [stop("o")])
    lost = state([node("n", 4, status="down"), node("m", 4)], [group("A")], [running("o", "Z", {"n": 2})])
    assert verdict(lost, [stop("o", why="node_loss")]) == set()
    assert "R2" in verdict(lost, [move("o", {"m": 2})])


def test_s11_terminating_jobs_are_kept_and_waited_for():
    jobs = [running("t", "A", {"n": 4}, state="terminating"), job("j", "A", 4)]
    given = state([node("n", 4)], [group("A")], jobs)
    leaves = answer("t", "keep", {"n": 4}, why="terminating")
    assert verdict(given, [start("j", {"n": 4}, after=["t"]), leaves]) == set()
    assert verdict(given, [start("j", {"n": 4}), leaves]) == {"A2"}
    assert "A1" in verdict(given, [answer("j", "wait"), stop("t")])
    assert verdict(given, [answer("j", "wait"), answer("t", "keep", {"n": 4})]) == {"S11"}
    assert verdict(given, [answer("j", "wait"), answer("t", "keep", {"n": 2}, why="terminating")]) == {"S11"}


def test_a2_who_names_no_leaver_must_fit_at_once():
    """2 of 6 are free: one start of 2 needs not wait, two do; every leaver must be named, however small."""
    jobs = [
        running("a", "A", {"n": 3}),
        running("t", "A", {"n": 1}, state="terminating"),
        job("b", "B", 2),
        job("c", "B", 2),
    ]
    given = state([node("n", 6)], A_AND_B, jobs)
    base = [stop("a"), answer("t", "keep", {"n": 1}, why="terminating")]
    everyone = ["a", "t"]
    assert verdict(given, [*base, start("b", {"n": 2}), start("c", {"n": 2}, after=everyone)]) == set()
    assert verdict(given, [*base, start("b", {"n": 2}), start("c", {"n": 2})]) == {"A2"}
    assert verdict(given, [*base, start("b", {"n": 2}), start("c", {"n": 2}, after=["a"])]) == {"A2"}


def test_u1_unallocated_work_displaces_nobody_budgeted():
    jobs = [running("a", "A", {"n": 4}), job("u", "B", 4, c=0), job("w", "B", 4)]
    given = state([node("n", 4)], A_AND_B, jobs)
    guest = start("u", {"n": 4}, after=["a"], unallocated=True, protected_until_at=None)
    assert verdict(given, [stop("a"), guest, answer("w", "wait")]) == {"U1"}
    assert verdict(given, [stop("a"), answer("u", "wait"), start("w", {"n": 4}, after=["a"])]) == set()
    free = state([node("n", 4)], A_AND_B, [running("a", "A", {"n": 4}, c=0), job("u", "B", 4, c=0)])
    assert verdict(free, [stop("a"), guest]) == set()


LIMITED = [group("top", max_gpus=4), group("A", 1, "top"), group("B", 1, "top", max_gpus=3), group("C")]


def test_l1_limits_hold_on_every_level():
    given = state([node("n", 8)], LIMITED, [job("a", "A", 2), job("b", "B", 2), job("x", "B", 2), job("c", "C", 4)])
    base = [start("c", {"n": 4})]
    assert verdict(given, [*base, start("a", {"n": 2}), start("b", {"n": 2}), answer("x", "wait")]) == set()
    assert verdict(given, [start("a", {"n": 2}), start("b", {"n": 2}), start("x", {"n": 2}), answer("c", "wait")]) == {
        "L1"
    }
    assert verdict(given, [*base, answer("a", "wait"), start("b", {"n": 2}), start("x", {"n": 2})]) == {"L1"}


def test_l1_what_is_protected_is_within_its_limit_and_the_rest_must_go():
    jobs = [running("p", "B", {"n": 5}, started_at=at(-10)), running("q", "B", {"n": 2})]
    given = state([node("n", 8)], LIMITED, jobs)
    pin = answer("p", "keep", {"n": 5}, protected_until_at=at(50))
    assert verdict(given, [pin, stop("q", why="limit_lowered")]) == set()
    assert verdict(given, [pin, answer("q", "keep", {"n": 2})]) == {"L1"}


def test_r1_a_limit_is_a_reason_to_stop_somebody():
    """B's limit of 3 is full with q; on the empty node m only the limit is in x's way."""
    given = state([node("n", 4), node("m", 4)], LIMITED, [running("q", "B", {"n": 3}), job("x", "B", 3)])
    assert verdict(given, [stop("q"), start("x", {"m": 3})]) == set()
    given = state([node("n", 4), node("m", 4)], [group("B")], [running("q", "B", {"n": 3}), job("x", "B", 3)])
    assert verdict(given, [stop("q"), start("x", {"m": 3})]) == {"R1"}


def test_o8_reservations():
    def reserved(kind="h100", gpus=2):
        jobs = [running("a", "A", {"n": 2}, expected_end_at=at(2)), job("b", "B", gpus)]
        given = state([node("n", 2), node("down", 9, status="down")], A_AND_B, jobs)
        return verdict(
            given, [answer("a", "keep", {"n": 2}), answer("b", "wait", gpu_type=kind, why="reserved_ending")]
        )

    assert reserved() == set()
    assert reserved(gpus=3) == {"O8"}


@pytest.mark.parametrize(
    ("more", "rules"),
    [
        ({}, set()),
        ({"after": ["a"]}, set()),  # says nothing
        ({"gpus": 2}, {"A1"}),
        ({"gpu_type": "h100"}, {"A1"}),
        ({"requeue": True}, {"A1"}),
        ({"placement": [{"node": "n", "gpus": 2}]}, {"A1"}),
        ({"protected_until_at": UNTIL}, {"P1"}),
        ({"reasons": []}, {"A1"}),
        ({"reasons": [{"code": "capacity", "message": "Because.", "refs": ["nobody"]}]}, {"A1"}),
    ],
)
def test_a_job_that_waits_is_given_nothing_and_told_why(more, rules):
    given = state([node("n", 2)], A_AND_B, [running("a", "A", {"n": 2}), job("b", "B", 2)])
    assert verdict(given, [answer("a", "keep", {"n": 2}), answer("b", "wait", **more)]) == rules


def test_only_a_pending_job_of_a_group_may_wait():
    jobs = [running("a", "A", {"n": 2}), job("lost", "C", 1), job("fits-none", "B", 9)]
    given = state([node("n", 2)], A_AND_B, jobs)
    right = [answer("a", "keep", {"n": 2}), answer("fits-none", "infeasible"), answer("lost", "infeasible")]
    assert verdict(given, right) == set()
    wait = [answer(one["job"], "wait") for one in right]
    assert verdict(given, [wait[0], *right[1:]]) == {"A1"}
    assert verdict(given, [right[0], wait[1], right[2]]) == {"S5"}
    assert verdict(given, [*right[:2], wait[2]]) == {"S4"}


def test_policies_without_protection_protect_nobody():
    given = state([node("n", 4)], [group("A")], [running("a", "A", {"n": 2}, started_at=at(-1), c=600)])
    unprotected = Policy(max_protection_s=0)
    assert verdict(given, [answer("a", "keep", {"n": 2})], unprotected) == set()
    assert verdict(given, [answer("a", "keep", {"n": 2}, protected_until_at=at(9))], unprotected) == {"P1"}


# What the prices prove of the target


def sealed(**changed):
    plan = finish(SWAP, list(SWAPPED.values()))
    proof = plan.certificate.model_copy(update=changed)
    return {finding.rule for finding in audit(SWAP, plan.model_copy(update={"certificate": proof})).findings}


@pytest.mark.parametrize(
    ("gap", "prices", "rules"),
    [
        (None, {}, set()),
        (None, {"h100": 1.0}, {"T6"}),
        (0.0, {"h100": 1.0}, set()),
        (0.25, {"h100": 1.0}, {"T6"}),
        (0.0, {}, {"T6"}),
        (0.0, {"h100": 0.5}, {"T6"}),
        (0.0, {"h100": -1.0}, {"T6"}),
        (0.0, {"h100": 1.0, "b200": 0.1}, {"T6"}),
        (0.0, {"h100": 1e308}, {"T6"}),
        (1e308, {"h100": 1.7e308}, {"T6"}),
    ],
)
def test_a_pareto_gap_is_what_its_prices_prove(gap, prices, rules):
    assert sealed(pareto_gap=gap, pareto_prices=prices) == rules
