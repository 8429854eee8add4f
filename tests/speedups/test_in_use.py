"""What the next rounds go by, under each use and consequence (V5)."""

from __future__ import annotations

import numpy as np
import pytest
from cases.states import actions, job, solve
from speedups.simulated import TYPES, declared, observed, speeds, world

from evenhand.speedups import audit_speedups, observed_vectors, refused_jobs, vectors_in_use
from evenhand_models import SpeedupAuditRequest, SpeedupPolicy

LIE = {"B": {"H100": 10.0}}


def judged(**policy):
    """Groups A, honest, and B, that declares ten times too much on its fast type; what was found."""
    request = world(2, groups=("A", "B"), jobs=(2, 2), each=(9, 9), factors=LIE, policy=SpeedupPolicy(**policy))
    return request.state, audit_speedups(request)


def pace(state, name):
    """H100 over V100 of a job."""
    vector = next(j.speedup for j in state.jobs if j.id == name)
    return vector["H100"] / vector["V100"]


def test_by_default_the_next_round_goes_by_what_is_declared():
    state, report = judged()
    assert vectors_in_use(state, report) == state
    assert not any(entry.changed or entry.refused for entry in report.jobs)


def test_observed_speedups_undo_the_lie_and_keep_the_reference_type():
    state, report = judged(use="observed")
    used = vectors_in_use(state, report)
    for name in ("B0", "B1"):
        assert pace(used, name) == pytest.approx(pace(state, name) / 10, rel=0.12)
    for name in ("A0", "A1"):
        assert pace(used, name) == pytest.approx(pace(state, name), rel=0.12)
    for before, after in zip(state.jobs, used.jobs, strict=True):
        assert after.speedup["V100"] == before.speedup["V100"]
        assert after == before.model_copy(update={"speedup": after.speedup})
    assert {entry.job: entry.speedup for entry in report.jobs} == {j.id: j.speedup for j in used.jobs}
    assert observed_vectors(state, judged()[1]) == {j.id: j.speedup for j in used.jobs}


def test_a_blend_lies_between_and_nears_what_is_observed_as_evidence_grows():
    gaps = []
    for each in (5, 10, 40):
        request = world(3, groups=("B",), jobs=(1, 1), each=(each, each), factors={"B": {"H100": 1.5}})
        report = audit_speedups(request)
        values = [
            np.log(pace(vectors_in_use(request.state, report, SpeedupPolicy(use=use)), "B0"))
            for use in ("declared", "blend", "observed")
        ]
        assert values[0] > values[1] > values[2]
        gaps.append((values[1] - values[2]) / (values[0] - values[2]))
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[0] < 0.5
    assert gaps[2] < 0.1


def test_use_observed_replaces_only_what_was_found_wrong():
    state, report = judged(consequence="use_observed")
    used = vectors_in_use(state, report)
    for before, after in zip(state.jobs, used.jobs, strict=True):
        wrong = {"H100"} if before.group == "B" else set()
        assert {t for t in TYPES if after.speedup[t] != before.speedup[t]} == wrong


def test_refuse_lists_waiting_jobs_and_runs_the_others_by_what_was_observed():
    state, report = judged(consequence="refuse")
    runs = job("B2", "B", 8, on={"n4": 8}, ran=10, speedup={"V100": 1.0, "H100": 30.0})
    elsewhere = job("B3", "B", 2, speedup={"V100": 1.0, "A100": 2.0})
    state = state.model_copy(update={"jobs": (*state.jobs, runs, elsewhere)})
    assert refused_jobs(state, report) == ("B0", "B1")
    assert [entry.job for entry in report.jobs if entry.refused] == ["B0", "B1"]
    used = vectors_in_use(state, report)
    assert [j.id for j in used.jobs] == ["A0", "A1", "B2", "B3"]
    assert pace(used, "B2") == pytest.approx(3.0, rel=0.12)
    assert set(actions(solve(used))) == {"A0", "A1", "B2", "B3"}


def test_a_job_of_a_flagged_group_that_was_itself_found_right_is_not_refused():
    rng = np.random.default_rng(8)
    work, seen = [], []
    for i in range(5):
        true = speeds(rng)
        work.append(job(f"B{i}", "B", 2, speedup=declared(true, {"H100": 1 if i == 0 else 3})))
        seen += observed(rng, f"B{i}", true, dict.fromkeys(TYPES, 20))
    base = world(1, groups=("B",)).state
    state = base.model_copy(update={"jobs": tuple(work)})
    policy = SpeedupPolicy(consequence="refuse")
    report = audit_speedups(SpeedupAuditRequest(state=state, observations=seen, policy=policy))
    assert refused_jobs(state, report) == ("B1", "B2", "B3", "B4")


def test_a_new_job_is_treated_as_its_group_is():
    state, report = judged(use="observed")
    new = [
        job("new", "B", 2, speedup={"V100": 4.0, "H100": 80.0}),
        job("other", "C", 2, speedup={"V100": 4.0, "H100": 80.0}),
        job("fast-only", "B", 2, speedup={"H100": 80.0, "A100": 0.0}),
    ]
    used = vectors_in_use(state.model_copy(update={"jobs": tuple(new)}), report)
    assert pace(used, "new") == pytest.approx(2.0, rel=0.1)
    assert used.jobs[1] == new[1]
    assert used.jobs[2] == new[2]


def test_what_one_job_did_says_nothing_about_the_rest_of_its_group():
    rng = np.random.default_rng(11)
    true = speeds(rng)
    told = declared(true, {"H100": 10.0})
    work = [job("liar", "B", 2, speedup=told), job("other", "B", 2, speedup=told)]
    state = world(1, groups=("B",)).state.model_copy(update={"jobs": tuple(work)})
    seen = observed(rng, "liar", true, dict.fromkeys(TYPES, 20))
    for how in ({"use": "observed"}, {"consequence": "refuse"}):
        report = audit_speedups(SpeedupAuditRequest(state=state, observations=seen, policy=SpeedupPolicy(**how)))
        entries = {entry.job: entry for entry in report.jobs}
        assert entries["liar"].changed
        assert not entries["other"].changed
        assert refused_jobs(state, report) == (("liar",) if "consequence" in how else ())
