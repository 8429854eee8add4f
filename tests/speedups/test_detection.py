"""Who is flagged and who is not, over many simulated worlds (V2 to V4); case 25's audit (V3)."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from cases.states import cluster, job
from speedups.simulated import HARDWARE, TYPES, observed, speeds, world

from evenhand.speedups import audit_speedups
from evenhand_models import DeclaredJob, HintCode, LeftOutCode, SpeedupAuditRequest, SpeedupFlag, SpeedupPolicy

WRONG = {SpeedupFlag.OVERDECLARED, SpeedupFlag.UNDERDECLARED}


def flags(seeds, group, gpu_type, **how):
    """How often each flag is raised on one pair."""
    found = Counter()
    for seed in seeds:
        report = audit_speedups(world(seed, **how))
        found.update(g.flag.value for g in report.groups if (g.group, g.gpu_type) == (group, gpu_type))
    return found


def test_honest_groups_are_not_flagged_at_10_percent_noise():
    found, jobs, covered = Counter(), Counter(), 0
    for seed in range(300):
        report = audit_speedups(world(seed, groups=("A", "B"), jobs=(1, 3), each=(5, 9)))
        found.update(g.flag for g in report.groups)
        jobs.update(m.flag for j in report.jobs for m in j.measured)
        covered += sum(g.low <= 0 <= g.high for g in report.groups)
        assert all(g.severity == 0 for g in report.groups if g.flag is SpeedupFlag.NONE)
    assert found.total() == 1200
    assert found.total() - found[SpeedupFlag.NONE] < 0.01 * found.total()
    assert sum(jobs[f] for f in WRONG) < 0.002 * jobs.total()
    assert jobs[SpeedupFlag.SUSPECT] < 0.025 * jobs.total()
    assert 0.97 <= covered / found.total() <= 0.998


@pytest.mark.parametrize(("factor", "flag"), [(1.3, "overdeclared"), (1 / 1.3, "underdeclared")])
def test_a_declaration_off_by_1_3_is_found_given_enough_evidence(factor, flag):
    how = {"groups": ("A",), "jobs": (4, 4), "each": (8, 8), "factors": {"A": {"A100": factor}}}
    found = flags(range(100), "A", "A100", **how)
    assert found[flag] > 95
    assert found["none"] == 0


@pytest.mark.parametrize("factor", [1.5, 1 / 1.5])
@pytest.mark.parametrize(("jobs", "each"), [((1, 1), (10, 10)), ((5, 5), (2, 2))])
def test_a_cheater_is_found_within_20_observations(factor, jobs, each):
    how = {"groups": ("A",), "jobs": jobs, "each": each, "factors": {"A": {"H100": factor}}}
    found = flags(range(60), "A", "H100", **how)
    assert found["none"] == 0
    assert found.total() - found["suspect"] >= 57


def test_stalls_in_a_tenth_of_the_observations_neither_accuse_nor_hide():
    honest = flags(range(60), "A", "H100", groups=("A",), jobs=(3, 3), each=(8, 8), stalls=0.1)
    assert honest["overdeclared"] + honest["underdeclared"] <= 1
    lie = {"A": {"H100": 1.4}}
    found = flags(range(60), "A", "H100", groups=("A",), jobs=(3, 3), each=(8, 8), stalls=0.1, factors=lie)
    assert found["overdeclared"] >= 55


def test_one_liar_among_five_jobs_is_found_by_its_own_observations_and_does_not_taint_its_group():
    rng = np.random.default_rng(7)
    work, seen = [], []
    for i in range(5):
        true = speeds(rng)
        work.append(job(f"j{i}", "A", 2, speedup=true | {"H100": true["H100"] * (2 if i == 3 else 1)}))
        seen += observed(rng, f"j{i}", true, dict.fromkeys(TYPES, 8))
    report = audit_speedups(SpeedupAuditRequest(state=cluster(HARDWARE, {"A": 1}, work), observations=seen))
    assert {g.flag for g in report.groups} == {SpeedupFlag.NONE}
    found = {(j.job, m.gpu_type) for j in report.jobs for m in j.measured if m.flag in WRONG}
    assert found == {("j3", "H100")}


@pytest.mark.parametrize("factor", [10.0, 0.1])
def test_case_25_the_audit_flags_the_liar_both_ways(factor):
    lie = {"B": {"H100": factor}}
    report = audit_speedups(world(25, groups=("A", "B"), jobs=(2, 2), each=(4, 4), factors=lie))
    flagged = {(g.group, g.gpu_type): g for g in report.groups if g.flag is not SpeedupFlag.NONE}
    assert set(flagged) == {("B", "H100")}
    found = flagged["B", "H100"]
    assert found.flag.value == ("overdeclared" if factor > 1 else "underdeclared")
    assert found.ratio == pytest.approx(-np.log(factor), abs=0.15)
    assert found.low <= -np.log(factor) <= found.high
    assert 5 < found.severity < 9
    assert found.reference_type == "V100"


def test_less_than_the_least_evidence_finds_nothing():
    lie = {"A": {"H100": 10.0}}
    few = world(1, groups=("A",), jobs=(1, 1), each=(4, 4), factors=lie)
    for gate in ({}, {"min_observations": 4, "min_seconds": 10**6}, {"min_observations": 4, "min_jobs": 2}):
        report = audit_speedups(few.model_copy(update={"policy": SpeedupPolicy(**gate)}))
        assert all(not g.enough and g.flag is SpeedupFlag.NONE for g in report.groups)
        own = [m for j in report.jobs for m in j.measured]
        assert "min_jobs" in gate or all(not m.enough and m.flag is SpeedupFlag.NONE for m in own)
    report = audit_speedups(few.model_copy(update={"policy": SpeedupPolicy(min_observations=4)}))
    assert [g.gpu_type for g in report.groups if g.flag in WRONG] == ["H100"]
    report = audit_speedups(few)
    assert HintCode.REFERENCE_SHORT in {h.code for h in report.hints}
    brief = SpeedupPolicy(min_observations=1, shortest_observation_s=7201)
    assert audit_speedups(few.model_copy(update={"policy": brief})).groups == ()


def test_what_was_never_measured_on_the_reference_type_asks_for_it():
    rng = np.random.default_rng(3)
    true = [speeds(rng) for _ in range(3)]
    work = [job(f"j{i}", "A", 2, speedup=true[i]) for i in range(3)]
    seen = observed(rng, "j0", true[0], {"H100": 9}) + observed(rng, "j1", true[1], {"A100": 9})
    state = cluster(HARDWARE, {"A": 1}, work)
    policy = SpeedupPolicy(reference_type="V100")
    report = audit_speedups(SpeedupAuditRequest(state=state, observations=seen, policy=policy))
    assert all(g.ratio is None and not g.enough for g in report.groups)
    assert [(h.code, h.gpu_type, h.jobs) for h in report.hints] == [
        (HintCode.REFERENCE_UNMEASURED, "V100", ("j0", "j1"))
    ]
    seen += observed(rng, "j2", true[2], dict.fromkeys(TYPES, 9))
    report = audit_speedups(SpeedupAuditRequest(state=state, observations=seen, policy=policy))
    assert [(g.gpu_type, g.reference_type, g.jobs, g.enough) for g in report.groups] == [
        ("A100", "V100", 1, True), ("H100", "V100", 1, True),
    ]  # fmt: skip


def test_where_all_other_types_are_off_alike_the_reference_is_suspected():
    report = audit_speedups(world(4, groups=("A",), jobs=(3, 3), each=(9, 9), factors={"A": {"V100": 0.5}}))
    assert {g.flag for g in report.groups} == {SpeedupFlag.OVERDECLARED}
    (hint,) = report.hints
    assert (hint.code, hint.gpu_type, hint.jobs) == (HintCode.REFERENCE_SUSPECT, "V100", ("A0", "A1", "A2"))


def test_sizes_are_not_compared_with_each_other():
    rng = np.random.default_rng(5)
    true = speeds(rng)
    work = [job("j", "A", 8, min_gpus=2, speedup=true)]
    half = {t: x / 2 for t, x in true.items()}  # at 8 GPUs each works half as fast
    seen = observed(rng, "j", true, {"V100": 9}, gpus=2) + observed(rng, "j", half, {"H100": 9}, gpus=8)
    state = cluster(HARDWARE, {"A": 1}, work)
    assert all(g.ratio is None for g in audit_speedups(SpeedupAuditRequest(state=state, observations=seen)).groups)


def test_ended_jobs_are_evidence_about_their_group_and_strangers_are_named():
    rng = np.random.default_rng(6)
    true = speeds(rng)
    seen = observed(rng, "gone", true, dict.fromkeys(TYPES, 9)) + observed(rng, "who", true, {"V100": 1})
    told = true | {"H100": true["H100"] * 2}
    request = SpeedupAuditRequest(
        state=cluster(HARDWARE, {"A": 1}),
        ended_jobs=[DeclaredJob(id="gone", group="A", speedup=told)],
        observations=seen,
    )
    report = audit_speedups(request)
    assert [g.gpu_type for g in report.groups if g.flag in WRONG] == ["H100"]
    assert [(left.code, left.names) for left in report.left_out] == [(LeftOutCode.UNKNOWN_JOB, ("who",))]
    assert report.jobs == ()
