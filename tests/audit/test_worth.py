"""Rules O on decisions given directly, every number by hand."""

import pytest

from audit.build import at, group, job, node, running, state
from evenhand.audit.decisions import Choice, Decisions, ending_gpus
from evenhand.audit.dues import dues
from evenhand.audit.reading import read
from evenhand.audit.rules import check_reservations
from evenhand.audit.target import aim_at, entitled_leaves
from evenhand.audit.worth import GOALS, worth
from evenhand_models import Action, Policy

ONE = [group("A")]


def goals(given, choices=None, reserved=None, **policy):
    """The value of every goal, and the total; the target is the proportional one."""
    reading = read(given, Policy(**policy))
    owed = dues(reading)
    own = {leaf.group: leaf.used(leaf.slice) for leaf in entitled_leaves(reading, owed)}
    target = aim_at(reading, owed, own)
    found = worth(reading, owed, target, Decisions(choices or {}, reserved or {}))
    return {**found.goals, "total": found.total}


def start(gpus, kind="h100"):
    return Choice(Action.START, kind, gpus)


STOP = Choice(Action.PREEMPT)


def test_nothing_is_worth_nothing():
    assert goals(state([node("n", 4)], ONE, [])) == {**dict.fromkeys(GOALS, 0.0), "total": 0.0}


def test_a_start_pays_its_restart():
    given = state([node("n", 4)], ONE, [job("j", "A", 2)])
    found = goals(given, {"j": start(2)})
    assert found["order"] == pytest.approx(2 * (1 / 16 + 1 / 2 + 2 / 224))
    assert found["work"] == pytest.approx(2 * 11 / 12)
    assert found["leaves"] == 0
    assert goals(given, {"j": start(2)}, restart_cost_s=7200)["work"] == 0
    assert goals(given)["leaves"] == 600
    assert goals(given)["total"] == -600


def test_a_stop_loses_work_since_the_last_checkpoint_or_start():
    """2 GPUs for a lookahead of an hour; stopped 50 minutes after its start, or 15 after its checkpoint; counted thrice.

    Who cannot resume has lost all since its start, up to the longest contract that there may be.
    """

    def work(action, **more):
        given = state([node("n", 4)], ONE, [running("j", "A", {"n": 2}, started_at=at(-50), **more)])
        return goals(given, {"j": action}, lost_work_weight=3.0, max_protection_s=2400)["work"]

    assert work(STOP, c=2400) == pytest.approx(-3 * 2 * 2 / 3)
    assert work(STOP, checkpointed_at=at(-15)) == pytest.approx(-3 * 2 / 4)
    assert work(STOP, c=1800) == pytest.approx(-3 * 2 * 1 / 2)
    assert work(STOP, c=1800, checkpointed_at=at(-15), resumable=False) == pytest.approx(-3 * 2 * 2 / 3 - 2)
    moved = Choice(Action.MIGRATE, "h100", 2)
    assert work(moved, c=1800) == pytest.approx(2 * 11 / 12 - 3 * 2 * 1 / 2)
    assert work(moved, c=1800, expected_end_at=at(30)) == pytest.approx(2 * 1 / 2 - 3 * 2 * 1 / 2)


def test_what_is_kept_counts_until_its_end():
    def work(**more):
        return goals(state([node("n", 4)], ONE, [running("j", "A", {"n": 2}, **more)]))["work"]

    assert work() == 2
    assert work(expected_end_at=at(15)) == pytest.approx(1 / 2)
    assert work(expected_end_at=at(-15)) == 0
    assert work(expected_end_at=at(150)) == 2


def test_what_a_change_costs():
    jobs = [
        running("low", "A", {"n": 2}, priority=0),
        running("mid", "A", {"n": 2}, priority=5),
        running("top", "A", {"n": 2}, priority=9, min_gpus=1, gpus=4),
    ]
    given = state([node("n", 8)], ONE, jobs)

    def cost(choices):
        return goals(given, choices)["least_change"]

    assert cost({}) == 0
    assert cost({"low": STOP}) == pytest.approx(2 * (1 / 16 + 1 / 2))
    assert cost({"mid": STOP}) == pytest.approx(2 * (1 / 16 + 1 / 4))
    assert cost({"top": STOP}) == pytest.approx(2 / 16)
    assert cost({"low": Choice(Action.MIGRATE, "h100", 2)}) == pytest.approx(2 / 16)
    assert cost({"top": Choice(Action.RESIZE, "h100", 4)}) == pytest.approx(2 / 256)
    assert cost({"top": Choice(Action.RESIZE, "h100", 1)}) == pytest.approx(1 / 256)


def test_a_resized_job_counts_its_new_size():
    given = state([node("n", 8)], ONE, [running("j", "A", {"n": 2}, min_gpus=1, gpus=4)])
    found = goals(given, {"j": Choice(Action.RESIZE, "h100", 4)})
    assert found["order"] == pytest.approx(4 * (1 / 16 + 1 / 2 + 3 / 224))
    assert found["work"] == 4
    assert found["leaves"] == 0
    assert goals(given)["leaves"] == 600


def test_hit_jobs_pay_for_what_is_replaced_and_for_all_of_it_if_they_stop():
    nodes = [node("up", 8), node("down", 8, status="down")]
    given = state(nodes, ONE, [running("j", "A", {"up": 4, "down": 4}, resumable=False)])
    repair = goals(given, {"j": Choice(Action.MIGRATE, "h100", 8, replaced=4)})
    assert repair["least_change"] == pytest.approx(4 / 16)
    assert repair["work"] == pytest.approx(8 * 11 / 12)
    stop = goals(given, {"j": STOP})
    assert stop["least_change"] == pytest.approx(8 / 16)
    assert stop["work"] == 0


def test_a_handover_counts_inside_a_leaf_across_each_cut():
    """Three levels: 4 GPUs start on top, 2 and 1 stop below; the upper cut passes 3, the lower 1."""
    jobs = [
        running("low", "A", {"n": 1}, priority=0),
        running("mid", "A", {"n": 2}, priority=1),
        job("top", "A", 4, priority=2),
        running("other", "B", {"n": 1}, priority=0),
    ]
    given = state([node("n", 8)], [group("A"), group("B")], jobs)
    runs = 4 * (1 / 16 + 1 / 2 + 2 / 224)

    def handed(choices):
        return goals(given, {"other": STOP, **choices})["order"] - runs

    assert handed({"top": start(4), "low": STOP, "mid": STOP}) == pytest.approx(3 / 4 + 1 / 4)
    mid = 2 * (1 / 16 + 1 / 4 + 3 / 224)
    assert handed({"top": start(4), "low": STOP}) == pytest.approx(1 / 4 + 1 / 4 + mid)


def test_a_hit_job_hands_nothing_over():
    jobs = [running("low", "A", {"down": 1}), job("top", "A", 1, priority=2)]
    given = state([node("n", 8), node("down", 1, status="down")], ONE, jobs)
    order = goals(given, {"top": start(1), "low": STOP})["order"]
    assert order == pytest.approx(1 / 16 + 1 / 2 + 2 / 224)


def test_unallocated_work_is_priced_by_itself():
    """N = 8; one of two levels stopped after 10 minutes with no protection, so nothing is lost."""
    jobs = [
        running("low", "A", {"n": 2}, c=0, started_at=at(-10), submitted_at=at(-10)),
        running("top", "A", {"n": 1}, c=0, priority=1),
    ]
    found = goals(state([node("n", 8)], ONE, jobs), {"low": STOP})
    top = 1 / 16 + 1 / 2 + 3 / 224 + 1
    assert found["unallocated_use"] == pytest.approx(top - 2 * (1 / 16 + 1 / 2))
    assert found["total"] == pytest.approx(found["unallocated_use"] / 512)
    assert found["order"] == 0


def test_guarantees_and_inner_levels_weigh_by_height():
    """Three levels: heights 2, 1, 0. b1 is guaranteed 4 and holds 1; b 4 as well, a 4 of 8."""
    groups = [group("a"), group("b", 1, "a"), group("b1", 1, "b", guaranteed_gpus=4), group("b2", 1, "b")]
    jobs = [job(f"x{i}", "b1", 1) for i in range(8)] + [job(f"y{i}", "b2", 1) for i in range(8)]
    given = state([node("n", 8)], groups, jobs)
    found = goals(given, {"x0": start(1), "y0": start(1), "y1": start(1), "y2": start(1)})
    assert found["guarantees"] == 3 * 2400
    assert found["inner_levels"] == 4 * 1200 + 4 * 600
    assert found["leaves"] == 3 * 300 + 1 * 300


def test_shortfalls_round_what_is_owed_down_and_what_is_held_up_to_sixteenths():
    """Charged 1.7: of 3.4 entitled two gangs are owed 2 x 27/16; a gang of 1 holds 28/16."""
    jobs = [job("x", "b", 1), job("y", "b", 1)]
    given = state([node("n", 2)], [group("a"), group("b", 1, "a")], jobs, charges={"h100": 1.7})
    assert goals(given, {"x": start(1)})["inner_levels"] == pytest.approx(600 * 26 / 16)
    assert goals(given)["inner_levels"] == pytest.approx(600 * 54 / 16)


def test_reservations_count_in_shortfalls_only():
    """Case 4 in little: ten of A's GPUs end in two minutes; B's gang of 4 reserves four of them."""
    jobs = [running("a", "A", {"n": 10}, expected_end_at=at(2)), job("b", "B", 4)]
    given = state([node("n", 10)], [group("A"), group("B")], jobs)
    bare, kept = goals(given), goals(given, reserved={"b": "h100"})
    assert bare["leaves"] == 1200
    assert kept["leaves"] == 0
    assert bare["envy"] == pytest.approx((10 * 4 / 6 - 4) * 6 / 4)  # 6 owed to A, 4 to B
    assert kept["envy"] == 0
    for name in ("order", "work", "least_change"):
        assert kept[name] == bare[name]


def test_only_what_ends_soon_can_be_reserved():
    jobs = [
        running("a", "A", {"n": 4}, expected_end_at=at(2)),
        job("b", "B", 3),
        job("c", "B", 2),
        job("short", "B", 2, expected_end_at=at(4)),
        job("free", "B", 1, c=0),
    ]
    reading = read(state([node("n", 4), node("spare", 2)], [group("A"), group("B")], jobs), Policy())

    def faults(reserved, choices=None):
        decisions = Decisions(choices or {}, dict.fromkeys(reserved, "h100"))
        return [finding.rule for finding in check_reservations(reading, decisions)]

    assert faults(["b"]) == []
    assert faults(["b", "c"]) == ["O8"]
    assert faults(["b", "c"], {"short": start(2)}) == ["O8"]  # what only arrives does not count
    assert faults(["b"], {"a": STOP}) == ["O8"]
    assert faults(["free"]) == ["O8"]
    assert faults(["a"]) == ["O8"]


def test_ends_are_half_open():
    def ending(end, **policy):
        given = state([node("n", 4)], ONE, [running("a", "A", {"n": 4}, expected_end_at=end)])
        return ending_gpus(read(given, Policy(**policy)), Decisions({}))["h100"]

    assert ending(at(5)) == 4
    assert ending(at(0)) == 0
    assert ending(at(6)) == 0
    assert ending(at(2), restart_cost_s=0) == 0


def test_envy_counts_beyond_one_gang_of_the_envier():
    """A and B are owed 4 each; A runs all 8. For B, A's 8 are worth 8, less its biggest gang of 1: 7.

    A's gang of 8 is above its entitlement, so only B misses its aim, of 4.
    """
    jobs = [running("a", "A", {"n": 8}), *(job(f"b{i}", "B", 1) for i in range(8))]
    given = state([node("n", 8)], [group("A"), group("B")], jobs)
    assert goals(given)["envy"] == pytest.approx(7)
    assert goals(given)["total"] == pytest.approx(-1200 - 7 / 16 + 8 * (1 / 16 + 1 / 2 + 3 / 224) + 8)


def test_envy_is_measured_in_gpus_of_the_envied():
    """B, owed 2, envies A, owed 6 and running 8: scaled to B 8/3; less one gang, times 3: 8 - 3."""
    jobs = [running("a", "A", {"n": 8}), *(job(f"b{i}", "B", 1) for i in range(8))]
    given = state([node("n", 8)], [group("A", 3), group("B", 1)], jobs)
    assert goals(given)["envy"] == pytest.approx(5)
