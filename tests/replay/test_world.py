"""The world applies decisions as a cluster would: hand-computed ends, costs, losses."""

from __future__ import annotations

import pytest

from evenhand.replay import JobEnd, NonResumable, ReplayResult, Scheduler, StayEnd, WorldRules, replay
from evenhand.replay.errors import BrokenRule
from evenhand.replay.schedulers.decider import Happened
from evenhand.replay.world import World
from evenhand_models import Node
from evenhand_models.traces import WorldChange
from replay.build import HOUR, cluster, ends, job, of, random_trace, run, starts, trace


class Stops:
    """Starts everybody, and stops one job at some seconds."""

    keeps_hit = minds_protection = minds_checkpoints = saves_at_stop = minds_debug_runs = False

    def __init__(self, *at_s: int) -> None:
        self._at = list(at_s)

    def decide(self, world: World, happened: Happened) -> None:
        if self._at and world.now_s >= self._at[0]:
            self._at.pop(0)
            world.stop(0)
            return
        for waiting in world.lines.jobs():
            found = world.place_best(waiting)
            if found is not None:
                world.start(waiting, *found)

    def wakes_at(self, world: World) -> int | None:
        return world.now_s + 1 if world.lines.count else next(iter(self._at), None)


def test_fifo_blocks_behind_the_first_that_does_not_fit_and_first_fit_does_not() -> None:
    what = trace(job("a", "A", 8, 0, 1_000), job("b", "A", 16, 10, 500), job("c", "A", 4, 20, 50))
    assert starts(run(what, cluster(), Scheduler.FIFO)) == {"a": 0, "b": 1_000, "c": 1_500}
    assert starts(run(what, cluster(), Scheduler.FIRST_FIT)) == {"a": 0, "b": 1_000, "c": 20}


def test_a_resumable_job_loses_what_came_after_its_checkpoint_and_pays_for_the_restart() -> None:
    what = trace(job("a", "A", 4, 0, 5_000))
    result = replay(what, cluster(), scheduler=Stops(2_000))  # checkpoint at 1,800 s; restart cost 300 s
    assert of(result, "lost_gpu_s", "a") == 4 * 200
    assert of(result, "restart_gpu_s", "a") == 4 * 300
    assert ends(result)["a"] == 2_001 + 300 + 3_200
    assert of(result, "preemptions", "a") == 1
    assert of(result, "waited_s", "a") == 1


class Listens(Stops):
    """Notes when it is told that progress was saved."""

    minds_checkpoints = True

    def __init__(self, *at_s: int) -> None:
        super().__init__(*at_s)
        self.told: list[int] = []

    def decide(self, world: World, happened: Happened) -> None:
        if happened.saved:
            self.told.append(world.now_s)
        super().decide(world, happened)


def test_who_minds_checkpoints_is_told_of_each_outside_the_contract_and_of_none_inside() -> None:
    what = trace(job("a", "A", 4, 0, 9_500, min_runtime_s=2_000), job("b", "A", 4, 0, 9_500, resumable=False))
    listens = Listens(4_000)  # saved 1,800 s after each start, and the restart at 4,001 costs 300 s
    replay(what, cluster(), scheduler=listens)
    assert listens.told == [3_600, 4_301 + 1_800, 4_301 + 3_600, 4_301 + 5_400]
    silent = Listens(4_000)
    replay(what, cluster(), scheduler=silent, rules=WorldRules(checkpoints_reported=False))
    assert silent.told == []


def test_a_stop_during_the_restart_costs_its_time_and_no_work() -> None:
    what = trace(job("a", "A", 1, 0, 5_000))
    result = replay(what, cluster(), scheduler=Stops(1_900, 2_000))
    assert of(result, "lost_gpu_s", "a") == 100
    assert of(result, "restart_gpu_s", "a") == 99 + 300
    assert ends(result)["a"] == 2_001 + 300 + 3_200


def test_a_job_that_cannot_resume_starts_over_or_is_gone() -> None:
    what = trace(job("a", "A", 2, 0, 5_000, resumable=False))
    again = replay(what, cluster(), scheduler=Stops(2_000))
    assert ends(again)["a"] == 2_001 + 5_000
    assert of(again, "lost_gpu_s", "a") == 4_000
    gone = replay(what, cluster(), scheduler=Stops(2_000), rules=WorldRules(non_resumable=NonResumable.GONE))
    assert of(gone, "end", "a") == JobEnd.GONE
    assert ends(gone)["a"] == 2_000


def test_a_job_runs_at_the_true_speed_of_the_type_it_got_and_schedulers_see_the_declared_one() -> None:
    said = {"a100": 1.0, "h100": 4.0}
    what = trace(
        job("a", "A", 8, 0, 1_000, speedup=said, true_speedup={"a100": 0.5, "h100": 2.0}),
        job("b", "A", 8, 0, 1_000, speedup=said),
    )
    result = run(what, cluster(types={"a100": 1, "h100": 1}), Scheduler.FIRST_FIT)
    assert ends(result) == {"a": 500, "b": 4_000}  # a on the h100 at 2; b on the a100 at a quarter of its best
    assert result.jobs.speed_milli.tolist() == [[500, 2_000], [250, 1_000]]


def test_a_lost_node_requeues_who_stood_on_it_and_the_rest_goes_on() -> None:
    down = Node(name="h100-00", gpu_type="h100", gpus=8, status="down")
    up = Node(name="h100-00", gpu_type="h100", gpus=8)
    what = trace(
        job("a", "A", 8, 0, 4_000), job("b", "A", 8, 0, 4_000),
        changes=(WorldChange(2_000, nodes=(down,)), WorldChange(3_000, nodes=(up,))),
    )  # fmt: skip
    for who in (Scheduler.FIRST_FIT, Scheduler.EVENHAND):
        result = run(what, cluster(), who)
        assert ends(result)["b"] == 4_000
        assert ends(result)["a"] == 3_000 + 300 + 2_200
        assert of(result, "node_losses", "a") == 1
        assert result.ended(StayEnd.NODE_LOST) == 1
        assert result.capacity.gpus[:, 0].tolist() == [16, 8, 16]
        assert result.capacity.at_s.tolist() == [0, 2_000, 3_000]


def test_nothing_starts_that_would_not_be_done_before_maintenance_and_it_ends_what_runs() -> None:
    soon = Node(name="h100-00", gpu_type="h100", gpus=8, available_until_at="2026-11-02T01:00:00Z")
    what = trace(
        job("a", "A", 8, 100, 9_000, min_runtime_s=3_600), job("b", "A", 8, 100, 9_000, min_runtime_s=60),
        job("c", "A", 1, 100, 50, min_runtime_s=3_600), changes=(WorldChange(0, nodes=(soon,)),),
    )  # fmt: skip
    for who in (Scheduler.FIRST_FIT, Scheduler.EVENHAND):
        result = run(what, cluster(), who)
        on = dict(zip(result.stays.job.tolist(), result.stays.end_s.tolist(), strict=False))
        assert starts(result)["a"] == starts(result)["b"] == 100
        assert on[1] != 100
        assert of(result, "node_losses", "b") == 1
        assert of(result, "node_losses", "a") == 0


def test_a_node_that_is_added_is_used_and_one_that_goes_is_not_in_the_way() -> None:
    more = Node(name="new-00", gpu_type="h100", gpus=16)
    what = trace(
        job("a", "A", 16, 0, 500), job("b", "A", 8, 0, 10_000),
        changes=(WorldChange(1_000, nodes=(more,)), WorldChange(2_000, gone=("new-00",))),
    )  # fmt: skip
    result = run(what, cluster(nodes=1), Scheduler.FIRST_FIT)
    assert of(result, "end", "a") == JobEnd.INFEASIBLE
    late = trace(job("a", "A", 16, 1_500, 400), *what.jobs[1:], changes=what.changes)
    result = run(late, cluster(nodes=1), Scheduler.FIRST_FIT)
    assert ends(result)["a"] == 1_900


def test_zero_durations_equal_times_unknown_groups_and_impossible_gangs_are_served_or_said() -> None:
    what = trace(
        job("zero", "A", 8, 0, 0),
        job("same", "A", 16, 0, 10),
        job("who", "nobody", 1, 0, 10),
        job("big", "A", 99, 0, 10),
    )
    for who in Scheduler:
        result = run(what, cluster(), who)
        ended = dict(zip(result.jobs.ids, result.jobs.end.tolist(), strict=True))
        assert ended == {
            "zero": JobEnd.COMPLETED, "same": JobEnd.COMPLETED, "who": JobEnd.INFEASIBLE, "big": JobEnd.INFEASIBLE,
        }, who  # fmt: skip


def test_a_decider_that_hands_out_what_is_not_there_is_stopped() -> None:
    class Greedy(Stops):
        def decide(self, world: World, happened: Happened) -> None:
            for waiting in world.lines.jobs():
                world.start(waiting, 0, ((0, 8),))

    with pytest.raises(BrokenRule, match="C1"):
        replay(trace(job("a", "A", 8, 0, 10), job("b", "A", 8, 0, 10)), cluster(), scheduler=Greedy())
    with pytest.raises(BrokenRule, match="G1"):
        replay(trace(job("a", "A", 4, 0, 10)), cluster(), scheduler=Greedy())


@pytest.mark.parametrize("who", list(Scheduler))
def test_gpu_time_is_accounted_for_to_the_second_and_no_node_is_ever_overfull(who: Scheduler) -> None:
    accounted_for(run(random_trace(7), cluster(groups={"A": 2, "B": 1, "C": 1}), who))


@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("who", list(Scheduler))
def test_many_random_days_are_accounted_for(who: Scheduler, seed: int) -> None:
    accounted_for(run(random_trace(seed, jobs=300, hours=24), cluster(groups={"A": 2, "B": 1, "C": 1}), who))


def accounted_for(result: ReplayResult) -> None:
    stays, jobs = result.stays, result.jobs
    length = stays.end_s - stays.start_s
    assert (length >= 0).all()
    for second in sorted({*stays.start_s.tolist()}):
        now = (stays.start_s <= second) & (second < stays.end_s)
        assert stays.gpus[now].sum() <= 16
        assert len(set(stays.job[now].tolist())) == now.sum()
    done = jobs.end == JobEnd.COMPLETED
    held = [int((stays.gpus * length)[stays.job == j].sum()) for j in range(len(jobs.ids))]
    needed = jobs.size * jobs.work_s + jobs.lost_gpu_s + jobs.restart_gpu_s
    assert [held[j] for j in range(len(held)) if done[j]] == needed[done].tolist()
    lived = (jobs.end_s - jobs.submit_s)[done]
    spans = [int(length[stays.job == j].sum()) for j in range(len(jobs.ids))]
    assert (jobs.waited_s[done] + [spans[j] for j in range(len(held)) if done[j]] == lived).all()


def test_a_replay_ends_when_it_is_told_to_and_says_who_still_runs() -> None:
    what = trace(job("a", "A", 16, 0, 5 * HOUR), job("b", "A", 8, 10, 60))
    result = replay(what, cluster(), scheduler=Scheduler.FIRST_FIT, until_s=HOUR)
    assert result.summary() == {"completed": 0, "running": 1, "waiting": 1, "gone": 0, "infeasible": 0}
    assert result.stays.end_s.tolist() == [HOUR]
    assert of(result, "waited_s", "b") == HOUR - 10
