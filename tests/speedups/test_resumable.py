"""Jobs that come back from a requeue without their progress: their checkpoints count for nothing until they do (V7)."""

from __future__ import annotations

import pytest
from cases.states import cluster, job, of, solve

from evenhand.snapshot import take_snapshot
from evenhand.speedups import audit_speedups, resumable_in_use
from evenhand_models import DeclaredJob, Observation, Policy, SpeedupAuditRequest, SpeedupPolicy, Usage

HOUR = 3600.0


def run(name, requeues, start, done, hours):
    """One run: began with so much progress, did so much more, in so many hours on 8 GPUs."""
    return Observation(
        job=name,
        gpu_type="H100",
        gpus=8,
        work_done=done,
        seconds=hours * HOUR,
        requeues=requeues,
        progress=start + done,
    )


def audited(*seen, jobs=None, **policy):
    work = [job("j", "A", 8, on={"n0": 8}, ran=300)] if jobs is None else jobs
    state = cluster("2x8 H100", {"A": 1, "B": 1}, work)
    request = SpeedupAuditRequest(state=state, observations=seen, policy=SpeedupPolicy(**policy))
    return state, audit_speedups(request)


def test_who_comes_back_with_nothing_is_found_and_the_lost_work_counted():
    state, report = audited(run("j", 0, 0, 100, 5), run("j", 1, 0, 40, 2))
    (found,) = report.refuted
    assert (found.job, found.group, found.requeues, found.failed, found.kept) == ("j", "A", 1, 1, 0.0)
    assert found.lost_gpu_hours == pytest.approx(40.0)
    names, changed = resumable_in_use(state, report)
    assert names == ("j",)
    assert changed == state  # it had no checkpoint to begin with, and is requeued all the same


def test_who_keeps_its_progress_or_loses_less_than_a_checkpoint_is_believed():
    assert audited(run("j", 0, 0, 100, 5), run("j", 1, 95, 40, 2))[1].refuted == ()
    assert audited(run("j", 0, 0, 10, 0.5), run("j", 1, 0, 40, 2))[1].refuted == ()
    assert audited(run("j", 0, 0, 100, 5), run("j", 1, 55, 40, 2))[1].refuted == ()
    assert len(audited(run("j", 0, 0, 10, 0.5), run("j", 1, 0, 40, 2), checkpoint_s=600)[1].refuted) == 1


def test_the_last_requeue_decides_so_that_proof_can_be_given():
    lost, kept = run("j", 1, 0, 100, 5), run("j", 2, 98, 100, 5)
    assert len(audited(run("j", 0, 0, 100, 5), lost)[1].refuted) == 1
    state, report = audited(run("j", 0, 0, 100, 5), lost, kept)
    assert report.refuted == ()
    assert resumable_in_use(state, report) == ((), state)
    (again,) = audited(run("j", 0, 0, 100, 5), lost, kept, run("j", 3, 0, 5, 0.2))[1].refuted
    assert (again.requeues, again.failed) == (3, 2)


def test_several_observations_of_one_run_are_one_run_and_order_means_nothing():
    parts = [run("j", 0, 0, 60, 3), run("j", 0, 60, 60, 3), run("j", 1, 118, 20, 1), run("j", 1, 138, 20, 1)]
    assert audited(*parts)[1].refuted == ()
    assert audited(*parts[::-1])[1].refuted == ()


def test_without_progress_or_requeues_nothing_is_claimed():
    bare = [o.model_copy(update={"requeues": None}) for o in (run("j", 0, 0, 100, 5), run("j", 1, 0, 40, 2))]
    assert audited(*bare)[1].refuted == ()
    bare = [o.model_copy(update={"progress": None}) for o in (run("j", 0, 0, 100, 5), run("j", 1, 0, 40, 2))]
    assert audited(*bare)[1].refuted == ()
    plain = [job("j", "A", 8, resumable=False)]
    assert audited(run("j", 0, 0, 100, 5), run("j", 1, 0, 40, 2), jobs=plain)[1].refuted == ()


def test_jobs_that_have_left_are_found_too_and_change_no_state():
    request = SpeedupAuditRequest(
        state=cluster("2x8 H100", {"A": 1}),
        ended_jobs=[DeclaredJob(id="old", group="A", speedup={"H100": 1.0})],
        observations=[run("old", 0, 0, 100, 5), run("old", 1, 0, 40, 2)],
    )
    report = audit_speedups(request)
    assert [r.job for r in report.refuted] == ["old"]
    assert resumable_in_use(request.state, report) == ((), request.state)


def test_a_refuted_claim_makes_checkpoints_worth_nothing_in_the_round():
    saved = job("j", "A", 8, on={"n0": 8}, ran=120, c=90)
    saved = saved.model_copy(update={"checkpointed_at": saved.submitted_at.replace(hour=11, minute=55)})
    state, report = audited(run("j", 0, 0, 100, 5), run("j", 1, 0, 40, 2), jobs=[saved])
    _, changed = resumable_in_use(state, report)
    assert take_snapshot(state, Policy()).lost_s.tolist() == [300.0]
    assert take_snapshot(changed, Policy()).lost_s.tolist() == [5400.0]
    assert of(solve(changed), "j").action == "keep"


def test_a_refuted_job_that_is_stopped_is_requeued_so_that_it_can_prove_itself():
    saved = job("j", "A", 16, on={"n0": 8, "n1": 8}, ran=120, c=90)
    saved = saved.model_copy(update={"checkpointed_at": saved.submitted_at.replace(hour=11, minute=55)})
    state, report = audited(run("j", 0, 0, 100, 5), run("j", 1, 0, 40, 2), jobs=[saved, job("k", "B", 16)])
    _, changed = resumable_in_use(
        state.model_copy(update={"usage": (Usage(group="A", charged_gpu_hours=9e3),)}), report
    )
    stopped = of(solve(changed), "j")
    assert (stopped.action, stopped.requeue) == ("preempt", True)


def test_a_run_that_did_no_work_gives_no_pace_and_accuses_nobody():
    still = run("j", 0, 100, 0, 5)
    assert audited(still, run("j", 1, 0, 40, 2))[1].refuted == ()
