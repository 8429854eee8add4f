"""The engine in a replay: full rounds decide as `allocate`, the incremental path keeps every hard rule."""

from __future__ import annotations

import json
import sys
from datetime import timedelta

import numpy as np
import pytest
from instances import instance

from evenhand import Policy, allocate, audit, rounds
from evenhand.errors import SolverError
from evenhand.outcome import Move
from evenhand.replay import Scheduler, StayEnd, WorldRules, measure, replay
from evenhand.replay.schedulers.decider import Happened
from evenhand.replay.schedulers.engine import Evenhand
from evenhand.replay.schedulers.engine import full_round as engine_round
from evenhand.replay.schedulers.engine.full_round import Unhurried, state_of
from evenhand.replay.world import World
from evenhand_models import ClusterState
from evenhand_models.traces import TraceJob
from replay.build import HOUR, T0, cluster, ends, job, of, random_trace, run, starts, trace

ACTIONS = {Move.START: "start", Move.KEEP: "keep", Move.MIGRATE: "migrate", Move.REPAIR: "migrate",
           Move.RESIZE: "resize", Move.PREEMPT: "preempt", Move.WAIT: "wait"}  # fmt: skip
EVENHAND = Scheduler.EVENHAND


@pytest.mark.parametrize("name", ["small", "philly_3vc_day40"])
def test_a_full_round_decides_what_allocate_decides(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    state, policy = instance(name), Policy(time_limit_s=0.5)
    monkeypatch.setattr(rounds, "Deadline", Unhurried)  # so that no load of the machine cuts either short
    plan = {a.job: a for a in allocate(state, policy).assignments}
    snapshot, outcome, _ = engine_round(state, policy)
    for at, decision in outcome.decisions.items():
        answer = plan[snapshot.jobs[at].id]
        assert answer.action == ACTIONS[decision.move]
        assert {(p.node, p.gpus) for p in answer.placement} == {
            (snapshot.nodes[n].name, g) for n, g in decision.places if n >= 0
        }


def test_a_round_whose_solver_fails_gets_the_greedy_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise SolverError("planted")

    monkeypatch.setattr(sys.modules["evenhand.replay.schedulers.engine.full_round"], "solve", fails)
    result = run(trace(job("a", "A", 8, 0, 60), job("b", "A", 8, 5, 60)), cluster(nodes=1), EVENHAND)
    assert ends(result) == {"a": 60, "b": 120}


def test_the_state_a_round_sees_is_valid_and_tells_nothing_of_true_durations() -> None:
    seen: list[ClusterState] = []

    class Looks(Evenhand):
        def decide(self, world: World, happened: Happened) -> None:
            super().decide(world, happened)
            seen.append(state_of(world, T0))

    what = random_trace(3)
    replay(what, cluster(groups={"A": 2, "B": 1, "C": 1}), Policy(time_limit_s=0.2), Looks(), until_s=2 * HOUR)
    assert len(seen) > 20
    for state in seen:
        wire = json.loads(state.model_dump_json(warnings=False))
        again = ClusterState.model_validate_json(json.dumps(wire))
        assert not any(j.expected_end_at for j in again.jobs)
        assert (
            audit(again, allocate(again, Policy(time_limit_s=0.2)), Policy(time_limit_s=0.2)).ok
            if state is seen[9]
            else True
        )


@pytest.mark.parametrize("seed", range(4))
def test_nobody_is_stopped_inside_a_contract_and_unallocated_work_stops_nobody(seed: int) -> None:
    what = random_trace(seed, jobs=60)
    result = run(what, cluster(groups={"A": 2, "B": 1, "C": 1}), EVENHAND, Policy(time_limit_s=0.1))
    stays = result.stays
    contract = np.array([j.min_runtime_s for j in what.jobs])
    stopped = np.isin(stays.end, [StayEnd.PREEMPTED, StayEnd.MIGRATED])
    assert ((stays.end_s - stays.start_s)[stopped] >= contract[stays.job][stopped]).all()
    assert stopped.sum() > 0
    for second in sorted(set(stays.end_s[stopped & stays.charged].tolist())):
        arrived = stays.charged & (stays.start_s == second)
        assert arrived.any()  # who was stopped for: somebody budgeted


@pytest.mark.parametrize("seed", range(4))
def test_between_full_rounds_nobody_is_stopped_who_is_not_in_the_way(seed: int) -> None:
    stopped: list[tuple[tuple[tuple[int, int], ...], int]] = []

    class Watches(Evenhand):
        def decide(self, world: World, happened: Happened) -> None:
            before, full = dict(world.runs), world.full_rounds
            super().decide(world, happened)
            if world.full_rounds > full:
                return
            for j, was in before.items():
                if world.runs.get(j) is not was:
                    assert any(world.ground.free[n] < g for n, g in was.places)
                    assert world.now_s >= was.protected_until_s
                    stopped.append((was.places, world.now_s))

    what = random_trace(100 + seed, jobs=80)
    where = cluster(nodes=4, groups={"A": 2, "B": 1, "C": 1})
    replay(what, where, Policy(), Watches(), rules=WorldRules(full_round_s=3_600, full_round_limit_s=0.1))
    assert len(stopped) > 3


def test_a_contract_is_kept_to_the_second_and_then_the_starved_group_starts() -> None:
    what = trace(
        job("b", "B", 8, 12 * HOUR, 9 * HOUR, min_runtime_s=3_600),
        job("a", "A", 8, 12 * HOUR + 600, HOUR, min_runtime_s=60), end_s=24 * HOUR,
    )  # fmt: skip
    result = run(what, cluster(nodes=1, groups={"A": 1, "B": 1}), EVENHAND, full_round_s=HOUR - 1)
    assert starts(result)["a"] == 13 * HOUR
    assert of(result, "preemptions", "b") == 1


def test_a_newcomer_gets_his_share_from_those_past_their_contracts_at_once() -> None:
    running = [job(f"a{i:03}", "A", 1, 0, 20 * HOUR, min_runtime_s=60) for i in range(32)]
    coming = [job(f"b{i:03}", "B", 1, 10 * HOUR, 20 * HOUR, min_runtime_s=60) for i in range(16)]
    result = run(trace(*running, *coming, end_s=11 * HOUR), cluster(nodes=4, groups={"A": 1, "B": 1}), EVENHAND)
    assert set(starts(result).values()) == {0, 10 * HOUR}
    assert int(result.jobs.preemptions.sum()) == 16


def test_a_flood_takes_no_more_than_its_share() -> None:
    flood = [job(f"b{i:03}", "B", 1, 100, 20 * HOUR) for i in range(40)]
    others = [job(f"a{i:03}", "A", 1, 100, 20 * HOUR) for i in range(40)]
    result = run(trace(*flood, *others, end_s=600), cluster(nodes=4, groups={"A": 1, "B": 1}), EVENHAND)
    at_once = [name for name, at in starts(result).items() if at == 100]
    assert sum(name.startswith("a") for name in at_once) == 16
    assert len(at_once) == 32


def test_everybody_starts_in_one_round_when_there_is_room() -> None:
    what = trace(*(job(f"j{i:03}", "A", 1, 5, 60) for i in range(64)))
    result = run(what, cluster(nodes=8), EVENHAND)
    assert set(starts(result).values()) == {5}


def test_a_debug_job_takes_the_place_of_unallocated_work_at_once() -> None:
    what = trace(
        job("free", "A", 16, 0, 9 * HOUR, min_runtime_s=0), job("debug", "A", 1, 567, 60, min_runtime_s=60),
    )  # fmt: skip
    result = run(what, cluster(), EVENHAND)
    assert starts(result)["debug"] == 567
    assert ends(result)["debug"] == 627
    assert of(result, "preemptions", "free") == 1
    assert result.rounds.displacements == 1


def _both_hold_their_half() -> list[TraceJob]:
    """A and B a node each, A's inside its contract; B's can be stopped and has just saved its work."""
    mine = job("a", "A", 8, 0, 20 * HOUR, min_runtime_s=8 * HOUR)
    return [mine, *(job(f"b{i}", "B", 1, 0, 20 * HOUR, min_runtime_s=60, resumable=True) for i in range(8))]


def test_a_debug_run_starts_at_once_though_its_group_holds_all_it_is_owed() -> None:
    """Between full rounds, as many as `debug_share` allows, and none that may ask for it again and again."""
    came = 2 * HOUR + 300
    runs = [job(f"d{i}", "A", 1, came + i, 5 * HOUR, min_runtime_s=600, resumable=False) for i in range(3)]
    again = job("r", "A", 1, came, 5 * HOUR, min_runtime_s=600, resumable=True)
    what = trace(*_both_hold_their_half(), *runs, again, end_s=came + 5)
    result = run(what, cluster(groups={"A": 1, "B": 1}), EVENHAND, Policy(), full_round_s=HOUR)
    begun = starts(result)
    assert [begun[name] for name in ("d0", "d1", "d2", "r")] == [came, came + 1, -1, -1]
    assert int(result.jobs.preemptions.sum()) == 2


def test_a_debug_run_goes_before_the_elders_of_its_group_when_gpus_come_free() -> None:
    ends_at = 3_000
    holds = job("x", "A", 16, 0, ends_at, min_runtime_s=8 * HOUR)
    line = [job(f"t{i:02}", "A", 1, 10 + i, HOUR, min_runtime_s=HOUR) for i in range(20)]
    what = trace(holds, *line, job("d", "A", 1, 2_000, 60, min_runtime_s=60, resumable=False))
    result = run(what, cluster(), EVENHAND)
    assert starts(result)["d"] == ends_at
    assert sorted(at for name, at in starts(result).items() if name[0] == "t")[:15] == [ends_at] * 15


def test_a_limit_of_a_group_holds_between_full_rounds_too() -> None:
    groups = [{"id": "A", "share": 1, "max_gpus": 4}, {"id": "B", "share": 1}]
    what = trace(*(job(f"a{i}", "A", 1, 10 * i, 5_000) for i in range(9)))
    result = run(what, cluster(groups=groups), EVENHAND)
    stays = result.stays
    for second in stays.start_s.tolist():
        assert stays.gpus[(stays.start_s <= second) & (second < stays.end_s)].sum() <= 4


@pytest.mark.parametrize("who", list(Scheduler))
def test_the_same_seed_gives_the_same_bytes(who: Scheduler) -> None:
    what, where = random_trace(11), cluster(groups={"A": 2, "B": 1, "C": 1})
    first, second = (
        measure(replay(what, where, Policy(time_limit_s=0.1), who, seed=5)).to_json().encode() for _ in range(2)
    )
    assert first == second


def test_a_full_round_comes_at_least_as_often_as_it_is_told_to() -> None:
    what = trace(job("a", "A", 16, 0, 10 * HOUR), job("b", "A", 16, 0, 60), end_s=2 * HOUR)
    few, many = (run(what, cluster(), EVENHAND, full_round_s=every).rounds.full_rounds for every in (3_600, 300))
    assert (few, many) == (2, 24)


def test_time_goes_on_from_the_beginning_of_the_trace() -> None:
    seen = []

    class Looks(Evenhand):
        def decide(self, world: World, happened: Happened) -> None:
            seen.append(state_of(world, T0).now)
            super().decide(world, happened)

    replay(trace(job("a", "A", 1, 77, 5)), cluster(), scheduler=Looks())
    assert seen == [T0 + timedelta(seconds=77), T0 + timedelta(seconds=82)]


def test_jobs_that_could_not_start_anyway_change_no_decision() -> None:
    """Of many waiting jobs alike only so many are told to a round; all of them are here held against that."""
    few = [job(f"a{i:03}", "A", 4, i, 9 * HOUR, min_runtime_s=60) for i in range(40)]
    others = [job(f"b{i:03}", "B", 2, i, 9 * HOUR, min_runtime_s=60, priority=i % 2) for i in range(60)]
    seen: list[tuple[int, int]] = []

    class Both(Evenhand):
        def decide(self, world: World, happened: Happened) -> None:
            if world.now_s == 200:
                told = state_of(world, T0)
                kept = world.types
                world.types = (*kept, kept[0])  # with two types all are told
                whole = state_of(world, T0).model_copy(update={"gpu_types": kept})
                world.types = kept
                seen.append((len(told.jobs), len(whole.jobs)))
                starts_of = []
                for state in (told, whole):
                    snapshot, outcome, owed = engine_round(state, Policy(time_limit_s=20))
                    named = {snapshot.jobs[at].id: (d.move, d.gpus) for at, d in outcome.decisions.items() if d.places}
                    starts_of.append((named, [snapshot.jobs[at].id for at in owed]))
                assert starts_of[0] == starts_of[1]
            super().decide(world, happened)

        def wakes_at(self, world: World) -> int | None:
            return 200 if world.now_s < 200 else super().wakes_at(world)

    what = trace(job("x", "A", 16, 0, 190, min_runtime_s=60), *few, *others, end_s=400)
    replay(what, cluster(groups={"A": 1, "B": 2}), Policy(time_limit_s=0.5), Both())
    assert len(seen) == 1
    assert seen[0][0] < 40
    assert seen[0][1] == 101


def test_of_unallocated_jobs_a_round_is_told_what_free_gpus_could_hold_and_none_is_left_free() -> None:
    """The gang of 12 takes the place of the other group's gang of 16: the four left over go to sweeps at once."""
    sweeps = [job(f"s{i:03}", "A", 1, 10, 9 * HOUR, min_runtime_s=0) for i in range(300)]
    seen: list[int] = []

    class Looks(Evenhand):
        def decide(self, world: World, happened: Happened) -> None:
            super().decide(world, happened)
            seen.append(len(state_of(world, T0).jobs))
            assert not any(world.ground.idle)

    what = trace(
        job("a", "A", 16, 0, 9 * HOUR, min_runtime_s=600), job("b", "B", 12, 60, 9 * HOUR, min_runtime_s=60), *sweeps,
        end_s=2 * HOUR,
    )  # fmt: skip
    result = replay(what, cluster(groups={"A": 1, "B": 9}), Policy(time_limit_s=0.5), Looks())
    assert max(seen) < 30
    came = starts(result)["b"]
    assert 600 <= came <= 900
    assert sum(at == came for at in starts(result).values()) == 1 + 4


@pytest.mark.parametrize(("resumable", "moved"), [(True, 1), (False, 0)])
def test_who_is_left_on_slow_gpus_is_moved_to_free_fast_ones_though_nobody_waits(resumable: bool, moved: int) -> None:
    speeds = {"k80": 1.0, "v100": 8.0}
    what = trace(
        job("first", "A", 8, 0, HOUR, speedup=speeds), job("second", "A", 8, 60, HOUR, speedup=speeds, resumable=resumable),
    )  # fmt: skip
    result = run(what, cluster(types={"k80": 1, "v100": 1}), Scheduler.EVENHAND, checkpoint_interval_s=60)
    assert starts(result) == {"first": 0, "second": 60}
    assert of(result, "migrations", "second") == moved
    # in the hour an eighth is done on the slow ones; 300 s go by for a restart, and rounds come every quarter of an hour
    assert ends(result)["second"] <= 2 * HOUR + 900 + 300 if resumable else ends(result)["second"] == 60 + 8 * HOUR
