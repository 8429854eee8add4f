"""Types that jobs do not mention: measured where seen, guessed from like jobs, never used by themselves (V6)."""

from __future__ import annotations

import numpy as np
import pytest
from cases.states import cluster, job
from speedups.simulated import HARDWARE, TYPES, observed

from evenhand.speedups import audit_speedups, vectors_in_use
from evenhand_models import EstimateSource, SpeedupAuditRequest, SpeedupPolicy

SHAPES = (np.array([0.0, 0.4, 0.9]), np.array([0.0, 1.0, 2.2]))


def vector(rng, kind, spread):
    """A job of a kind, on a scale of its own."""
    logs = SHAPES[kind] + rng.normal(0, spread, 3) + rng.uniform(-6, 6)
    return dict(zip(TYPES, np.exp(logs).tolist(), strict=True))


def report_of(work, seen=(), **policy):
    state = cluster(HARDWARE, {"A": 1, "B": 1}, work)
    request = SpeedupAuditRequest(state=state, observations=tuple(seen), policy=SpeedupPolicy(**policy))
    return audit_speedups(request)


@pytest.mark.parametrize("spread", [0.03, 0.1])
def test_intervals_from_like_jobs_hold_the_truth_and_know_how_wide_they_must_be(spread):
    inside, widths = [], []
    for seed in range(15):
        rng = np.random.default_rng(seed)
        work, truth = [], {}
        for i in range(24):
            told = vector(rng, i % 2, spread)
            if i < 6:
                gone = TYPES[int(rng.integers(3))]
                truth[f"j{i:02}", gone] = told.pop(gone)
            work.append(job(f"j{i:02}", "A", 2, speedup=told))
        found = {(u.job, u.gpu_type): u for u in report_of(work).undeclared}
        assert set(found) == set(truth)
        for key, value in truth.items():
            one = found[key]
            assert one.source is EstimateSource.LIKE_JOBS
            assert one.like_jobs >= 3
            inside.append(one.low <= value <= one.high)
            widths.append(np.log(one.high / one.low) / 2)
    assert np.mean(inside) >= 0.95
    assert np.mean(widths) < (0.3 if spread < 0.05 else 0.6)


def test_like_jobs_are_told_apart_by_the_types_both_declare():
    rng = np.random.default_rng(1)
    work = [job(f"j{i:02}", "A", 2, speedup=vector(rng, i % 2, 0.01)) for i in range(20)]
    work += [job("slow", "B", 2, speedup={"V100": 5.0, "A100": 5.0 * np.exp(0.4)})]
    work += [job("fast", "B", 2, speedup={"V100": 5.0, "A100": 5.0 * np.exp(1.0)})]
    work += [job("any", "B", 2, speedup={"V100": 5.0})]
    found = {u.job: u for u in report_of(work).undeclared if u.gpu_type == "H100"}
    assert found["slow"].speedup == pytest.approx(5 * np.exp(0.9), rel=0.1)
    assert found["fast"].speedup == pytest.approx(5 * np.exp(2.2), rel=0.1)
    wide = np.log(found["any"].high / found["any"].low)
    assert wide > 2 * np.log(found["slow"].high / found["slow"].low)


def test_too_few_like_jobs_say_nothing_and_zero_is_a_declaration():
    work = [job("a", "A", 2, speedup={"V100": 1.0, "H100": 2.0}), job("b", "A", 2, speedup={"V100": 1.0})]
    assert [u for u in report_of(work).undeclared if u.job == "b"] == []
    assert [u.gpu_type for u in report_of(work, min_like_jobs=1).undeclared if u.job == "b"] == ["H100"]
    work[1] = job("b", "A", 2, speedup={"V100": 1.0, "H100": 0.0})
    assert [u for u in report_of(work, min_like_jobs=1).undeclared if u.job == "b"] == []


def test_a_job_seen_on_a_type_it_leaves_out_is_measured_there_and_still_does_not_run_there():
    rng = np.random.default_rng(2)
    true = dict(zip(TYPES, (3.0, 6.0, 12.0), strict=True))
    work = [job("j", "A", 2, speedup={"V100": 3.0, "A100": 6.0})]
    seen = observed(rng, "j", true, dict.fromkeys(TYPES, 9))
    report = report_of(work, seen, use="observed")
    (one,) = report.undeclared
    assert (one.gpu_type, one.source, one.like_jobs) == ("H100", EstimateSource.MEASURED, 0)
    assert one.low < 12.0 < one.high
    assert one.high / one.low < 1.4
    assert set(report.jobs[0].speedup) == {"V100", "A100"}
    used = vectors_in_use(cluster(HARDWARE, {"A": 1, "B": 1}, work), report)
    assert set(used.jobs[0].speedup) == {"V100", "A100"}


def test_what_others_declare_wrongly_does_not_carry_an_estimate_away():
    rng = np.random.default_rng(3)
    true = dict(zip(TYPES, (1.0, 2.0, 4.0), strict=True))
    work, seen = [job("new", "A", 2, speedup={"V100": 1.0, "A100": 2.0})], []
    for i in range(4):
        work.append(job(f"liar{i}", "B", 2, speedup=true | {"H100": 40.0}))
        seen += observed(rng, f"liar{i}", true, dict.fromkeys(TYPES, 6))
    (found,) = report_of(work, seen).undeclared
    assert found.speedup == pytest.approx(4.0, rel=0.1)
