"""What a hostile user may send: the audit goes on, says what it left out, and accuses nobody for it (V1)."""

from __future__ import annotations

from datetime import timedelta
from math import log

import numpy as np
import pytest
from cases.states import NOW, cluster, job
from pydantic import ValidationError
from speedups.simulated import HARDWARE, TYPES, observed, speeds, world

from evenhand.speedups import audit_speedups, observed_vectors, vectors_in_use
from evenhand_models import (
    HintCode,
    InvalidInput,
    LeftOutCode,
    Observation,
    SpeedupAuditRequest,
    SpeedupFlag,
    SpeedupPolicy,
)

WRONG = {SpeedupFlag.OVERDECLARED, SpeedupFlag.UNDERDECLARED}
TINY, HUGE = 1e-300, 1e30


def seen(name, gpu_type, work, *, seconds=600.0, **more):
    return Observation(job=name, gpu_type=gpu_type, gpus=2, work_done=work, seconds=seconds, **more)


def audited(work, observations, **policy):
    request = SpeedupAuditRequest(
        state=cluster(HARDWARE, {"A": 1, "B": 1}, work),
        observations=tuple(observations),
        policy=SpeedupPolicy(**policy),
    )
    return request.state, audit_speedups(request)


@pytest.mark.parametrize("told", [{"V100": HUGE, "H100": TINY}, {"V100": TINY, "H100": HUGE}])
@pytest.mark.parametrize("done", [{"V100": HUGE, "H100": TINY}, {"V100": TINY, "H100": HUGE}, {"V100": 1, "H100": 1}])
def test_numbers_at_the_ends_of_their_range_are_judged_and_overflow_nowhere(told, done):
    work = [job("j", "A", 2, speedup=told)] + [job(f"k{i}", "B", 2, speedup=told | {"A100": HUGE}) for i in range(4)]
    observations = [seen("j", t, float(done[t])) for t in done for _ in range(6)]
    state, report = audited(work, observations, use="observed", min_like_jobs=1, reference_type="V100")
    assert type(report).model_validate_json(report.model_dump_json()) == report
    for one in vectors_in_use(state, report).jobs:
        assert all(0 < x <= HUGE for x in one.speedup.values())
    (entry,) = [g for g in report.groups if g.group == "A"]
    off = log(done["H100"]) - log(done["V100"]) - (log(told["H100"]) - log(told["V100"]))
    assert entry.ratio == pytest.approx(off)
    assert (entry.flag in WRONG) == (abs(off) > 1)


def test_a_lost_progress_beyond_all_measure_is_counted_as_the_most_that_can_be_written():
    runs = [seen("j", "H100", TINY, requeues=0, progress=HUGE), seen("j", "H100", 1.0, requeues=1, progress=1.0)]
    _, report = audited([job("j", "A", 2)], runs)
    (found,) = report.refuted
    assert found.lost_gpu_hours == 1e15


def test_no_work_at_all_is_left_out_and_named_and_stops_nobodys_audit():
    rng = np.random.default_rng(1)
    true = speeds(rng)
    idle = [seen("j", "H100", 0.0) for _ in range(9)]
    work = [job("j", "A", 2, speedup=true), job("k", "B", 2, speedup=true | {"H100": 5 * true["H100"]})]
    observations = idle + observed(rng, "k", true, dict.fromkeys(TYPES, 9))
    _, report = audited(work, observations)
    assert [(left.code, left.observations, left.names) for left in report.left_out] == [
        (LeftOutCode.NO_WORK, 9, ("j",))
    ]
    assert [g.group for g in report.groups if g.flag in WRONG] == ["B"]


def test_strange_jobs_and_types_and_repeated_and_short_observations_are_counted_and_named():
    rng = np.random.default_rng(2)
    true = speeds(rng)
    good = observed(rng, "j", true, dict.fromkeys(TYPES, 6))
    stamped = [o.model_copy(update={"ended_at": NOW - timedelta(hours=i)}) for i, o in enumerate(good)]
    odd = [
        seen("who", "H100", 1.0),
        seen("j", "h100", 1.0),
        seen("j", "h100", 1.0),
        seen("j", "V100", 1.0, seconds=29.0),
    ]
    _, report = audited([job("j", "A", 2, speedup=true)], [*stamped, *odd, *stamped[:4]])
    found = {left.code.value: (left.observations, left.names) for left in report.left_out}
    assert found == {
        "unknown_job": (1, ("who",)),
        "unknown_type": (2, ("h100",)),
        "repeated": (4, ("j",)),
        "too_short": (1, ("j",)),
    }
    (entry,) = [g for g in report.groups if g.gpu_type == "H100"]
    assert (entry.observations, entry.reference_observations) == (6, 6)


def test_observations_without_an_end_are_never_taken_for_repeated():
    work = [job("j", "A", 2, speedup={"V100": 1.0, "H100": 2.0})]
    _, report = audited(work, [seen("j", t, w) for t, w in (("V100", 1.0), ("H100", 2.0)) for _ in range(6)])
    assert report.left_out == ()
    assert report.groups[0].observations == 6


def test_one_job_with_most_of_the_observations_does_not_speak_for_its_group():
    rng = np.random.default_rng(3)
    work, observations = [], []
    for i in range(6):
        true = speeds(rng)
        work.append(job(f"j{i}", "A", 2, speedup=true | {"H100": true["H100"] * (4 if i == 0 else 1)}))
        observations += observed(rng, f"j{i}", true, dict.fromkeys(TYPES, 500 if i == 0 else 6))
    _, report = audited(work, observations)
    (entry,) = [g for g in report.groups if g.gpu_type == "H100"]
    assert entry.flag not in WRONG
    assert {j.job for j in report.jobs for m in j.measured if m.flag in WRONG} == {"j0"}


def test_two_jobs_that_lie_in_opposite_ways_are_each_found_though_their_group_looks_right():
    rng = np.random.default_rng(4)
    work, observations = [], []
    for name, factor in (("up", 3.0), ("down", 1 / 3)):
        true = speeds(rng)
        work.append(job(name, "A", 2, speedup=true | {"H100": true["H100"] * factor}))
        observations += observed(rng, name, true, dict.fromkeys(TYPES, 8))
    state, report = audited(work, observations, consequence="use_observed")
    found = {(j.job, m.flag.value) for j in report.jobs for m in j.measured if m.flag in WRONG}
    assert found == {("up", "overdeclared"), ("down", "underdeclared")}
    for before, after in zip(state.jobs, vectors_in_use(state, report).jobs, strict=True):
        assert after.speedup["H100"] != before.speedup["H100"]


def test_a_friend_that_floods_the_group_with_scatter_hides_nobodys_lie():
    rng = np.random.default_rng(6)
    work, observations = [], []
    for name, factor, noise, count in (("liar", 2.0, 0.1, 8), ("flood", 1.0, 1.5, 200)):
        true = speeds(rng)
        work.append(job(name, "A", 2, speedup=true | {"H100": true["H100"] * factor}))
        observations += observed(rng, name, true, dict.fromkeys(TYPES, count), noise=noise)
    _, report = audited(work, observations)
    assert {j.job for j in report.jobs for m in j.measured if m.flag in WRONG} == {"liar"}
    assert [h.jobs for h in report.hints if h.code is HintCode.SCATTERED] == [("flood",)]


def test_who_hides_a_lie_under_noise_is_told_to_measure_again():
    request = world(5, groups=("A",), jobs=(1, 1), each=(10, 10), noise=1.5, factors={"A": {"H100": 1.5}})
    report = audit_speedups(request)
    assert HintCode.SCATTERED in {h.code for h in report.hints}
    calm = audit_speedups(world(5, groups=("A",), jobs=(1, 1), each=(10, 10)))
    assert calm.hints == ()


def test_names_in_any_script_are_kept_as_they_are():
    name, group = "job \U0001f680 été/~0", "Gruppe Ω"
    state = cluster(HARDWARE, {group: 1}, [job(name, group, 2, speedup={"V100": 1.0, "H100": 9.0})])
    observations = tuple(seen(name, t, w) for t, w in (("V100", 1.0), ("H100", 2.0)) for _ in range(6))
    report = audit_speedups(SpeedupAuditRequest(state=state, observations=observations))
    assert [(g.group, g.flag.value) for g in report.groups] == [(group, "overdeclared")]
    assert report.jobs[0].job == name


@pytest.mark.parametrize("wrong", [{"noise": 1e-200}, {"noise": 0.0001}, {"confidence": 0.99999}])
def test_a_policy_that_no_arithmetic_survives_is_refused(wrong):
    with pytest.raises(ValidationError):
        SpeedupPolicy(**wrong)


def test_no_evidence_at_all_changes_no_vector():
    state, report = audited(
        [job("j", "A", 2, speedup={"V100": 1.0})], [seen("j", "V100", 1.0) for _ in range(9)], use="observed"
    )
    assert observed_vectors(state, report) == {"j": {"V100": 1.0}}


def test_faults_of_the_state_are_pointed_at_below_state():
    body = world(1, groups=("A",)).model_dump()
    body["state"]["jobs"] = (*body["state"]["jobs"], body["state"]["jobs"][0])
    with pytest.raises(InvalidInput) as refused:
        SpeedupAuditRequest.model_validate(body)
    assert refused.value.errors[0].pointer.startswith("/state/jobs/")


def test_the_reference_is_suspected_in_the_words_of_those_judged():
    rng = np.random.default_rng(9)
    true = {"K80": 1.0, "V100": 2.0, "A100": 4.0, "H100": 8.0}
    told = true | {"K80": 0.4}
    state = cluster("1x8 K80, 1x8 V100, 1x8 A100, 1x8 H100", {"A": 1}, [job("j", "A", 2, speedup=told)])
    observations = observed(rng, "j", true, {"K80": 9, "V100": 9, "H100": 9, "A100": 1})
    report = audit_speedups(SpeedupAuditRequest(state=state, observations=tuple(observations)))
    assert report.groups[0].gpu_type == "A100"
    (hint,) = [h for h in report.hints if h.code is HintCode.REFERENCE_SUSPECT]
    assert "overdeclared" in hint.message


def test_leaving_the_reference_type_out_is_no_way_round_the_audit():
    rng = np.random.default_rng(12)
    work, observations = [], []
    for i in range(3):
        true = speeds(rng)
        work.append(job(f"good{i}", "A", 2, speedup=true))
        observations += observed(rng, f"good{i}", true, dict.fromkeys(TYPES, 6))
    true = speeds(rng)
    work.append(job("dodger", "A", 2, speedup={"A100": true["A100"], "H100": 3 * true["H100"]}))
    observations += observed(rng, "dodger", true, {"A100": 8, "H100": 8})
    state, report = audited(work, observations, consequence="use_observed")
    found = {
        (j.job, m.gpu_type, m.reference_type, m.flag.value) for j in report.jobs for m in j.measured if m.flag in WRONG
    }
    assert found == {("dodger", "H100", "A100", "overdeclared")}
    assert report.hints == ()
    used = {j.id: j.speedup for j in vectors_in_use(state, report).jobs}
    assert used["dodger"]["H100"] / used["dodger"]["A100"] == pytest.approx(true["H100"] / true["A100"], rel=0.15)
    assert used["dodger"]["A100"] == true["A100"]


def test_a_job_judged_by_a_reference_of_its_own_is_not_judged_by_its_groups_as_well():
    rng = np.random.default_rng(13)
    work, observations = [], []
    for i in range(3):
        true = speeds(rng)
        work.append(job(f"liar{i}", "A", 2, speedup=true | {"A100": 3 * true["A100"]}))
        observations += observed(rng, f"liar{i}", true, dict.fromkeys(TYPES, 6))
    true = speeds(rng)
    work.append(job("apart", "A", 2, speedup=true))  # declares all three, was seen on two
    observations += observed(rng, "apart", true, {"A100": 9, "H100": 9})
    state, report = audited(work, observations, use="observed", reference_type="V100")
    used = {j.id: j.speedup for j in vectors_in_use(state, report).jobs}
    assert used["apart"]["H100"] / used["apart"]["A100"] == pytest.approx(true["H100"] / true["A100"], rel=0.15)
    assert used["apart"]["A100"] == true["A100"]
