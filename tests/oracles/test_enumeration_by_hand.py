"""The enumeration against states that were solved with a pencil."""

from __future__ import annotations

from typing import Any

import pytest
from strategies import state_of

from evenhand_models import Policy
from oracles.dues import Dues, Target, best_sum, drawn
from oracles.enumeration import Best, Enumeration, TooManyOutcomes
from oracles.reading import Reader

Wire = dict[str, Any]
NOON = "2026-11-01T12:00:00Z"
HOUR_AGO = "2026-11-01T11:00:00Z"
TWO_HOURS_AGO = "2026-11-01T10:00:00Z"


def job(name: str, group: str, gpus: int, **more: Any) -> Wire:
    """A job with a contract of an hour that just came."""
    base = {
        "id": name,
        "group": group,
        "gpus": gpus,
        "speedup": {"h100": 1.0},
        "submitted_at": NOON,
        "contract": {"min_runtime_s": 3600, "resumable": True},
    }
    return base | more


def running(name: str, group: str, gpus: int, where: dict[str, int], since: str, **more: Any) -> Wire:
    """A job that runs, submitted when it started."""
    placement = [{"node": node, "gpus": held} for node, held in where.items()]
    times = {"state": "running", "started_at": since, "submitted_at": since, "placement": placement}
    return job(name, group, gpus, **times | more)


def cluster(nodes: dict[str, int], jobs: list[Wire], groups: list[Wire] | None = None, **more: Any) -> Wire:
    """H100 nodes, groups a and b with equal shares unless given."""
    return {
        "now": NOON,
        "gpu_types": [{"name": "h100"}],
        "nodes": [{"name": name, "gpu_type": "h100", "gpus": gpus} for name, gpus in nodes.items()],
        "groups": groups or [{"id": "a", "share": 1.0}, {"id": "b", "share": 1.0}],
        "jobs": jobs,
    } | more


def best(wire: Wire, target: Target, **policy: Any) -> Best:
    """The best outcome of a state."""
    return Enumeration(state_of(wire), Policy.model_validate(policy), target).best()


def actions(found: Best) -> dict[str, str]:
    """What happens to each job."""
    return {name: move.what for name, move in sorted(found.moves.items())}


def test_one_job_starts_on_an_empty_node() -> None:
    found = best(cluster({"n": 4}, [job("j", "a", 2)]), {"a": {"h100": 2.0}})
    assert actions(found) == {"j": "start"}
    assert found.outcomes == 2
    # order: 2 (1/16 + 1/2); work: 2 (1 - 300/3600)
    assert found.goals["order"] == pytest.approx(1.125)
    assert found.goals["work"] == pytest.approx(2 * 11 / 12)
    assert found.objective == pytest.approx(1.125 + 2 * 11 / 12)


def test_two_groups_share_one_node() -> None:
    jobs = [job("j1", "a", 2), job("j2", "a", 2), job("j3", "b", 2)]
    found = best(cluster({"n": 4}, jobs), {"a": {"h100": 2.0}, "b": {"h100": 2.0}})
    assert actions(found)["j3"] == "start"
    assert sorted(actions(found).values()) == ["start", "start", "wait"]
    assert found.goals["leaves"] == 0


def test_the_longer_wait_breaks_the_tie() -> None:
    jobs = [job("j1", "a", 2), job("j2", "a", 2, submitted_at=HOUR_AGO), job("j3", "b", 2)]
    found = best(cluster({"n": 4}, jobs), {"a": {"h100": 2.0}, "b": {"h100": 2.0}})
    assert actions(found) == {"j1": "wait", "j2": "start", "j3": "start"}
    assert found.goals["order"] == pytest.approx(4 * (1 / 16 + 1 / 2) + 2 * 2 / 224)


def test_a_protected_job_stays() -> None:
    jobs = [running("j1", "b", 4, {"n": 4}, "2026-11-01T11:00:01Z"), job("j2", "a", 4)]
    found = best(cluster({"n": 4}, jobs), {"a": {"h100": 4.0}})
    assert actions(found) == {"j1": "keep", "j2": "wait"}
    # short of its aim; its gang, larger than its entitlement of 2, is not owed: with 4 hours more b would be first
    assert found.goals["leaves"] == -1200


def test_protection_ends_with_its_last_second() -> None:
    jobs = [running("j1", "b", 4, {"n": 4}, HOUR_AGO), job("j2", "a", 4)]
    found = best(cluster({"n": 4}, jobs), {"a": {"h100": 4.0}})
    assert actions(found) == {"j1": "preempt", "j2": "start"}
    # lost: 4 GPUs for one contract, counted 8 times; change: 4 (1/16 + 0), its level is 1
    assert found.goals["work"] == pytest.approx(4 * 11 / 12 - 8 * 4)
    assert found.goals["least_change"] == pytest.approx(-0.25)


def test_what_is_decided_by_hand_about_entitlement() -> None:
    # 4 GPUs, both want 4; b used 7 * 24 * 2 charged hours more than a: 2 GPUs over a horizon of a week
    jobs = [job("j1", "a", 4), job("j2", "b", 4)]
    wire = cluster({"n": 4}, jobs, usage=[{"group": "b", "charged_gpu_hours": 336.0}])
    dues = Dues(Reader(state_of(wire), Policy()))
    assert dues.of["a"].entitled == pytest.approx(3.0)
    assert dues.of["b"].entitled == pytest.approx(1.0)
    assert dues.owed_gangs() == {"j1"}


def test_the_owed_gang_runs_though_nobody_aims_that_high() -> None:
    jobs = [job("j1", "a", 4), job("j2", "b", 4)]
    wire = cluster({"n": 4}, jobs, usage=[{"group": "a", "charged_gpu_hours": 3.0}])
    assert Dues(Reader(state_of(wire), Policy())).owed_gangs() == set()  # 4 hours more and a would be first
    wire = cluster({"n": 4}, jobs, usage=[{"group": "a", "charged_gpu_hours": 5.0}])
    found = best(wire, {"a": {"h100": 2.0}, "b": {"h100": 2.0}})
    assert actions(found) == {"j1": "wait", "j2": "start"}
    assert found.goals["leaves"] == 0


XY = [{"id": "x", "share": 1.0}, {"id": "y", "share": 1.0}]


def test_an_inner_level_outranks_a_leaf() -> None:
    groups = [
        {"id": "x", "share": 1.0},
        {"id": "x/p", "parent": "x", "share": 1.0},
        {"id": "x/q", "parent": "x", "share": 1.0},
        {"id": "y", "share": 1.0},
    ]
    jobs = [job("j1", "x/p", 1), job("j2", "x/q", 1), job("j3", "y", 2)]
    used = [{"group": "x/q", "charged_gpu_hours": 100.0}, {"group": "y", "charged_gpu_hours": 200.0}]
    # the target would serve y alone: missing y costs 1 * 2, missing x 2 * (300 / 200)^4 * 1, and j1, owed at x, 300
    found = best(cluster({"n": 2}, jobs, groups, usage=used), {"y": {"h100": 2.0}})
    assert found.goals["inner_levels"] == 0
    assert found.goals["leaves"] == -2
    assert actions(found) == {"j1": "start", "j2": "start", "j3": "wait"}


def test_who_has_used_more_than_others_does_not_take_from_them_at_any_price() -> None:
    # y has used nothing: each GPU it misses weighs 300; x has used all there was: 1 each
    jobs = [running("j1", "y", 2, {"n": 2}, HOUR_AGO), job("j2", "x", 2)]
    used = [{"group": "x", "charged_gpu_hours": 100.0}]
    found = best(cluster({"n": 2}, jobs, XY, usage=used), {"x": {"h100": 2.0}})
    assert actions(found) == {"j1": "keep", "j2": "wait"}
    assert found.goals["leaves"] == -2
    found = best(cluster({"n": 2}, jobs, XY), {"x": {"h100": 2.0}})
    assert actions(found) == {"j1": "preempt", "j2": "start"}


def test_a_guarantee_comes_first() -> None:
    groups = [{"id": "a", "share": 1.0, "guaranteed_gpus": 2}, {"id": "b", "share": 9.0}]
    jobs = [job("j1", "a", 2), job("j2", "b", 2)]
    found = best(cluster({"n": 2}, jobs, groups), {"b": {"h100": 2.0}})
    assert actions(found) == {"j1": "start", "j2": "wait"}
    found = best(cluster({"n": 2}, jobs[1:], groups), {"b": {"h100": 2.0}})
    assert found.goals["guarantees"] == 0


def test_a_gang_needs_one_node_if_one_would_do() -> None:
    wire = cluster({"m": 4, "n": 4}, [running("j0", "b", 1, {"m": 1}, NOON), job("j1", "a", 4)])
    wire["nodes"][1]["foreign_gpus"] = 1
    found = best(wire, {"a": {"h100": 4.0}})
    assert actions(found) == {"j0": "keep", "j1": "wait"}


def test_workers_may_share_nodes() -> None:
    wire = cluster({"m": 3, "n": 3}, [job("j1", "a", 4, worker_gpus=2)])
    found = best(wire, {"a": {"h100": 4.0}})
    assert found.spots == {"j1": (("m", 2), ("n", 2))}
    wire = cluster({"m": 3, "n": 3}, [job("j1", "a", 6, worker_gpus=3)])
    assert best(wire, {}).spots == {"j1": (("m", 3), ("n", 3))}


def test_so_many_on_every_node() -> None:
    wire = cluster({"m": 4, "n": 4}, [job("j1", "a", 4, gpus_per_node=2)])
    assert best(wire, {}).spots == {"j1": (("m", 2), ("n", 2))}


def test_a_shared_label_value() -> None:
    wire = cluster({"l": 2, "m": 2, "n": 2}, [job("j1", "a", 4, same="rack"), job("j2", "b", 2)])
    for node, rack in zip(wire["nodes"], ("r0", "r1", "r1"), strict=True):
        node["labels"] = {"rack": rack}
    found = best(wire, {})
    assert found.spots == {"j1": (("m", 2), ("n", 2)), "j2": (("l", 2),)}


def test_an_elastic_job_shrinks_for_another() -> None:
    jobs = [running("j1", "a", 4, {"n": 4}, TWO_HOURS_AGO, min_gpus=1), job("j2", "b", 2)]
    found = best(cluster({"n": 4}, jobs), {"a": {"h100": 2.0}, "b": {"h100": 2.0}})
    assert actions(found) == {"j1": "resize", "j2": "start"}
    assert found.moves["j1"].gpus == 2
    assert found.goals["least_change"] == pytest.approx(-2 / 256)


def test_a_lost_node_is_replaced_and_the_rest_stays() -> None:
    jobs = [running("j1", "a", 4, {"m": 2, "n": 2}, NOON, gpus_per_node=2)]
    wire = cluster({"l": 2, "m": 2, "n": 2}, jobs)
    wire["nodes"][2]["status"] = "down"
    found = best(wire, {"a": {"h100": 4.0}})
    assert actions(found) == {"j1": "repair"}
    assert found.spots["j1"] == (("l", 2), ("m", 2))
    assert found.goals["least_change"] == pytest.approx(-2 / 16)


def test_gpus_that_end_soon_are_waited_for() -> None:
    soon = {"expected_end_at": "2026-11-01T12:02:00Z"}
    jobs = [running("j1", "b", 4, {"n": 4}, HOUR_AGO, **soon), job("j2", "a", 4)]
    wire = cluster({"n": 4}, jobs)
    assert actions(best(wire, {"a": {"h100": 4.0}})) == {"j1": "keep", "j2": "reserve"}
    assert actions(best(wire, {"a": {"h100": 4.0}}, restart_cost_s=0)) == {"j1": "preempt", "j2": "start"}


def test_a_higher_priority_takes_over_within_its_group() -> None:
    # both leaves have what they aim at; the handover pays 1/2, and 4 (1/16 + 0) + lost work is less than
    # what the level brings once the running one has just saved its work
    saved = {"checkpointed_at": NOON}
    jobs = [running("j1", "a", 4, {"n": 4}, HOUR_AGO, **saved), job("j2", "a", 4, priority=1)]
    found = best(cluster({"n": 4}, jobs), {"a": {"h100": 4.0}})
    assert actions(found) == {"j1": "preempt", "j2": "start"}
    stop = 4 * (1 / 16 + 1 / 2)
    start = 4 * (1 / 16 + 1 / 2 + 11 / 12) + 4 / 2
    assert found.objective == pytest.approx(start - stop)


def test_a_limit_holds_for_all_below() -> None:
    groups = [{"id": "a", "share": 1.0, "max_gpus": 2}, {"id": "a/x", "parent": "a", "share": 1.0}]
    jobs = [job("j1", "a", 1), job("j2", "a/x", 1), job("j3", "a/x", 1)]
    found = best(cluster({"n": 4}, jobs, groups), {})
    assert sorted(actions(found).values()) == ["start", "start", "wait"]


def test_unallocated_work_yields() -> None:
    free = {"contract": {"min_runtime_s": 0, "resumable": True}}
    jobs = [running("j1", "a", 4, {"n": 4}, NOON, **free), job("j2", "a", 1)]
    found = best(cluster({"n": 4}, jobs), {"a": {"h100": 1.0}})
    assert actions(found) == {"j1": "preempt", "j2": "start"}
    # 1/(64 * 4) of 4 GPUs: change 1/16 at level 1, no work lost (no contract)
    assert found.goals["unallocated_use"] == pytest.approx(-4 / 16 / 256)


def test_nobody_stops_for_nothing() -> None:
    jobs = [running("j1", "a", 2, {"m": 2}, HOUR_AGO), job("j2", "b", 4, speedup={"t4": 1.0})]
    wire = cluster({"m": 4}, jobs)
    assert actions(best(wire, {})) == {"j1": "keep"}


def test_envy_decides_who_gets_what_is_left() -> None:
    # nobody aims at anything; three waiting jobs of one GPU for a's and b's two GPUs: one each
    jobs = [job("j1", "a", 1), job("j2", "a", 1), job("j3", "b", 1), job("j4", "b", 1)]
    found = best(cluster({"n": 2}, jobs), {})
    assert found.goals["envy"] == 0
    enumeration = Enumeration(state_of(cluster({"n": 2}, jobs)), Policy(), {})
    base, slopes, big = enumeration.envy_line("a")
    assert (base, slopes, big) == (0.0, {"h100": 1.0}, 1.0)
    assert found.objective == pytest.approx(2 * (1 / 16 + 1 / 2 + 11 / 12))


def test_envy_is_counted() -> None:
    # a's gang of 2 leaves b's jobs of 1 out: b sees 2, has 0, its largest job is 1, so 1/16
    jobs = [running("j1", "a", 2, {"n": 2}, NOON), job("j2", "b", 1), job("j3", "b", 1)]
    found = best(cluster({"n": 2}, jobs), {})
    assert found.goals["envy"] == pytest.approx(-1 / 16)


def test_drawn_throughput_moves_jobs_to_make_room() -> None:
    # j1 runs 1.0 on either; j2 0.5 on t4, 1.0 on h100: one of each type, so j2 takes the H100
    wire = cluster({"n": 1}, [job("j1", "a", 1), job("j2", "a", 1)])
    wire["gpu_types"] += [{"name": "t4"}]
    wire["nodes"] += [{"name": "o", "gpu_type": "t4", "gpus": 1}]
    wire["jobs"][0]["speedup"] = {"h100": 1.0, "t4": 1.0}
    wire["jobs"][1]["speedup"] = {"h100": 1.0, "t4": 0.5}
    reader = Reader(state_of(wire), Policy())
    assert drawn(reader, reader.jobs, {"h100": 1.0, "t4": 1.0}) == pytest.approx(2.0)
    assert drawn(reader, reader.jobs, {"h100": 1.5, "t4": 0.0}) == pytest.approx(1.5)
    assert drawn(reader, reader.jobs, {"h100": 0.5, "t4": 1.5}) == pytest.approx(1.75)


def test_best_sum_takes_whole_gangs() -> None:
    assert best_sum([4, 3, 2], 6.5) == 6
    assert best_sum([4, 3, 2], 1.9) == 0
    assert best_sum([1.5, 1.5], 3.0 - 1e-7) == 3.0


def test_too_many_outcomes_are_said() -> None:
    wire = cluster({"n": 8}, [job(f"j{i}", "a", 1) for i in range(8)])
    with pytest.raises(TooManyOutcomes):
        Enumeration(state_of(wire), Policy(), {}, cap=100).best()
